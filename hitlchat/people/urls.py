from django.urls import path

from hitlchat.people import group_views, invitation_views, views

app_name = "people"
urlpatterns = [
    path("people/", views.people, name="list"),
    path("people/invite", invitation_views.invite, name="invite"),
    path("people/invitations/<int:invitation_id>/revoke", invitation_views.revoke, name="revoke-invitation"),
    path("people/groups", group_views.create, name="new-group"),
    path("people/groups/<int:group_id>", group_views.group, name="group"),
    path("people/groups/<int:group_id>/rename", group_views.rename, name="rename-group"),
    path("people/groups/<int:group_id>/delete", group_views.delete, name="delete-group"),
    path("people/groups/<int:group_id>/add", group_views.add, name="add-to-group"),
    path("people/groups/<int:group_id>/remove/<int:user_id>", group_views.remove, name="remove-from-group"),
    path("people/<int:user_id>", views.one, name="one"),
    path("people/<int:user_id>/role", views.role, name="role"),
    path("people/<int:user_id>/deactivate", views.deactivate, name="deactivate"),
    path("people/<int:user_id>/reactivate", views.reactivate, name="reactivate"),
    path("join/<str:secret>", invitation_views.join, name="join"),
    path("account", views.account, name="account"),
    path("deactivated", views.deactivated, name="deactivated"),
]
