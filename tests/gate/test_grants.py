"""A bounded standing yes: what it covers, what it never covers, and what ends it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from hitlchat.accounts.models import Token, TokenKind
from hitlchat.gate import batch, decide, perform
from hitlchat.gate.actor import Actor, Caller
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.grants.scope import BadGrant, Scope
from hitlchat.gate.models import AuditEvent, Decision, Grant, Oversight, Tool, ToolCall, new_id
from hitlchat.gate.settling import sweep
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from hitlchat.gate.stopping import is_requested
from hitlchat.gate.submit import CallRequest, submit
from tests.conftest import caller, signed_in
from tests.gate.asking import approval_of, ask, events, fresh, recording, run, say_yes, status
from tests.gate.granting import HERE, again, conditional, covered, granted, runs
from tests.gate.policy_rules import ASKS, REFUSES
from tests.tables import each_row

pytestmark = pytest.mark.django_db


def named(name: str) -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(name=name))


@pytest.mark.guarantee("audit:complete")
def test_so_many_calls_run_unasked_and_then_it_asks_again(bob: User, entered: list[ToolCall]) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=2)
    first = ask(bob, tool, conversation_id=new_id())
    assert (first.status, first.grant_id) == (Status.ALLOWED, grant.pk)
    assert first.reason.startswith("Not asked because of a grant: refund runs without asking for the next 2 calls ")
    assert first.reason.endswith("this is use 1 of 2).")
    assert run(first)
    assert events(first) == ["call.allowed", "grant.used", "call.executing", "call.succeeded"]
    allowed = AuditEvent.objects.get(call=first, name="call.allowed").data
    assert (allowed["isAutomatic"], allowed["grant"], allowed["reason"]) == (True, str(grant.pk), first.reason)
    assert runs(bob, tool)
    assert not runs(bob, tool)
    assert again(grant).used == 2
    assert [event.data["scope"] for event in named("grant.given")] == [scope.sentence(grant)]
    assert len(named("grant.used_up")) == 1
    assert [call.pk for call in entered] == [first.pk]


def test_it_is_given_together_with_the_yes_or_not_at_all(bob: User) -> None:
    call = ask(bob, conditional())
    for wrong in (Scope(), Scope(same_arguments=True), Scope(condition="True"), Scope(calls=0), Scope(minutes=1441)):
        with pytest.raises(BadGrant):
            say_yes(bob, call, grant=wrong)
    assert (status(call), Decision.objects.count(), Grant.objects.count()) == (Status.WAITING, 0, 0)
    decide.decline(approval_of(call).pk, signed_in(bob))
    with pytest.raises(decide.AlreadySettled):
        say_yes(bob, call, grant=Scope(calls=2))
    assert not Grant.objects.exists()


def test_what_is_wrong_with_a_scope_is_said_at_its_part(subtests: pytest.Subtests, bob: User) -> None:
    call = ask(bob, conditional())
    wanted: Any
    for wanted, part, expected in [
        ({}, "grant", "needs a limit"),
        ({"calls": 0}, "calls", "from 1 to 100"),
        ({"calls": 101}, "calls", "from 1 to 100"),
        ({"minutes": 0}, "minutes", "from 1 to 1440"),
        ({"minutes": 5, "until": timezone.now()}, "minutes", "not both"),
        ({"until": timezone.now() - timedelta(hours=1)}, "until", "within the next 24 hours"),
        ({"until": timezone.now() + timedelta(days=30)}, "until", "within the next 24 hours"),
        ({"calls": 1, "condition": "args["}, "condition", "For this call, the condition failed"),
        ({"calls": 1, "condition": "1"}, "condition", "neither true nor false"),
        ({"calls": 1, "condition": "x" * 501}, "condition", "at most 500"),
    ]:
        with subtests.test(wanted=wanted):
            with pytest.raises(BadGrant) as refused:
                say_yes(bob, call, grant=Scope(**wanted))
            assert expected in refused.value.errors[part]


@pytest.mark.guarantee("gate:same-call")
@time_machine.travel(datetime(2026, 1, 31, 14, 30, tzinfo=UTC))
def test_what_is_offered_names_the_day_unless_that_is_today(settings: Settings) -> None:
    settings.TIME_ZONE = "UTC"
    untils = [timezone.now() + timedelta(hours=hours) for hours in (9, 24)]
    ends = [scope.offer("refund", Scope(until=until)).rpartition(" until ")[2] for until in untils]
    assert ends == ["23:30 UTC.", "1 Feb 14:30 UTC."]


def test_each_part_of_a_scope_narrows_it(bob: User) -> None:
    tool = conditional()
    granted(bob, tool, {"text": "same"}, same_arguments=True, this_conversation=True, condition='args["amount"] < 9')
    # The default counts as what it is.
    assert runs(bob, tool, {"amount": 1, "text": "same"})
    assert not runs(bob, tool, {"text": "same"}, conversation_id=new_id())
    assert not runs(bob, tool, {"text": "other"})
    assert not runs(bob, tool, {"text": "same", "amount": 2})


@each_row("given, wanted", [(5, 5.0), (5.0, 5), ([1, {"a": 2.0}], [1.0, {"a": 2}])])
def test_the_same_arguments_are_the_same_however_numbers_are_written(bob: User, given: Any, wanted: Any) -> None:
    tool = conditional(input_schema={"type": "object", "properties": {"n": {}}})
    granted(bob, tool, {"n": given}, same_arguments=True, calls=5)
    assert runs(bob, tool, {"n": wanted})
    assert not runs(bob, tool, {"n": str(given)})


def test_one_is_not_true_to_a_grant(bob: User) -> None:
    tool = conditional(input_schema={"type": "object", "properties": {"n": {}}})
    granted(bob, tool, {"n": 1}, same_arguments=True, calls=5)
    assert not runs(bob, tool, {"n": True})


def test_a_condition_covers_what_it_holds_for_and_an_error_covers_nothing(bob: User) -> None:
    tool = conditional()
    granted(bob, tool, {"text": "1"}, minutes=5, condition='int(args["text"]) < args["amount"] + 5')
    assert runs(bob, tool, {"text": "5"})
    assert not runs(bob, tool, {"text": "6"})
    assert not runs(bob, tool, {"text": "six"})


def test_the_edited_arguments_are_those_that_count(bob: User) -> None:
    tool = conditional()
    call = ask(bob, tool, {"text": "asked"})
    say_yes(bob, call, edited={"text": "edited", "amount": 1}, grant=Scope(same_arguments=True, calls=5))
    assert not runs(bob, tool, {"text": "asked"})
    assert runs(bob, tool, {"text": "edited"})


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_nobody_elses_calls_and_no_other_way_in_are_covered(bob: User, charlie: User) -> None:
    tool, same_name = conditional(), conditional(name="other")
    granted(bob, tool, minutes=60)
    assert not runs(charlie, tool)
    assert not runs(bob, same_name)
    for kind in ("mcp", "studio", "api"):
        assert not runs(bob, tool, kind=kind)
    assert runs(bob, tool)


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_of_an_mcp_client_only_calls_with_the_same_token_are_covered_as_long_as_that_is_valid(bob: User) -> None:
    tool = conditional()
    mine, other = (Token.objects.create(user=bob, kind=TokenKind.MCP, digest=digest) for digest in "ab")

    def call_with(token: Token | None) -> ToolCall:
        who = Caller("mcp", bob.pk, "bob", token.pk if token else None)
        return async_to_sync(submit)(CallRequest(tool.name, {"text": "a"}, who))

    say_yes(bob, call_with(mine), grant=Scope(calls=5))
    assert [call_with(token).status for token in (other, None, mine)] == [
        Status.WAITING,
        Status.WAITING,
        Status.ALLOWED,
    ]
    Token.objects.filter(pk=mine.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert call_with(mine).status == Status.WAITING
    assert Grant.objects.get().why == "the token it was given for was revoked or expired"


# -- Never ----------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run", "SR-43")
@each_row(
    "columns,why",
    [
        ({"mode": "REQUIRED"}, "asks every time"),
        ({"risk_level": 5, "mode": "CONDITIONAL"}, "L5"),
        ({"risk_inherent": 5, "mode": "CONDITIONAL"}, "L5"),
    ],
    ids=["REQUIRED", "L5", "L5 without what asking takes off"],
)
def test_a_tool_that_asks_every_time_or_is_of_the_highest_risk_gets_none(
    columns: dict[str, Any], why: str, bob: User
) -> None:
    call = ask(bob, recording(**columns))
    assert why in str(giving.why_not(approval_of(call), signed_in(bob)))
    with pytest.raises(BadGrant, match=why):
        say_yes(bob, call, grant=Scope(calls=1))
    assert status(call) == Status.WAITING


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_what_a_rule_of_the_installation_asks_about_gets_none_and_is_not_covered(bob: User, settings: Settings) -> None:
    tool = conditional()
    granted(bob, tool, minutes=60)
    settings.HITL_POLICIES = [ASKS]
    call = ask(bob, tool, conversation_id=HERE)
    assert call.status == Status.WAITING
    with pytest.raises(BadGrant, match="A rule of this installation asked"):
        say_yes(bob, call, grant=Scope(calls=1))
    settings.HITL_POLICIES = [REFUSES]
    assert ask(bob, tool, conversation_id=HERE).status == Status.REFUSED


def test_a_condition_of_the_tool_that_gives_no_answer_is_asked_about_by_itself(bob: User) -> None:
    call = ask(bob, conditional(condition='args["nothing"] > 1'))
    with pytest.raises(BadGrant, match="a condition failed"):
        say_yes(bob, call, grant=Scope(calls=1))


@pytest.mark.guarantee("gate:only-people", "SR-27")
@each_row("means", ["elicitation", "system", "console", "api", ""])
def test_only_a_signed_in_person_or_their_token_gives_one(means: Any, bob: User) -> None:
    call = ask(bob, conditional(), kind="mcp")
    with pytest.raises((BadGrant, decide.NoSuchApproval)):
        decide.approve(approval_of(call).pk, Actor(bob.pk, means), grant=Scope(calls=1))
    assert (status(call), Grant.objects.count()) == (Status.WAITING, 0)
    decide.approve(approval_of(call).pk, Actor(bob.pk, "token"), grant=Scope(calls=1))


def test_a_call_that_waited_since_before_there_were_grants_gets_none(bob: User) -> None:
    call = ask(bob, conditional())
    ToolCall.objects.update(grantable=False)
    with pytest.raises(BadGrant):
        say_yes(bob, call, grant=Scope(calls=1))


def test_several_answered_together_give_none(bob: User) -> None:
    tool = conditional()
    both = [approval_of(ask(bob, tool)) for _ in range(2)]
    batch.answer([batch.Item(each.pk, each.digest) for each in both], "approve", signed_in(bob))
    assert not Grant.objects.exists()


# -- Void -----------------------------------------------------------------------------------------------------------

CHANGES: dict[str, tuple[Callable[[Tool], Any], str]] = {
    "definition": (lambda tool: Tool.objects.update(definition_hash="e" * 64), "definition or connection changed"),
    "name": (lambda tool: Tool.objects.update(name="other"), "name changed"),
    "source": (lambda tool: Tool.objects.update(source="failing"), "source changed"),
    "risk": (lambda tool: Tool.objects.update(risk_level=1), "risk changed"),
    "risk without what asking takes off": (lambda tool: Tool.objects.update(risk_inherent=5), "no call of this tool"),
    "who decides": (lambda tool: Oversight.objects.create(tool=tool, decided_by="approvers"), "who decides"),
    "mode": (lambda tool: Tool.objects.update(hitl_mode="REQUIRED"), "asks every time"),
    "condition": (lambda tool: Tool.objects.update(condition="True"), "rules that it was given under changed"),
    "published": (lambda tool: Tool.objects.update(published=False), "unpublished"),
    "deleted": (lambda tool: tool.delete(), "deleted"),
    "deactivated": (lambda tool: User.objects.update(is_active=False), "deactivated"),
}


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:fail-closed", "SR-14", "SR-28", "SR-43")
@each_row("change", CHANGES)
def test_any_change_voids_it_stops_what_it_let_in_and_is_recorded(
    change: str, bob: User, entered: list[ToolCall]
) -> None:
    tool = conditional()
    grant = granted(bob, tool, minutes=60)
    call, started = covered(bob, tool), covered(bob, tool)
    assert perform.claim(started.pk)
    how, why = CHANGES[change]
    how(tool)
    assert not run(call)
    assert status(call) == Status.WITHDRAWN
    sweep()
    assert (again(grant).end, len(named("grant.voided"))) == ("voided", 1)
    assert why in again(grant).why
    assert (entered, is_requested(fresh(started))) == ([], True)
    User.objects.update(is_active=True)


@pytest.mark.guarantee("gate:same-call")
@each_row("column,value", [("arguments", {"text": "other"}), ("conversation_id", new_id()), ("caller_kind", "api")])
def test_what_it_let_in_does_not_start_as_another_call(
    column: str, value: Any, bob: User, entered: list[ToolCall]
) -> None:
    tool = conditional()
    granted(bob, tool, calls=5, same_arguments=True, this_conversation=True)
    call = covered(bob, tool)
    ToolCall.objects.filter(pk=call.pk).update(**{column: value})
    assert not run(call)
    assert (fresh(call).reason, entered) == ("Not run: its grant is for other calls.", [])


def test_one_whose_tool_is_gone_with_its_server_says_so(bob: User) -> None:
    grant = granted(bob, conditional(source="going"), calls=2)
    Tool.objects.update(published=False)
    assert scope.why_void(again(grant)) == "its server shop does not answer"


def test_a_tool_that_is_back_as_it_was_is_asked_about_again(bob: User) -> None:
    tool = conditional()
    granted(bob, tool, minutes=60)
    Tool.objects.update(risk_level=3)
    assert not runs(bob, tool)
    Tool.objects.update(risk_level=tool.risk_level)
    assert not runs(bob, tool)


# -- Revoked --------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:truth")
def test_revoking_ends_it_and_fences_what_has_not_started(bob: User, entered: list[ToolCall]) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=5)
    call = covered(bob, tool)
    giving.revoke(grant.pk, signed_in(bob))
    assert (status(call), fresh(call).reason) == (
        Status.WITHDRAWN,
        "Not run: its grant was revoked: bob revoked it.",
    )
    assert (run(call), runs(bob, tool), entered) == (False, False, [])
    giving.revoke(grant.pk, signed_in(bob))
    assert len(named("grant.revoked")) == 1


def test_only_its_person_and_administrators_revoke_it(bob: User, charlie: User, alice: User) -> None:
    tool = conditional()
    grant = granted(bob, tool, minutes=5)
    for stranger in (signed_in(charlie), Actor(bob.pk, "system"), Actor(bob.pk, "elicitation"), Actor(None, "session")):
        with pytest.raises(giving.NoSuchGrant):
            giving.revoke(grant.pk, stranger)
    with pytest.raises(giving.NoSuchGrant):
        giving.revoke(new_id(), signed_in(bob))
    assert runs(bob, tool)
    giving.revoke(grant.pk, signed_in(alice))
    assert again(grant).why == "alice revoked it"


def test_who_takes_the_yes_back_takes_back_the_grant_given_with_it(bob: User) -> None:
    tool = conditional()
    call = ask(bob, tool)
    say_yes(bob, call, grant=Scope(calls=5))
    decide.take_back(call.pk, signed_in(bob))
    assert (Grant.objects.get().end, runs(bob, tool)) == ("revoked", False)


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_no_once_it_is_asked_again_ends_the_grant_given_with_the_yes_before(bob: User, previews: list[Any]) -> None:
    previews[:] = [Preview(text="Refunds 1 EUR"), Preview(text="Refunds 9 EUR")]
    tool = conditional(source="previewing")
    call = ask(bob, tool)
    say_yes(bob, call, grant=Scope(calls=5))
    assert not run(call)
    decide.decline(approval_of(call).pk, signed_in(bob))
    assert (Grant.objects.get().end, runs(bob, tool)) == ("revoked", False)


# -- Time -----------------------------------------------------------------------------------------------------------


def end_now(grant: Grant) -> None:
    """As if it had been given for a shorter time."""
    grant.until = timezone.now() - timedelta(seconds=1)
    Grant.objects.filter(pk=grant.pk).update(until=grant.until, seal=scope.seal(grant))


@pytest.mark.guarantee("gate:fail-closed")
@each_row("shift", [timedelta(days=-365), timedelta(days=365)], ids=["back", "forward"])
@pytest.mark.servers("each database has a clock of its own")
def test_the_databases_clock_says_until_when_whatever_that_of_the_process(shift: timedelta, bob: User) -> None:
    first, second = conditional(), conditional(name="second")
    call = ask(bob, first)
    with time_machine.travel(timezone.now() + shift):
        say_yes(bob, call, grant=Scope(minutes=60))
    until = Grant.objects.get().until
    assert until is not None
    assert abs(until - timezone.now() - timedelta(hours=1)) < timedelta(minutes=2)
    end_now(granted(bob, second, minutes=60))
    asked = [CallRequest(each.name, {"text": "a"}, caller(bob)) for each in (first, second)]
    with time_machine.travel(timezone.now() + shift):
        assert [async_to_sync(submit)(each).status for each in asked] == [Status.ALLOWED, Status.WAITING]


def test_what_it_let_in_does_not_start_once_its_time_is_over(bob: User, entered: list[ToolCall]) -> None:
    tool = conditional()
    grant = granted(bob, tool, minutes=60)
    call = covered(bob, tool)
    end_now(grant)
    assert not run(call)
    assert fresh(call).reason == "Not run: the time of its grant was over."
    assert entered == []


def test_the_sweeper_looks_at_all_grants_with_one_query(bob: User, django_assert_num_queries: Any) -> None:
    for name in ("refund", "remind", "retry"):
        granted(bob, conditional(name=name), calls=5)
    with django_assert_num_queries(1):
        giving.void_changed()
    assert Grant.objects.filter(scope.ACTIVE).count() == 3
