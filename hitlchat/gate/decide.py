"""A person's answer to an approval: exactly one outcome is recorded.

Everybody else who answers is told of it. An approval can be taken back while its call has not started: of that and the
start, exactly one happens.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NoReturn
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext, gettext_noop

from hitlchat.base import canonical, forms
from hitlchat.base.canonical import storable
from hitlchat.base.database import durable
from hitlchat.base.problems import Conflict, Invalid, NotFound
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import Where, compiled, condition
from hitlchat.gate import (
    absences,
    attention,
    card,
    counting,
    deciders,
    disclosure,
    oversight,
    perform,
    policy,
    provenance,
    question,
    schema,
    sources,
    stopping,
    transition,
    who,
)
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.attention import NOTHING_KNOWN, Looked
from hitlchat.gate.card import Card
from hitlchat.gate.deciders import NotEntitled, may_answer, sees, still_may_answer
from hitlchat.gate.grants import giving
from hitlchat.gate.grants.scope import Scope
from hitlchat.gate.models import Approval, Decision, Grant, ToolCall, Verdict
from hitlchat.gate.policies import Refuse
from hitlchat.gate.status import SETTLED, Status
from hitlchat.gate.transition import StaleCall, move, withdraw

logger = logging.getLogger(__name__)

PRESETS: Final = (
    gettext_noop("Not now"),
    gettext_noop("Wrong arguments"),
    gettext_noop("Too risky"),
    gettext_noop("Not what I asked for"),
)

LONGEST_REASON = 500
LONGEST_ANSWER: Final = 4000
NO_SUGGESTION: Final = gettext_noop("Say what the model should do instead.")
NO_ANSWER: Final = gettext_noop("Write the answer that the model should read.")
ASKS_YOU: Final = gettext_noop("This call asks a question: its own form takes the answer.")
UNSEEN = gettext_noop("it could not be fully inspected")
NOT_YOURS = gettext_noop("There is no approval with this id for you to decide.")
LOOK_AGAIN = gettext_noop("The waiting call is not the one you were shown. Reload and review it again.")
UNANSWERED = "nobody answered in time"

TAKEN_BACK = gettext_noop("the approval was taken back before the call started")


class BadReason(Invalid):
    """The reason, or other words, cannot reach the model as they were written; the message says why."""

    field = "reason"


class BadEdit(Invalid):
    """The edited arguments can't be approved; the message says why. `argument`: the one that it is about, if one."""

    field = "modified_arguments"

    def __init__(self, errors: Mapping[str, str] | str, argument: str = "") -> None:
        super().__init__(errors)
        self.argument = argument


class BadAnswer(BadEdit):
    """The answer to a call's question does not fit, or is missing; `errors` by the names of fields."""

    within = "modifiedArguments.answer"

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__({name or self.within: expected for name, expected in errors.items()})


class NoSuchApproval(NotFound):
    """No approval has this id, or it is not this person's to decide: both look the same from outside."""


class AlreadySettled(Conflict):
    """The question has its outcome; `call` holds it."""

    code = "already_completed"

    def __init__(self, call: ToolCall) -> None:
        super().__init__(f"This call already has its outcome: {Status(call.status).label.lower()}.")
        self.call = call


class OtherDigest(Conflict, ValueError):
    """The person consented to something else than what is waiting."""


class PassedOn(OtherDigest):
    """In a chain, it is another group's turn than when the person answered."""

    sentence = gettext_noop("Someone else of your group has approved this call: it waits for another group now.")


class OtherValue(Invalid):
    """The answer has to repeat a value of the call, and does not."""

    field = "typed"


class CautionUnread(Invalid):
    """A second model has cautioned, and the yes comes without the tick that this takes."""

    field = "caution_read"
    sentence = gettext_noop("A second model cautions about this call: read why, and confirm that you did.")


