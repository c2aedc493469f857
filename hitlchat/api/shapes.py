"""Rows as the API gives them."""

from collections.abc import Iterable
from typing import cast
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery

from hitlchat.agent import models as agent
from hitlchat.agent import runs
from hitlchat.api import audit_schemas, schemas
from hitlchat.gate import attention, batch, deciders, disclosure, who
from hitlchat.gate import models as gate
from hitlchat.gate.history import changes
from hitlchat.gate.history import row as history
from hitlchat.gate.history.row import outcome_of, ran_unasked
from hitlchat.gate.placing import queued_since
from hitlchat.gate.status import Status

# What became of the question; everything else comes after a yes.
QUESTION_ENDS: dict[str, schemas.ApprovalStatus] = {
    Status.WAITING: "pending",
    Status.DECLINED: "declined",
    Status.EXPIRED: "expired",
    Status.WITHDRAWN: "withdrawn",
}


def with_all(rows: QuerySet[gate.Approval]) -> QuerySet[gate.Approval]:
    """All that `approvals` needs of them. `given`: the id of the grant that was given with the yes, if one was."""
    grants = gate.Grant.objects.filter(approval=OuterRef("pk"))
    found = rows.annotate(given=Subquery(grants.values("pk")[:1]))
    return found.select_related("call").prefetch_related("decisions__person")


def calls() -> QuerySet[gate.ToolCall]:
    """Return the calls with all that `call` needs."""
    return history.needed(gate.ToolCall.objects.all())


def run(row: agent.Run) -> schemas.RunState:
    return schemas.RunState(
        id=row.pk,
        conversation_id=row.conversation_id,
        status=row.status,  # type: ignore[arg-type]  # the database holds it to the same words
        error=row.error or None,
        held_back=runs.count(row.turn_id),
        created_at=row.created_at,
        finished_at=row.finished_at,
    )


