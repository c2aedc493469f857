"""Whatever happens to a call, in whatever way, is on record: what was shown or what it was, and why."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from hitlchat.base import canonical
from hitlchat.gate import decide, perform
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import AuditEvent, Tool, ToolCall
from hitlchat.gate.settling import ABANDONED, sweep
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from hitlchat.gate.stopping import withdraw_call
from hitlchat.record.sealing import seal_all
from tests.conftest import signed_in
from tests.gate.asking import approval_of, approved, ask, fresh, recording, run, say_yes
from tests.gate.conftest import previews
from tests.gate.deciding_people import approver, rule
from tests.gate.granting import HERE, conditional, granted
from tests.gate.policy_rules import ALLOWS, REFUSES
from tests.record.conftest import found

__all__ = ["previews"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.guarantee("audit:complete"),
]


def another(**columns: Any) -> Tool:
    """Several stories are told in one database, each of a tool of its own."""
    return recording(f"refund_{Tool.objects.count()}", **columns)


def rejected(bob: User) -> ToolCall:
    return ask(bob, another(), {"wrong": 1})


def waiting(bob: User) -> ToolCall:
    return ask(bob, another())


def approved_with_an_edit(bob: User) -> ToolCall:
    call = waiting(bob)
    say_yes(bob, call, edited={"text": "other", "amount": 2})
    return call


def declined(bob: User) -> ToolCall:
    call = waiting(bob)
    decide.decline(approval_of(call).pk, signed_in(bob), reason="Not today.")
    return call


def declined_with_what_to_do_instead(bob: User) -> ToolCall:
    call = waiting(bob)
    decide.decline(approval_of(call).pk, signed_in(bob), reason="Use customer 12.", suggests=True)
    return call


def answered(bob: User) -> ToolCall:
    call = waiting(bob)
    decide.answer(approval_of(call).pk, signed_in(bob), "Customer 12")
    return call


def expired(bob: User) -> ToolCall:
    call = waiting(bob)
    ToolCall.objects.filter(pk=call.pk).update(deadline=timezone.now() - timedelta(hours=1))
    sweep()
    return call


def withdrawn(bob: User) -> ToolCall:
    call = waiting(bob)
    withdraw_call(call.pk, actor=SYSTEM, why="its conversation was ended")
    return call


def abandoned(bob: User) -> ToolCall:
    call = allowed(bob)
    ToolCall.objects.filter(pk=call.pk).update(created_at=timezone.now() - 2 * ABANDONED)
    sweep()
    return call


def allowed(bob: User) -> ToolCall:
    return ask(bob, another(mode="DISABLED"))


def executing(bob: User) -> ToolCall:
    call = approved(bob, another())
    assert perform.claim(call.pk) is not None
    return call


def succeeded(bob: User) -> ToolCall:
    call = approved(bob, another())
    assert run(call)
    return call


def failed(bob: User) -> ToolCall:
    call = approved(bob, another(source="failing"))
    assert run(call)
    return call


def unknown(bob: User) -> ToolCall:
    call = executing(bob)
    ToolCall.objects.filter(pk=call.pk).update(lease_until=timezone.now() - timedelta(hours=1))
    perform.lose_overdue()
    return call


# How a call comes to each status, and what the event of that says besides.
STORIES: dict[Callable[[User], ToolCall], tuple[Status, set[str]]] = {
    rejected: (Status.REJECTED, {"reason", "tool", "argumentsDigest"}),
    waiting: (Status.WAITING, {"reason", "spoke", "approval", "digest"}),
    approved_with_an_edit: (Status.APPROVED, {"approval", "digest", "edited"}),
    declined: (Status.DECLINED, {"approval", "digest", "reason"}),
    declined_with_what_to_do_instead: (Status.DECLINED, {"approval", "digest", "reason"}),
    answered: (Status.ANSWERED, {"approval", "digest", "answer"}),
    expired: (Status.EXPIRED, {"reason", "deadline"}),
    withdrawn: (Status.WITHDRAWN, {"reason"}),
    abandoned: (Status.WITHDRAWN, {"reason"}),
    allowed: (Status.ALLOWED, {"reason", "spoke", "tool", "argumentsDigest"}),
    executing: (Status.EXECUTING, set()),
    succeeded: (Status.SUCCEEDED, set()),
    failed: (Status.FAILED, set()),
    unknown: (Status.UNKNOWN, {"reason"}),
}


def last(call: ToolCall) -> AuditEvent:
    event: AuditEvent | None = AuditEvent.objects.filter(call=call).last()
    assert event is not None
    return event


def first(call: ToolCall) -> dict[str, Any]:
    return dict(AuditEvent.objects.filter(call=call).earliest("pk").data)


def disclosures(call: ToolCall) -> list[dict[str, Any]]:
    """Return all that were shown, the first one first."""
    asked = AuditEvent.objects.filter(call=call, name="call.waiting").order_by("pk")
    return [event.data["before"] for event in asked if "before" in event.data] + [approval_of(call).disclosure]


def test_every_status_has_a_story() -> None:
    # The one that is left has its test below: a refusal needs a rule.
    assert {status for status, _ in STORIES.values()} | {Status.REFUSED} == set(Status)


@pytest.mark.guarantee("SR-45", "SR-46")
@pytest.mark.servers("each database has triggers of its own")
def test_each_step_is_on_record_with_why(subtests: pytest.Subtests, bob: User) -> None:
    for story, (status, says) in STORIES.items():
        with subtests.test(story.__name__):
            call = fresh(story(bob))
            event = last(call)
            assert (call.status, event.name) == (status, f"call.{status.value}")
            assert all(event.data[name] for name in says)
            begun = first(call)
            if "digest" in begun:
                assert [canonical.sha256(each) for each in disclosures(call)] == [begun["digest"]]
            else:
                assert begun["argumentsDigest"] == canonical.sha256(call.arguments)
    seal_all()
    assert found() == []


@pytest.mark.guarantee("SR-47")
def test_what_is_not_asked_names_what_allowed_or_refused_it(bob: User, settings: Settings) -> None:
    def spoke(call: ToolCall) -> list[tuple[str, str, str]]:
        return [(each["policy"], each["verdict"], each["source"]) for each in first(call)["spoke"]]

    assert spoke(allowed(bob)) == [("mode", "allow", "tool")]
    by_condition = ask(bob, recording("small", mode="CONDITIONAL", condition='args["amount"] > 10'))
    assert spoke(by_condition) == [("condition", "allow", "tool")]
    settings.HITL_POLICIES = [ALLOWS]
    assert spoke(ask(bob, conditional(name="ruled"))) == [("never_ask", "allow", "settings")]
    settings.HITL_POLICIES = [REFUSES]
    refused = ask(bob, conditional(name="denied"))
    assert (refused.status, spoke(refused)) == (Status.REFUSED, [("deny_list", "refuse", "settings")])
    settings.HITL_ENABLED = False
    assert spoke(ask(bob, recording("off"))) == [("HITL_ENABLED", "allow", "installation")]


@pytest.mark.guarantee("SR-47")
def test_what_runs_on_a_grant_names_it(bob: User) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=3)
    call = ask(bob, tool, conversation_id=HERE)
    assert call.status == Status.ALLOWED
    assert first(call)["grant"] == str(grant.pk)
    used = AuditEvent.objects.get(call=call, name="grant.used").data
    assert (used["grant"], used["used"]) == (str(grant.pk), 1)


def test_each_of_several_yeses_is_on_record(alice: User, bob: User) -> None:
    tool = recording()
    people = [approver(name) for name in ("dora", "emil")]
    rule(tool, alice, quorum=2)
    call = ask(bob, tool)
    for person in people:
        decide.approve(approval_of(call).pk, signed_in(person))
    said = AuditEvent.objects.filter(call=call, actor__in=people).order_by("pk")
    assert [(event.name, event.actor_id) for event in said] == [
        ("call.counted", people[0].pk),
        ("call.approved", people[1].pk),
    ]
    assert {event.data["digest"] for event in said} == {approval_of(call).digest}


@pytest.mark.guarantee("SR-46")
def test_what_was_shown_the_first_time_can_be_proven_after_asking_again(bob: User, previews: list[Any]) -> None:
    previews[:] = [Preview(text="Refunds 1 EUR"), Preview(text="Refunds 9 EUR")]
    call = approved(bob, recording(source="previewing"))
    assert not run(call)
    asked = AuditEvent.objects.filter(call=call, name="call.waiting").order_by("pk")
    digests = [event.data["digest"] for event in asked]
    assert len(set(digests)) == 2
    assert [canonical.sha256(each) for each in disclosures(call)] == digests
    assert disclosures(call)[0]["preview"]["text"] == "Refunds 1 EUR"