class TooLate(AlreadySettled):
    """The call started, or came to nothing, before that; `call` holds it, and the message says which."""

    def __init__(self, call: ToolCall) -> None:
        super().__init__(call)
        status = Status(call.status)
        if status == Status.WAITING:
            words = gettext_noop("The call has not run: it asks again. Decline it there.")
        elif status == Status.EXECUTING and stopping.can_stop(call):
            words = gettext_noop("Too late to withdraw: the call has started. You can stop it.")
        elif status == Status.EXECUTING:
            words = gettext_noop("Too late to withdraw: the call has started. It cannot be stopped.")
        elif status in SETTLED and call.started_at is not None:
            words = translatable(f"Too late to withdraw: the call has started. Outcome: {status.label.lower()}.")
        else:
            words = translatable(f"There is nothing to withdraw: the call did not run. Status: {status.label.lower()}.")
        self.args = (words,)


def given(decisions: Iterable[Decision]) -> str:
    """Return the words for the model, of all that was decided about a call: why it was declined, or what was said with
    a yes; empty if nothing was.

    Not by the time of each: others may have said yes with clocks that are ahead.
    """
    yes = Verdict.APPROVE
    reasons = {each.verdict == yes: each.reason for each in decisions if each.reason or each.verdict != yes}
    return reasons.get(False, reasons.get(True, ""))


def shown_reason(reason: str) -> str:
    """Return a reason in the language of the page if it is one of those offered, else as the person wrote it."""
    return gettext(reason) if reason in PRESETS else reason


def checked_reason(reason: str) -> str:
    """Return the reason as it is stored. Raises: BadReason, where it is too long, since nothing is cut."""
    # A browser sends each line's end as two characters, but counts it as one.
    reason = reason.replace("\r\n", "\n").strip()
    if len(reason) > LONGEST_REASON:
        raise BadReason(f"The reason has {len(reason):,} characters; at most {LONGEST_REASON:,} are allowed.")
    if reason != storable(reason):
        raise BadReason(gettext_noop("The reason has a character that cannot be stored, such as U+0000."))
    return reason


def checked_answer(text: str) -> str:
    """Return the answer in a tool's place as it is stored. Raises: BadReason, where it is missing or too long."""
    text = text.replace("\r\n", "\n").strip()
    if not text:
        raise BadReason({"answer": NO_ANSWER})
    if len(text) > LONGEST_ANSWER:
        raise BadReason({"answer": f"The answer has {len(text):,} characters; at most {LONGEST_ANSWER:,} are allowed."})
    if text != storable(text):
        raise BadReason({"answer": gettext_noop("The answer has a character that cannot be stored, such as U+0000.")})
    return text


def is_same(edited: dict[str, Any], arguments: dict[str, Any]) -> bool:
    """Return whether two values are the same as text: to Python, `1`, `1.0` and `True` would be equal."""
    try:
        return canonical.dumps(edited) == canonical.dumps(arguments)
    except canonical.NotJson as error:
        raise BadEdit(f"The arguments are not valid JSON: {error}.") from error


def checked(edited: dict[str, Any], call: ToolCall) -> tuple[dict[str, Any], str]:
    """Return the arguments that would run, with defaults, and the policies' reason. Raises: BadEdit."""
    if call.tool is None:
        raise BadEdit(gettext_noop("The tool was deleted."))
    if call.quorum > 1:
        raise BadEdit(f"{call.quorum} people approve this call with the same arguments, so they cannot be changed.")
    if question.is_one(call):
        edited = answered(call, edited)
    try:
        schema.validate(call.tool.input_schema, edited)
        arguments = schema.with_defaults(call.tool.input_schema, edited)
        sources.check(call.tool, arguments)
    except schema.BadArguments as error:
        raise BadEdit(str(error), error.argument) from error
    caller = disclosure.caller_of(call.approval.disclosure)
    before = call.approval.disclosure
    left = provenance.left_by_edit(before.get("provenance"), before["arguments"], arguments)
    outside = provenance.is_from_outside(left)
    judge = async_to_sync(policy.judge)
    verdict = judge(call.tool, arguments, caller, call.conversation_id, args_from_outside=outside).verdict
    if isinstance(verdict, Refuse):
        raise BadEdit(verdict.reason)
    return arguments, verdict.reason


def answered(call: ToolCall, edited: dict[str, Any] | None) -> dict[str, Any]:
    """Return what runs of a question: as it was asked, with the answer. Raises: BadAnswer"""
    try:
        return question.answered(call.arguments, edited)
    except forms.BadAnswer as error:
        raise BadAnswer(error.errors) from error


