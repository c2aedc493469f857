from django.urls import path

from hitlchat.approvals import edit_views, grant_views, policies, text_views, time_views, views
from hitlchat.approvals.history import views as history
from hitlchat.approvals.inbox import views as inbox

urlpatterns = [
    path("policies", policies.page, name="policies"),
    path("policies/example", policies.example, name="policy-example"),
    path("policies/simulate", policies.simulate, name="policy-simulate"),
    path("tools/<str:name>/rules", policies.rules, name="tool-rules"),
    path("texts", text_views.page, name="texts"),
    path("texts/example", text_views.example, name="texts-example"),
    path("tools/<str:name>/texts", text_views.page, name="tool-texts"),
    path("tools/<str:name>/texts/example", text_views.example, name="tool-texts-example"),
    path("approvals/shown", views.shown, name="shown"),
    path("approvals/", inbox.page, name="approvals"),
    path("approvals/waiting", inbox.live, name="approvals-live"),
    path("approvals/decided", inbox.decided, name="approvals-decided"),
    path("approvals/together", inbox.together, name="approvals-together"),
    path("waiting", inbox.count, name="waiting-count"),
    path("approvals/<uuid:approval_id>", views.approval, name="approval"),
    path("approvals/<uuid:approval_id>/decide", views.answer, name="decide"),
    path("approvals/<uuid:approval_id>/edit", edit_views.edit, name="edit-arguments"),
    path("approvals/<uuid:approval_id>/time-left", time_views.left, name="time-left"),
    path("approvals/<uuid:approval_id>/extend", time_views.extend, name="extend"),
    path("approvals/<uuid:approval_id>/grant", grant_views.form, name="grant-form"),
    path("history/", history.page, name="history"),
    path("history/changes", history.changed, name="history-changes"),
    path("history/export", history.export, name="history-export"),
    path("history/<uuid:call_id>", history.call, name="history-call"),
    path("history/<uuid:call_id>/attachments/<str:digest>", history.attachment, name="history-attachment"),
    path("history/<uuid:call_id>/settle", history.settle, name="history-settle"),
    path("grants/", grant_views.page, name="grants"),
    path("grants/<uuid:grant_id>/revoke", grant_views.revoke, name="revoke-grant"),
    path("approvals/<uuid:approval_id>/take-back", views.take_back, name="take-back"),
    path("approvals/<uuid:approval_id>/who", views.who, name="who"),
    path("approvals/<uuid:approval_id>/outcome", views.outcome, name="outcome"),
]