def summary(row: agent.Conversation) -> schemas.ConversationSummary:
    return schemas.ConversationSummary(
        id=row.pk,
        title=row.title,
        model=row.model,
        tools=row.tools,
        instructions=row.instructions,
        pinned=row.pinned_at is not None,
        archived=row.archived_at is not None,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def conversation(row: agent.Conversation) -> schemas.Conversation:
    rows = list(row.messages.shown().exclude(role=agent.Role.TOOL))
    listed = _messages(rows, calls().filter(conversation_id=row.pk))
    return schemas.Conversation(**summary(row).model_dump(), messages=listed)


def messages(row: agent.Conversation, wanted: schemas.MessagePage) -> schemas.Messages:
    rows = row.messages.shown().exclude(role=agent.Role.TOOL).order_by("-seq")
    if wanted.before is not None:
        # Of no message there is nothing before it.
        rows = rows.filter(seq__lt=Subquery(row.messages.filter(pk=wanted.before).order_by().values("seq")))
    found = list(rows[: wanted.limit + 1])
    shown = found[: wanted.limit][::-1]
    listed = _messages(shown, calls().filter(turn_id__in=[each.pk for each in shown]))
    return schemas.Messages(messages=listed, earlier=len(found) > wanted.limit)


def _messages(rows: list[agent.Message], asked: QuerySet[gate.ToolCall]) -> list[schemas.Message]:
    by_turn: dict[UUID | None, list[gate.ToolCall]] = {}
    for found in asked.order_by("position", "created_at"):
        by_turn.setdefault(found.turn_id, []).append(found)
    return [_message(row, by_turn.get(row.pk, [])) for row in rows]


def _message(row: agent.Message, asked: list[gate.ToolCall]) -> schemas.Message:
    return schemas.Message(
        id=row.pk,
        role=row.role,  # type: ignore[arg-type]
        content=row.content,
        state=row.state,  # type: ignore[arg-type]
        created_at=row.created_at,
        tool_calls=[_message_call(each) for each in asked],
    )


def _message_call(row: gate.ToolCall) -> schemas.MessageCall:
    return schemas.MessageCall(
        id=row.pk,
        tool_name=row.tool_name,
        arguments=row.arguments,
        status=Status(row.status),
        result=row.result,
        error=error(row),
        approval_id=approval_id(row),
        is_automatic=is_automatic(row),
    )


def approval(row: gate.Approval) -> schemas.Approval:
    return approvals([row])[0]


def approvals(rows: Iterable[gate.Approval]) -> list[schemas.Approval]:
    """Return the approvals, with as many queries for many as for one."""
    found = list(rows)
    waiting = [row for row in found if row.call.status == Status.WAITING]
    times, yes = batch.times(waiting), _counted(waiting)
    return [_approval(row, times.get(row.pk, 1), yes.get(row.pk)) for row in found]


def _approval(row: gate.Approval, times: int, yes: list[gate.Decision] | None) -> schemas.Approval:
    shown = row.disclosure
    return schemas.Approval(
        id=row.pk,
        call_id=row.call_id,
        tool_name=row.call.tool_name,
        arguments=row.call.arguments,
        prompt=row.prompt,
        requested_at=row.created_at,
        deadline=row.call.deadline or shown["deadline"],
        session_id=shown["conversation"],
        user_prompt=shown["userPrompt"],
        risk_level=disclosure.said(row),
        consent_digest=row.digest,
        status=QUESTION_ENDS.get(row.call.status, "approved"),
        reason=shown["reason"],
        grant_id=row.given,  # type: ignore[attr-defined]  # by `with_all`
        preview=shown.get("preview"),
        asked_times=times,
        asked_again=shown.get("again"),
        decided_by=row.call.decided_by,  # type: ignore[arg-type]
        decider_group=_group(shown.get("whoDecides")),
        quorum=row.call.quorum,
        approved_by=[each.person.get_username() for each in (_said_yes(row) if yes is None else yes)],
        who_decides=who.sentences(row),
        decisions=decisions(row),
        call_status=Status(row.call.status),
        result=row.call.result,
        error=error(row.call),
    )


def _group(rules: schemas.Object | None) -> str | None:
    return rules["group"]["name"] if rules and rules["group"] else None


def _counted(waiting: Iterable[gate.Approval]) -> dict[UUID, list[gate.Decision]]:
    """The yeses that count, of those that need several."""
    found: dict[UUID, list[gate.Decision]] = {row.pk: [] for row in waiting if row.call.quorum > 1}
    for yes in deciders.counted(approval__in=list(found)).select_related("person"):
        found[yes.approval_id].append(yes)
    return found


def _said_yes(row: gate.Approval) -> list[gate.Decision]:
    return [each for each in row.decisions.all() if each.verdict == "approve" and each.round == row.call.round]


def call(row: gate.ToolCall) -> schemas.Call:
    asked: gate.Approval | None = getattr(row, "approval", None)
    return schemas.Call(
        id=row.pk,
        tool_name=row.tool_name,
        source=row.source,
        arguments=row.arguments,
        status=Status(row.status),
        outcome=outcome_of(row),
        reason=row.reason,
        rule=row.rule,
        risk_level=row.risk_level,
        caller=row.caller_kind,  # type: ignore[arg-type]
        person=row.caller.get_username(),
        conversation_id=row.conversation_id,
        approval_id=approval_id(row),
        grant_id=row.grant_id,
        prompt=asked.prompt if asked else None,
        consent_digest=asked.digest if asked else None,
        asked_at=asked.created_at if asked else None,
        seconds_to_decide=history.seconds_to_decide(row),
        decisions=decisions(asked) if asked else [],
        result=row.result,
        error=error(row),
        output=row.output,
        requested_at=row.created_at,
        queued_since=queued_since(row),
        started_at=row.started_at,
        settled_at=row.settled_at,
        duration_ms=row.duration_ms,
        is_automatic=is_automatic(row),
    )


def decisions(row: gate.Approval) -> list[schemas.Decision]:
    return [
        schemas.Decision(
            person=each.person.get_username(),
            verdict=each.verdict,  # type: ignore[arg-type]
            reason=each.reason,
            means=each.means,
            client=each.client or None,
            token=each.token_name or None,
            decided_at=each.decided_at,
            round=each.round,
            edited_arguments=each.edited_arguments,
            first_shown_at=each.first_shown_at,
            shown_for_ms=attention.shown_for_ms(each),
            opened=each.opened,
            hurried=each.hurried,
        )
        for each in row.decisions.all()
    ]


def is_automatic(row: gate.ToolCall) -> bool:
    """Return whether it was started, or is about to be, without a person having been asked."""
    return ran_unasked(row)


def approval_id(row: gate.ToolCall) -> UUID | None:
    asked: gate.Approval | None = getattr(row, "approval", None)
    return asked.pk if asked else None


def error(row: gate.ToolCall) -> schemas.Object | None:
    """Return what went wrong: in the tool, or before anyone was asked."""
    if row.status in (Status.REJECTED, Status.REFUSED):
        return {"kind": row.status, "message": row.reason, "line": None}
    return cast("schemas.Object | None", row.error)


def event(row: gate.AuditEvent, batch: int | None) -> audit_schemas.AuditEvent:
    return audit_schemas.AuditEvent(
        id=row.pk,
        name=row.name,
        at=row.at,
        call_id=row.call_id,
        tool_name=row.call.tool_name if row.call else None,
        actor=row.actor.get_username() if row.actor else None,
        means=row.means,
        words=changes.words(row),
        data=row.data,
        batch=batch,
    )


def seal(row: gate.Seal) -> audit_schemas.AuditSeal:
    dropped: gate.Drop | None = getattr(row, "drop", None)
    return audit_schemas.AuditSeal(
        number=row.number,
        first_event=row.first,
        last_event=row.last,
        count=row.count,
        late_events=row.late,
        hash=row.hash,
        previous=row.previous,
        key=row.key_id,
        signature=row.signature,
        sealed_at=row.sealed_at,
        dropped_at=dropped.dropped_at if dropped else None,
    )