def approve(
    approval_id: UUID,
    actor: Actor,
    *,
    digest: str | None = None,
    edited: dict[str, Any] | None = None,
    grant: Scope | None = None,
    reason: str = "",
    looked: Looked = NOTHING_KNOWN,
) -> Approval:
    """Say yes to exactly this call, or to it with `edited` arguments; with a `grant`, also to calls like it. `reason`
    reaches the model as data, beside the result.

    Where several people have to say yes, the call still waits after all but the last of them.

    NoSuchApproval, NotEntitled, AlreadySettled, AlreadyCounted, PassedOn, BadEdit, BadGrant. OtherDigest: `digest` is
    not the waiting one's, or missing although the call was asked about more than once. OtherValue: a page's answer
    lacks the value that its card asks for. CautionUnread, wherever the answer comes from.
    """
    approval = open_to(approval_id, actor)
    whole = _whole(approval)
    deciders.require(actor, approval)
    decision = _decision(approval, actor, Verdict.APPROVE, looked, reason)
    # Once it was asked about again, an answer that does not say to what it is one may be a late one to the first time.
    if digest != approval.digest and (digest is not None or approval.call.round > 1):
        raise OtherDigest(LOOK_AGAIN)
    if looked.typed is not None:
        _require_value(whole, approval, actor, looked.typed)
    only_if = _is_in_time() & still_may_answer(actor, approval.call, decision.absent)
    only_if &= deciders.still(actor, approval) & _has_its_tick(approval, looked)
    columns: dict[str, Any] = {}
    if question.is_one(approval.call):
        edited = answered(approval.call, edited)
    if edited is not None and not is_same(edited, approval.call.arguments):
        columns["arguments"], _ = checked(edited, approval.call)
        decision.edited_arguments = columns["arguments"]
        assert approval.call.tool is not None
        shown = disclosure.with_edit(approval.disclosure, columns["arguments"], approval.call.tool)
        decision.digest = disclosure.digest(shown)
        # What everyone reads from now on is what runs.
        approval.prompt = storable(shown["prompt"])
    runs: Any = columns.get("arguments", approval.call.arguments)
    given = giving.planned(approval, grant, actor, runs) if grant is not None else None
    return _decide(decision, Status.APPROVED, actor, only_if, columns, given=given)


def decline(
    approval_id: UUID, actor: Actor, *, reason: str = "", suggests: bool = False, looked: Looked = NOTHING_KNOWN
) -> Approval:
    """Say no; one is enough, whoever said yes. `reason` reaches the model as data; one that `suggests` as what to do
    instead, and then the model may call the tool again.

    NoSuchApproval, NotEntitled, AlreadySettled, BadReason; OtherDigest: asked again just now.
    """
    if suggests and not reason.strip():
        raise BadReason({"instead": NO_SUGGESTION})
    approval = open_to(approval_id, actor)
    decision = _decision(approval, actor, Verdict.SUGGEST if suggests else Verdict.DECLINE, looked, reason)
    only_if = _is_in_time() & still_may_answer(actor, approval.call, decision.absent)
    return _decide(decision, Status.DECLINED, actor, only_if, {}, unlike=giving.unlike(approval.call))


def answer(approval_id: UUID, actor: Actor, text: str, *, looked: Looked = NOTHING_KNOWN) -> Approval:
    """Say no, and answer in the tool's place: it does not run, and the model reads `text` as a person's.

    As of a no, one is enough. NoSuchApproval, NotEntitled, AlreadySettled, OtherDigest as for `decline`; BadReason,
    also for a call that asks a question, which has an answer of its own.
    """
    text = checked_answer(text)
    approval = open_to(approval_id, actor)
    if question.is_one(approval.call):
        raise BadReason({"answer": ASKS_YOU})
    decision = _decision(approval, actor, Verdict.ANSWER, looked, "")
    only_if = _is_in_time() & still_may_answer(actor, approval.call, decision.absent)
    return _decide(decision, Status.ANSWERED, actor, only_if, {"result": text}, unlike=giving.unlike(approval.call))


