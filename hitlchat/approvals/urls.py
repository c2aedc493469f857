from django.urls import path

from hitlchat.approvals import answering, grants, policies
from hitlchat.approvals.history import hindsight
from hitlchat.approvals.history import views as history
from hitlchat.approvals.inbox import views as inbox

urlpatterns = [
    path("policies", policies.page, name="policies"),
    path("policies/lab", policies.lab, name="policy-lab"),
    path("policies/example", policies.example, name="policy-example"),
    path("policies/simulate", policies.simulate, name="policy-simulate"),
    path("tools/<str:name>/rules", policies.rules, name="tool-rules"),
    path("texts", policies.texts, name="texts"),
    path("texts/example", policies.texts_example, name="texts-example"),
    path("tools/<str:name>/texts", policies.texts, name="tool-texts"),
    path("tools/<str:name>/texts/example", policies.texts_example, name="tool-texts-example"),
    path("approvals/shown", answering.shown, name="shown"),
    path("approvals/", inbox.page, name="approvals"),
    path("approvals/waiting", inbox.live, name="approvals-live"),
    path("approvals/decided", inbox.decided, name="approvals-decided"),
    path("approvals/together", inbox.together, name="approvals-together"),
    path("waiting", inbox.count, name="waiting-count"),
    path("approvals/<uuid:approval_id>", answering.approval, name="approval"),
    path("approvals/<uuid:approval_id>/decide", answering.answer, name="decide"),
    path("approvals/<uuid:approval_id>/reply", answering.reply, name="reply"),
    path("approvals/<uuid:approval_id>/edit", answering.edit, name="edit-arguments"),
    path("approvals/<uuid:approval_id>/time-left", answering.left, name="time-left"),
    path("approvals/<uuid:approval_id>/extend", answering.extend, name="extend"),
    path("approvals/<uuid:approval_id>/grant", grants.form, name="grant-form"),
    path("history/", history.page, name="history"),
    path("history/changes", history.changed, name="history-changes"),
    path("history/export", history.export, name="history-export"),
    path("history/<uuid:call_id>", history.call, name="history-call"),
    path("history/<uuid:call_id>/attachments/<str:digest>", history.attachment, name="history-attachment"),
    path("history/<uuid:call_id>/settle", history.settle, name="history-settle"),
    path("looking-back", hindsight.page, name="looking-back"),
    path("looking-back/<uuid:call_id>", hindsight.look_back, name="look-back"),
    path("grants/", grants.page, name="grants"),
    path("grants/<uuid:grant_id>/revoke", grants.revoke, name="revoke-grant"),
    path("approvals/<uuid:approval_id>/take-back", answering.take_back, name="take-back"),
    path("approvals/<uuid:approval_id>/who", answering.who, name="who"),
    path("approvals/<uuid:approval_id>/on-it", answering.on_it, name="on-it"),
    path("approvals/<uuid:approval_id>/why", answering.why, name="why"),
    path("approvals/<uuid:approval_id>/outcome", answering.outcome, name="outcome"),
]
