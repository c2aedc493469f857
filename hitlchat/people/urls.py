from django.urls import path

from hitlchat.people import views

app_name = "people"
urlpatterns = [
    path("people/", views.people, name="list"),
    path("people/invite", views.invite, name="invite"),
    path("people/invitations/<int:invitation_id>/revoke", views.revoke, name="revoke-invitation"),
    path("people/groups", views.create_view, name="new-group"),
    path("people/groups/<int:group_id>", views.group, name="group"),
    path("people/groups/<int:group_id>/rename", views.rename_view, name="rename-group"),
    path("people/groups/<int:group_id>/delete", views.delete_view, name="delete-group"),
    path("people/groups/<int:group_id>/add", views.add_view, name="add-to-group"),
    path("people/groups/<int:group_id>/remove/<int:user_id>", views.remove_view, name="remove-from-group"),
    path("people/<int:user_id>", views.one, name="one"),
    path("people/<int:user_id>/role", views.role, name="role"),
    path("people/<int:user_id>/deactivate", views.deactivate, name="deactivate"),
    path("people/<int:user_id>/reactivate", views.reactivate, name="reactivate"),
    path("join/<str:secret>", views.join, name="join"),
    path("account", views.account, name="account"),
    path("deactivated", views.deactivated, name="deactivated"),
]