def open_to(approval_id: UUID, actor: Actor) -> Approval:
    """Return a question that waits and that `actor` may answer. NoSuchApproval, NotEntitled, AlreadySettled."""
    found, may = _waiting(approval_id, actor)
    if not may:
        require(actor, found)
    return found


def waiting_before(approval_id: UUID, actor: Actor) -> Approval:
    """Return a question that waits and that `actor` sees, whoever decides. NoSuchApproval, AlreadySettled."""
    return _waiting(approval_id, actor)[0]


def _waiting(approval_id: UUID, actor: Actor) -> tuple[Approval, bool]:
    """Return it, and whether `actor` may answer it, which is read once."""
    found = _of_id(approval_id).one()
    may = found is not None and may_answer(actor, found)
    if found is None or not (may or sees(actor, found)):
        raise NoSuchApproval(NOT_YOURS)
    if found.call.status != Status.WAITING:
        raise AlreadySettled(found.call)
    return found, may


def require(actor: Actor, approval: Approval) -> None:
    """Require that `actor` may answer. Raises: NoSuchApproval; NotEntitled, where they see it and others decide."""
    if not sees(actor, approval):
        raise NoSuchApproval(NOT_YOURS)
    if not may_answer(actor, approval):
        raise NotEntitled(f"You cannot decide this call. {who.sentences(approval)}")


def expire(call: ToolCall) -> bool:
    """Close a waiting call whose deadline has passed by the database's clock; False if it was closed otherwise."""
    try:
        data = {"reason": UNANSWERED, "deadline": call.deadline.isoformat() if call.deadline else None}
        move(call, Status.EXPIRED, actor=SYSTEM, only_if=_is_overdue(), data=data)
    except StaleCall:
        return False
    return True


def expire_overdue() -> int:
    """Close what nobody answered in time; at most 500 at once."""
    overdue = ToolCall.objects.filter(status=Status.WAITING, deadline__lte=Now()).order_by("deadline")[:500]
    return sum(expire(call) for call in overdue)


def take_back(call_id: UUID, actor: Actor) -> ToolCall:
    """Withdraw a call that `actor` approved and that has not started, and any grant given with it; one that waits for
    more people's yes goes on to wait, without theirs. NoSuchApproval, TooLate.
    """
    yes = Decision.objects.filter(approval__call=call_id, person_id=actor.user_id, verdict=Verdict.APPROVE)
    if not (actor.is_person and yes.exists()):
        raise NoSuchApproval(NOT_YOURS)
    with durable():
        # Locked, by a write: another yes, and the start, come before this or after it.
        ToolCall.objects.filter(pk=call_id).update(round=F("round"))
        call = ToolCall.objects.get(pk=call_id)
        if counting.take_back_yes(call, actor):
            return call
        if call.status == Status.APPROVED and withdraw(call, TAKEN_BACK, actor=actor):
            giving.revoke_given_with(call_id, actor)
            return call
    raise TooLate(call)


def take_back_approval(approval_id: UUID, actor: Actor) -> ToolCall:
    """The same, by the id of the approval."""
    found = Approval.objects.filter(pk=approval_id).values_list("call_id", flat=True).first()
    if found is None:
        raise NoSuchApproval(NOT_YOURS)
    return take_back(found, actor)


@condition
def _is_in_time() -> Q:
    """Judged by the database's clock, so that a late yes is refused even if no sweeper ran and clocks differ."""
    return Q(deadline__gt=Now())


@condition
def _is_overdue() -> Q:
    return ~Q(deadline__gt=Now())


@compiled
def _of_id(approval_id: UUID) -> QuerySet[Approval]:
    return Approval.objects.select_related("call__tool").filter(pk=approval_id)


def _whole(approval: Approval) -> Card:
    """Return the card. A call whose card cannot be laid out is withdrawn: nobody can say yes to what nobody can see.
    AlreadySettled.
    """
    try:
        return card.card(approval)
    except (LookupError, TypeError, ValueError, AttributeError):
        logger.exception("The card of call %s cannot be laid out", approval.call_id)
        withdraw(approval.call, UNSEEN)
        raise AlreadySettled(ToolCall.objects.get(pk=approval.call_id)) from None


