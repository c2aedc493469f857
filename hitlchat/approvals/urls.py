from django.urls import include, path

from hitlchat.approvals import edit_views, grant_views, policies, rules_views, text_views, time_views, views

urlpatterns = [
    path("policies", policies.page, name="policies"),
    path("policies/example", policies.example, name="policy-example"),
    path("policies/simulate", policies.simulate, name="policy-simulate"),
    path("tools/<str:name>/rules", rules_views.rules, name="tool-rules"),
    path("texts", text_views.page, name="texts"),
    path("texts/example", text_views.example, name="texts-example"),
    path("tools/<str:name>/texts", text_views.page, name="tool-texts"),
    path("tools/<str:name>/texts/example", text_views.example, name="tool-texts-example"),
    path("approvals/shown", views.shown, name="shown"),
    path("", include("hitlchat.approvals.inbox.urls")),
    path("approvals/<uuid:approval_id>", views.approval, name="approval"),
    path("approvals/<uuid:approval_id>/decide", views.answer, name="decide"),
    path("approvals/<uuid:approval_id>/edit", edit_views.edit, name="edit-arguments"),
    path("approvals/<uuid:approval_id>/time-left", time_views.left, name="time-left"),
    path("approvals/<uuid:approval_id>/extend", time_views.extend, name="extend"),
    path("approvals/<uuid:approval_id>/grant", grant_views.form, name="grant-form"),
    path("history/", include("hitlchat.approvals.history.urls")),
    path("grants/", grant_views.page, name="grants"),
    path("grants/<uuid:grant_id>/revoke", grant_views.revoke, name="revoke-grant"),
    path("approvals/<uuid:approval_id>/take-back", views.take_back, name="take-back"),
    path("approvals/<uuid:approval_id>/who", views.who, name="who"),
    path("approvals/<uuid:approval_id>/outcome", views.outcome, name="outcome"),
]