def _require_value(whole: Card, approval: Approval, actor: Actor, typed: str) -> None:
    matter = card.matter(whole, approval.disclosure, actor)
    if matter is None or matter.is_given(typed):
        return
    if not typed.strip():
        raise OtherValue(gettext_noop("This approval asks for a value of the call, which is missing."))
    raise OtherValue(gettext_noop("This is not the value on the card. Look at it again."))


def _has_its_tick(approval: Approval, looked: Looked) -> Where:
    """Return the condition that no caution takes a tick, for a yes without one. Raises: CautionUnread"""
    if looked.caution_read:
        return Where()
    if approval.call.caution_takes_tick:
        raise CautionUnread
    return _takes_no_tick()


@condition
def _takes_no_tick() -> Q:
    return ~Q(caution_takes_tick=True)


def _decision(approval: Approval, actor: Actor, verdict: Verdict, looked: Looked, reason: str) -> Decision:
    if actor.user_id is None:
        raise NoSuchApproval(gettext_noop("Only a person can decide."))
    _, absent = deciders.right_of(actor, approval.call)
    decision = Decision(
        approval=approval,
        person_id=actor.user_id,
        absent=absent,
        absent_name=absent.get_username() if absent else "",
        for_group=approval.call.decider_group if oversight.in_turn(approval.disclosure["whoDecides"]) else None,
        round=approval.call.round,
        verdict=verdict,
        means=actor.means,
        client=actor.client,
        token_name=actor.token,
        reason=storable(reason).strip()[:LONGEST_REASON],
        digest=approval.digest,
    )
    return attention.weigh(decision, looked)


def _decide(
    decision: Decision,
    to: Status,
    actor: Actor,
    only_if: Where,
    columns: dict[str, Any],
    *,
    given: Grant | None = None,
    unlike: Collection[UUID] = (),
) -> Approval:
    approval, call = decision.approval, decision.approval.call
    data: dict[str, Any] = {"approval": str(approval.pk), "digest": decision.digest, "reason": decision.reason}
    data |= {"answer": columns["result"]} if to == Status.ANSWERED else {}
    data |= {"for": {"id": decision.absent_id, "name": decision.absent_name}} if decision.absent_id else {}
    data |= attention.facts(decision) | {"decision": transition.decision_digest(decision)}
    if decision.edited_arguments is not None:
        data |= {"edited": decision.edited_arguments, "prompt": approval.prompt}
    try:
        with perform.claiming() as claim_now, durable():
            if decision.absent_id is not None:
                absences.hold(decision.absent_id, decision.person_id)
            if to == Status.APPROVED and call.quorum > 1:
                if counting.add_yes(decision, actor, only_if=only_if, data=data):
                    move(call, to, actor=actor, only_if=only_if, data=data)
                    claim_now(call.pk)
                return approval
            move(call, to, actor=actor, only_if=only_if, data=data, **columns)
            _save(decision)
            if given is not None:
                giving.give(given, actor)
            if to == Status.APPROVED:
                claim_now(call.pk)
            else:
                giving.declined(call, actor, unlike)
    except StaleCall:
        _too_late(approval, actor)
    return approval


def _save(decision: Decision) -> None:
    if decision.approval.call.quorum > 1:
        counting.drop_yes(decision)
    decision.save(force_insert=True)
    if decision.edited_arguments is not None:
        decision.approval.save(update_fields=["prompt"])


def _too_late(approval: Approval, actor: Actor) -> NoReturn:
    call = ToolCall.objects.get(pk=approval.call_id)
    # Late, or other people decide by now than when it was asked.
    if call.status == Status.WAITING and not (
        expire(call) or (oversight.has_changed(call) and withdraw(call, oversight.CHANGED))
    ):
        call = ToolCall.objects.get(pk=call.pk)
    if call.status == Status.WAITING:
        if call.decider_group != approval.call.decider_group:
            raise PassedOn
        deciders.require(actor, open_to(approval.pk, actor))
        raise OtherDigest(LOOK_AGAIN)
    raise AlreadySettled(ToolCall.objects.get(pk=call.pk))
