"""Who may decide: the requester, approvers, a group; several of them, never the requester, others after some time."""

from datetime import timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection, connections
from django.db.models import Q
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from hitlchat.gate import decide, deciders, disclosure, oversight, queue, ruling, transition, who
from hitlchat.gate.actor import Actor
from hitlchat.gate.counting import AlreadyCounted
from hitlchat.gate.decide import AlreadySettled, BadEdit, NoSuchApproval, take_back
from hitlchat.gate.deciders import NotEntitled, OnlySignedIn, SignInAgain
from hitlchat.gate.history import changes
from hitlchat.gate.models import AuditEvent, DecidedBy, Decision, Oversight, Tool, ToolCall
from hitlchat.gate.oversight import Rules
from hitlchat.gate.policy import approved_before
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, events, fresh, recording, run, say_yes, status
from tests.gate.deciding_people import escalated, members, rule
from tests.gate.racing import meanwhile, together
from tests.tables import each_row

pytestmark = pytest.mark.django_db


@pytest.fixture
def by_two(alice: User, tool: Tool, dora: User, erik: User) -> Tool:
    """Two different approvers, and never the requester."""
    rule(tool, alice, quorum=2, not_the_requester=True)
    return tool


# -- who ---------------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:only-people")
def test_an_approver_decides_for_the_requester_who_only_sees_it(
    alice: User, bob: User, charlie: User, dora: User, tool: Tool
) -> None:
    rule(tool, alice)
    call = ask(bob, tool)
    with pytest.raises(NotEntitled, match="An approver decides"):
        say_yes(bob, call)
    with pytest.raises(NotEntitled):
        decide.decline(approval_of(call).pk, signed_in(bob))
    with pytest.raises(NoSuchApproval):
        say_yes(charlie, call)
    assert status(call) == Status.WAITING
    say_yes(dora, call)
    assert run(call)
    assert status(call) == Status.SUCCEEDED


@pytest.mark.django_db(transaction=True)
def test_the_people_of_a_group_decide_and_who_left_it_does_not(
    alice: User, bob: User, dora: User, finance: Group, tool: Tool
) -> None:
    fay, gus = members(finance, "fay", "gus")
    rule(tool, alice, group=finance)
    call = ask(bob, tool)
    with meanwhile(partial(finance.user_set.remove, fay)), pytest.raises(NoSuchApproval):
        say_yes(fay, call)
    with pytest.raises(NoSuchApproval):
        say_yes(dora, call)
    say_yes(gus, call)
    assert status(call) == Status.APPROVED


@pytest.mark.guarantee("gate:only-people", "SR-25")
def test_four_eyes_also_keep_out_a_requester_who_could_decide_otherwise(
    alice: User, dora: User, erik: User, by_two: Tool
) -> None:
    call = ask(dora, by_two)
    with pytest.raises(NotEntitled, match="Never dora"):
        say_yes(dora, call)
    assert Decision.objects.count() == 0
    say_yes(erik, call)
    say_yes(alice, call)
    assert status(call) == Status.APPROVED


def test_others_may_decide_once_the_time_for_it_has_come(
    alice: User, bob: User, dora: User, finance: Group, tool: Tool
) -> None:
    (fay,) = members(finance, "fay")
    rule(tool, alice, escalate_to=finance, escalate_after_seconds=60)
    call = ask(bob, tool)
    assert not deciders.waiting_for(fay.pk).exists()
    assert not deciders.seen_by(fay.pk).exists()
    with pytest.raises(NoSuchApproval):
        say_yes(fay, call)
    escalated(call)
    assert deciders.waiting_for(fay.pk).get().call == call
    # Those who could decide before still can.
    assert deciders.waiting_for(dora.pk).exists()


def test_who_comes_after_some_time_approves(alice: User, bob: User, finance: Group, tool: Tool) -> None:
    (fay,) = members(finance, "fay")
    rule(tool, alice, decided_by=DecidedBy.REQUESTER, escalate_to=finance, escalate_after_seconds=60)
    call = ask(bob, tool)
    escalated(call)
    say_yes(fay, call)
    assert run(call)


def test_others_could_decide_before_its_deadline_and_may_only_once_their_time_has_come(
    alice: User, bob: User, finance: Group, tool: Tool
) -> None:
    (fay,) = members(finance, "fay")
    rule(tool, alice, decided_by=DecidedBy.REQUESTER, escalate_to=finance, escalate_after_seconds=60)
    call = ask(bob, tool)
    assert ({*deciders.people(call)}, {*deciders.able(call.pk)}) == ({bob}, {bob, fay})
    escalated(call)
    assert {*deciders.people(call)} == {bob, fay}


@pytest.mark.guarantee("gate:only-people")
def test_once_it_is_asked_again_others_wait_for_their_time_again(
    alice: User, bob: User, finance: Group, previews: list[Any]
) -> None:
    previews[:] = [Preview(text="Refunds 1 EUR"), Preview(text="Refunds 9 EUR")]
    tool, (fay,) = recording(source="previewing"), members(finance, "fay")
    rule(tool, alice, decided_by=DecidedBy.REQUESTER, escalate_to=finance, escalate_after_seconds=60)
    call = ask(bob, tool)
    escalated(call)
    say_yes(fay, call)
    assert not run(call)
    assert fresh(call).round == 2
    digest = approval_of(call).digest
    with pytest.raises(NoSuchApproval):
        say_yes(fay, call, digest=digest)
    say_yes(bob, call, digest=digest)
    assert run(call)


def test_who_was_to_come_later_does_not_see_what_was_settled_before(
    alice: User, bob: User, dora: User, finance: Group, tool: Tool
) -> None:
    (fay,) = members(finance, "fay")
    rule(tool, alice, escalate_to=finance, escalate_after_seconds=60)
    call = ask(bob, tool)
    decide.decline(approval_of(call).pk, signed_in(dora))
    settled = fresh(call).settled_at
    assert settled is not None
    ToolCall.objects.filter(pk=call.pk).update(escalates_at=settled + timedelta(microseconds=1))
    assert not deciders.seen_by(fay.pk).exists()
    assert deciders.seen_by(dora.pk).exists()


def test_what_waits_is_asked_in_one_query_however_much_it_is(
    alice: User, bob: User, dora: User, finance: Group, tool: Tool, django_assert_num_queries: Any
) -> None:
    finance.user_set.add(dora)
    grouped = recording("grouped")
    rule(tool, alice, not_the_requester=True)
    rule(grouped, alice, group=finance)
    calls = [ask(user, each) for user, each in product((bob, dora), (tool, grouped)) for _ in range(3)]
    with django_assert_num_queries(1):
        found = {each.call_id for each in deciders.waiting_for(dora.pk)}
    assert found == {call.pk for call in calls if (call.caller_id, call.tool_name) != (dora.pk, tool.name)}
    assert not deciders.waiting_for(bob.pk).exists()
    assert deciders.seen_by(bob.pk).count() == 6


def test_the_question_who_may_decide_has_one_answer_however_it_is_asked(
    alice: User, bob: User, charlie: User, dora: User, erik: User, finance: Group
) -> None:
    finance.user_set.add(erik, charlie)
    rules: list[dict[str, Any]] = [
        {},
        {"not_the_requester": True},
        {"group": finance},
        {"group": finance, "not_the_requester": True},
        {"decided_by": DecidedBy.REQUESTER, "escalate_to": finance, "escalate_after_seconds": 9},
    ]
    for number, each in enumerate(rules):
        rule(recording(f"tool-{number}"), alice, **each)
    calls = [ask(user, tool) for user, tool in product((bob, dora, erik), Tool.objects.all())]
    ToolCall.objects.filter(escalates_to__isnull=False).update(escalates_at=timezone.now() - timedelta(seconds=1))
    fresh_calls = list(ToolCall.objects.all())
    people_of = {call.pk: {person.pk for person in deciders.people(call)} for call in fresh_calls}
    ids = [call.pk for call in calls]
    for user in (alice, bob, charlie, dora, erik):
        may = {call.pk for call in fresh_calls if deciders.may_decide(signed_in(user), call)}
        assert may == {each.call_id for each in deciders.waiting_for(user.pk)}
        assert may == set(queue.first(user.pk, 20)) == {each.call_id for each in queue.among(user.pk, ids)}
        assert len(may) == queue.count(user.pk, 20) == queue.count(user.pk, 20, Q(pk__in=may))
        assert may == {key for key, people in people_of.items() if user.pk in people}
        sees = {call.pk for call in fresh_calls if deciders.sees(signed_in(user), approval_of(call))}
        assert sees == {each.call_id for each in deciders.seen_by(user.pk)}
    assert len(calls) == 15


# -- how many ----------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run", "audit:complete", "SR-25")
def test_it_runs_with_the_last_of_the_yeses_and_not_before(
    bob: User, dora: User, erik: User, by_two: Tool, entered: list[ToolCall]
) -> None:
    call = ask(bob, by_two)
    say_yes(dora, call)
    assert status(call) == Status.WAITING
    assert not run(call)
    with pytest.raises(AlreadyCounted, match="1 of 2"):
        say_yes(dora, call)
    say_yes(erik, call)
    assert run(call)
    assert len(entered) == 1
    assert events(call) == ["call.waiting", "call.counted", "call.approved", "call.executing", "call.succeeded"]
    assert AuditEvent.objects.get(name="call.counted").data["yes"] == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:one-outcome", "gate:at-most-once", "SR-25")
@pytest.mark.parametrize("round_", range(3))
def test_of_two_last_yeses_at_once_none_is_lost_and_it_starts_once(
    round_: int, alice: User, bob: User, dora: User, erik: User, by_two: Tool, entered: list[ToolCall]
) -> None:
    call = ask(bob, by_two)
    approval = approval_of(call).pk
    racers = [alice, dora, erik] if round_ else [dora, erik]
    yes = [partial(decide.approve, approval, signed_in(user)) for user in racers]
    ends = together(*yes, meet_at_first_write=True)
    late = [end for end in ends if isinstance(end, AlreadySettled)]
    assert len(late) == len(racers) - 2
    assert [end for end in ends if isinstance(end, Exception) and end not in late] == []
    assert (status(call), Decision.objects.count()) == (Status.APPROVED, 2)
    assert sorted(together(*[partial(run, call)] * 2)) == [False, True]
    assert len(entered) == 1


@pytest.mark.guarantee("gate:one-outcome")
def test_one_no_declines_whoever_said_yes_before(bob: User, dora: User, erik: User, by_two: Tool) -> None:
    first, second = ask(bob, by_two), ask(bob, by_two)
    say_yes(dora, first)
    decide.decline(approval_of(first).pk, signed_in(erik))
    with pytest.raises(AlreadySettled):
        say_yes(dora, first)
    # Also of the person who had said yes.
    say_yes(dora, second)
    decide.decline(approval_of(second).pk, signed_in(dora))
    assert (status(first), status(second)) == (Status.DECLINED, Status.DECLINED)
    assert list(Decision.objects.filter(approval__call=second).values_list("verdict", flat=True)) == ["decline"]


@pytest.mark.guarantee("gate:only-people")
@each_row("loses", ["role", "account"])
def test_the_yes_of_someone_who_may_not_decide_any_more_does_not_count(
    loses: str, alice: User, bob: User, dora: User, erik: User, by_two: Tool
) -> None:
    call = ask(bob, by_two)
    say_yes(dora, call)
    if loses == "role":
        dora.groups.clear()
    else:
        User.objects.filter(pk=dora.pk).update(is_active=False)
    say_yes(erik, call)
    assert status(call) == Status.WAITING
    say_yes(alice, call)
    assert status(call) == Status.APPROVED


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("run:survives")
def test_between_two_yeses_nothing_is_kept_but_in_the_database(
    bob: User, dora: User, erik: User, by_two: Tool, entered: list[ToolCall]
) -> None:
    call = ask(bob, by_two)
    for user in (dora, erik):
        # Each on a connection of its own, in a thread that ends.
        (end,) = together(partial(decide.approve, approval_of(call).pk, signed_in(user)))
        assert not isinstance(end, Exception)
        connections.close_all()
    assert status(call) == Status.APPROVED


def test_a_yes_is_taken_back_before_the_others_have_come(bob: User, dora: User, erik: User, by_two: Tool) -> None:
    call = ask(bob, by_two)
    say_yes(dora, call)
    take_back(call.pk, signed_in(dora))
    assert (status(call), Decision.objects.count()) == (Status.WAITING, 0)
    say_yes(erik, call)
    assert status(call) == Status.WAITING
    say_yes(dora, call)
    take_back(call.pk, signed_in(dora))
    assert status(call) == Status.WITHDRAWN
    names = ["call.waiting", "call.counted", "call.yes_taken_back", "call.counted", "call.approved", "call.withdrawn"]
    assert events(call) == names


def test_what_several_approve_stays_as_it_was_asked(bob: User, dora: User, by_two: Tool) -> None:
    call = ask(bob, by_two)
    with pytest.raises(BadEdit, match="2 people approve this call"):
        say_yes(dora, call, edited={"text": "other"})
    assert Decision.objects.count() == 0


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_call_moved_past_its_yeses_does_not_run(bob: User, dora: User, by_two: Tool, entered: list[ToolCall]) -> None:
    call = ask(bob, by_two)
    say_yes(dora, call)
    ToolCall.objects.filter(pk=call.pk).update(status=Status.APPROVED)
    assert not run(call)
    assert (entered, fresh(call).reason) == ([], "Not run: fewer people approved it than have to.")


# -- rules that change -------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:same-call")
@each_row("change", ["set", "dropped", "another", "group deleted", "later group deleted"])
def test_other_rules_void_what_waits_and_what_was_approved_before(
    change: str, alice: User, bob: User, dora: User, finance: Group, tool: Tool, entered: list[ToolCall]
) -> None:
    finance.user_set.add(dora)
    if change == "later group deleted":
        rule(tool, alice, escalate_to=finance, escalate_after_seconds=60)
    elif change != "set":
        rule(tool, alice, group=finance)
    waits, yes = ask(bob, tool), ask(bob, tool)
    say_yes(bob if change == "set" else dora, yes)
    if "deleted" in change:
        ruling.delete_group(Group.objects.get(pk=finance.pk), signed_in(alice), confirmed=True)
    else:
        ruling.change(
            tool, Rules() if change == "dropped" else Rules(DecidedBy.APPROVERS), signed_in(alice), confirmed=True
        )
    for call in (waits, yes):
        assert not run(call)
        assert (status(call), "who decides about this tool was changed" in fresh(call).reason) == (
            Status.WITHDRAWN,
            True,
        )
    assert entered == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:same-call", "gate:fail-closed")
def test_rules_changed_by_whatever_way_void_a_yes_in_that_moment_and_right_before_it_runs(
    alice: User, bob: User, dora: User, tool: Tool, entered: list[ToolCall]
) -> None:
    waits, yes = ask(bob, tool), ask(bob, tool)
    say_yes(bob, yes)
    rows = Oversight(tool=tool, decided_by=DecidedBy.APPROVERS, digest="d" * 64)
    with meanwhile(rows.save), pytest.raises(AlreadySettled, match="withdrawn"):
        say_yes(bob, waits)
    assert not run(yes)
    assert {status(waits), status(yes)} == {Status.WITHDRAWN}
    assert entered == []


@pytest.mark.guarantee("gate:same-call")
def test_a_call_whose_row_says_other_rules_than_were_shown_does_not_run(
    bob: User, dora: User, erik: User, by_two: Tool, entered: list[ToolCall]
) -> None:
    call = ask(bob, by_two)
    ToolCall.objects.filter(pk=call.pk).update(quorum=1)
    say_yes(dora, call)
    assert not run(call)
    assert "who decides changed on record" in fresh(call).reason


@pytest.mark.guarantee("gate:same-call")
@each_row(
    "column,value",
    [
        ("decided_by", DecidedBy.APPROVERS),
        ("decider_group", None),
        ("not_the_requester", False),
        ("escalates_to", None),
        ("escalates_at", timezone.now()),
        ("oversight_digest", "d" * 64),
    ],
)
def test_whatever_of_the_rules_is_changed_on_an_approved_call_it_does_not_run(
    column: str, value: object, alice: User, bob: User, dora: User, finance: Group, tool: Tool, entered: list[ToolCall]
) -> None:
    finance.user_set.add(dora)
    later = Group.objects.create(name="board")
    rule(tool, alice, group=finance, not_the_requester=True, escalate_to=later, escalate_after_seconds=60)
    call = ask(bob, tool)
    say_yes(dora, call)
    ToolCall.objects.filter(pk=call.pk).update(**{column: value})
    assert not run(call)
    assert "who decides changed on record" in fresh(call).reason
    assert entered == []


def test_people_who_come_and_go_change_no_rule(alice: User, bob: User, finance: Group, tool: Tool) -> None:
    fay, gus = members(finance, "fay", "gus")
    rule(tool, alice, group=finance)
    call = ask(bob, tool)
    finance.user_set.remove(fay)
    finance.name = "finance and tax"
    finance.save()
    say_yes(gus, call)
    assert run(call)


def test_rules_of_no_effect_are_no_rules(alice: User, tool: Tool) -> None:
    ruling.change(tool, Rules(), signed_in(alice), confirmed=True)
    assert (Oversight.objects.count(), AuditEvent.objects.filter(name=ruling.CHANGED).count()) == (0, 0)


def test_a_change_of_rules_is_on_record_with_what_was_before(alice: User, tool: Tool, dora: User) -> None:
    rule(tool, alice, quorum=2)
    event = AuditEvent.objects.get(name="tool.rules_changed")
    assert (event.actor_id, event.data["tool"]) == (alice.pk, tool.name)
    assert (event.data["before"]["decidedBy"], event.data["before"]["quorum"]) == ("requester", 1)
    assert (event.data["after"]["decidedBy"], event.data["after"]["quorum"]) == ("approvers", 2)
    first, *_ = changes.change(event).differences
    assert first == changes.Difference("Who decides", "The person it is called for", "Everyone with the role approver")


@each_row(
    "rules,field",
    [
        ({"quorum": 2}, "quorum"),
        ({"not_the_requester": True}, "not_the_requester"),
        ({"decided_by": DecidedBy.GROUP}, "group"),
        ({"decided_by": DecidedBy.APPROVERS, "quorum": 2}, "quorum"),
        ({"decided_by": DecidedBy.APPROVERS, "quorum": 11}, "quorum"),
        ({"decided_by": DecidedBy.APPROVERS, "escalate_after_seconds": 60}, "escalate_to"),
        ({"decided_by": DecidedBy.APPROVERS, "escalate_to": "finance"}, "escalate_after_seconds"),
        ({"escalate_to": "finance", "escalate_after_seconds": 300}, "escalate_after_seconds"),
        ({"decided_by": DecidedBy.GROUP, "group": "finance"}, "quorum"),
        ({"decided_by": DecidedBy.APPROVERS, "group": "finance"}, "group"),
    ],
    ids=str,
)
def test_rules_that_cannot_hold_are_refused_with_the_field_named(
    rules: dict[str, Any], field: str, alice: User, finance: Group, tool: Tool
) -> None:
    given: dict[str, Any] = {name: finance if value == "finance" else value for name, value in rules.items()}
    with pytest.raises(ruling.BadRules) as refused:
        ruling.change(tool, Rules(**given), signed_in(alice), confirmed=True)
    assert list(refused.value.errors) == [field]
    assert not Oversight.objects.exists()


@pytest.mark.guarantee("gate:only-people")
def test_only_administrators_set_rules_and_only_as_people(alice: User, bob: User, dora: User, tool: Tool) -> None:
    for actor in (signed_in(bob), signed_in(dora), Actor(alice.pk, "system"), Actor(alice.pk, "elicitation")):
        with pytest.raises(ruling.OnlyAdministrators):
            ruling.change(tool, Rules(DecidedBy.APPROVERS), actor, confirmed=True)


def test_a_group_that_shrank_below_the_quorum_is_said_on_the_card(
    alice: User, bob: User, finance: Group, tool: Tool
) -> None:
    fay, _gus = members(finance, "fay", "gus")
    rule(tool, alice, group=finance, quorum=2)
    call = ask(bob, tool)
    assert who.stance_of(approval_of(call), signed_in(fay)).stuck == ""
    finance.user_set.remove(_gus)
    assert "2 people are needed, but only 1 can decide" in who.stance_of(approval_of(call), signed_in(fay)).stuck
    finance.user_set.clear()
    assert "Nobody can decide" in who.stance_of(approval_of(call), signed_in(bob)).stuck


def test_the_rules_are_part_of_what_is_consented_to(alice: User, bob: User, dora: User, tool: Tool) -> None:
    call = ask(bob, tool)
    assert approval_of(call).disclosure["whoDecides"]["decidedBy"] == "requester"
    rule(tool, alice)
    call = ask(bob, tool)
    shown = approval_of(call).disclosure
    assert shown["whoDecides"]["digest"] == oversight.of(tool).digest
    assert who.sentences(approval_of(call)) == "An approver decides."
    assert approval_of(call).digest == disclosure.digest(shown)


# -- the highest risk --------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:only-people", "SR-25")
def test_the_highest_risk_is_approved_only_shortly_after_signing_in(bob: User) -> None:
    call = ask(bob, recording("wipe", risk_level=5))
    approval = approval_of(call).pk
    for age in (timedelta(minutes=16), timedelta(minutes=-5)):
        with pytest.raises(SignInAgain):
            decide.approve(approval, Actor(bob.pk, "session", signed_in_at=timezone.now() - age))
    with pytest.raises(SignInAgain):
        decide.approve(approval, Actor(bob.pk, "session"))
    for means in ("token", "console"):
        with pytest.raises(OnlySignedIn):
            decide.approve(approval, Actor(bob.pk, means))
    assert status(call) == Status.WAITING
    decide.approve(approval, signed_in(bob))
    assert status(call) == Status.APPROVED


@each_row("minutes,told", [(1, "the last minute."), (15, "the last 15 minutes.")])
def test_how_fresh_a_sign_in_has_to_be_is_said_in_plain_words(
    bob: User, settings: Settings, minutes: int, told: str
) -> None:
    settings.HITL_FRESH_SIGN_IN_MINUTES = minutes
    call = ask(bob, recording("wipe", risk_level=5))
    assert who.sentences(approval_of(call)).endswith(f"sign-in within {told}")
    with pytest.raises(SignInAgain, match=f"within {told}$"):
        decide.approve(approval_of(call).pk, Actor(bob.pk, "session"))


def test_a_no_to_the_highest_risk_needs_no_fresh_sign_in(bob: User) -> None:
    call = ask(bob, recording("wipe", risk_level=5))
    decide.decline(approval_of(call).pk, Actor(bob.pk, "token"))
    assert status(call) == Status.DECLINED


@pytest.mark.guarantee("gate:only-people")
def test_when_the_call_moves_the_sign_in_is_judged_again_by_the_databases_clock(bob: User, tool: Tool) -> None:
    mild, severe = ask(bob, tool), ask(bob, recording("wipe", risk_level=5))
    now = timezone.now()
    for minutes, is_fresh in ((1, True), (16, False), (-5, False)):
        actor = Actor(bob.pk, "session", signed_in_at=now - timedelta(minutes=minutes))
        assert [may_move(call, actor) for call in (mild, severe)] == [True, is_fresh]
    assert [may_move(call, Actor(bob.pk, "token")) for call in (mild, severe)] == [True, False]


def may_move(call: ToolCall, actor: Actor) -> bool:
    return transition.still(call, deciders.still(actor, approval_of(call))).exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:same-call")
def test_a_tool_that_becomes_of_the_highest_risk_meanwhile_needs_it_too(bob: User, tool: Tool) -> None:
    call = ask(bob, tool)
    with meanwhile(partial(Tool.objects.filter(pk=tool.pk).update, risk_level=5)), pytest.raises(SignInAgain):
        decide.approve(approval_of(call).pk, Actor(bob.pk, "session"))
    assert status(call) == Status.WAITING


# -- what is remembered ------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_yes_of_before_the_rules_is_not_remembered_under_them(alice: User, bob: User, dora: User, tool: Tool) -> None:
    call = ask(bob, tool)
    say_yes(bob, call)
    assert run(call)
    assert approved_before(tool, call.arguments, bob.pk)
    rule(tool, alice)
    assert not approved_before(tool, call.arguments, bob.pk)


def test_in_the_queue_the_soonest_deadline_comes_first_and_what_one_said_yes_to_is_out_of_it(
    alice: User, bob: User, dora: User, finance: Group, by_two: Tool
) -> None:
    finance.user_set.add(dora)
    grouped, own = recording("grouped"), recording("own")
    rule(grouped, alice, group=finance)
    calls = [ask(user, each) for user, each in ((bob, by_two), (bob, grouped), (dora, own), (bob, by_two))]
    for call, seconds in zip(calls, (40, 20, 30, 10), strict=True):
        ToolCall.objects.filter(pk=call.pk).update(deadline=timezone.now() + timedelta(seconds=seconds))
    assert queue.first(dora.pk, 9) == [calls[number].pk for number in (3, 1, 2, 0)]
    assert queue.first(dora.pk, 2) == [calls[3].pk, calls[1].pk]
    say_yes(dora, calls[3])
    assert queue.first(dora.pk, 9) == [calls[number].pk for number in (1, 2, 0)]
    assert (queue.count(dora.pk, 9), queue.count(dora.pk, 2), queue.count(bob.pk, 9)) == (3, 2, 0)


def test_who_is_in_hundreds_of_groups_has_a_queue_too(alice: User, bob: User, dora: User, tool: Tool) -> None:
    dora.groups.set(Group.objects.bulk_create(Group(name=f"group {number}") for number in range(250)))
    group, later = Group.objects.get(name="group 249"), recording("later")
    rule(tool, alice, decided_by=DecidedBy.GROUP, group=group)
    rule(later, alice, decided_by=DecidedBy.REQUESTER, escalate_to=group, escalate_after_seconds=60)
    calls = [ask(bob, each) for each in (tool, later)]
    escalated(calls[1])
    assert queue.first(dora.pk, 9) == [call.pk for call in calls]


# -- what it costs -----------------------------------------------------------------------------------------------------


def test_what_waits_for_a_person_is_found_by_indexes(bob: User) -> None:
    plan = deciders.waiting_for(bob.pk).order_by().explain().lower()
    if connection.vendor == "sqlite":
        # On PostgreSQL small tables are read whole.
        assert "scan" not in plan
        for index in ("call_waiting ", "call_by_deciders_waiting ", "call_by_second_group"):
            assert index in plan
    assert "union" in plan or "append" in plan


@pytest.mark.embedded  # PostgreSQL reads small tables whole.
def test_of_the_queue_no_more_is_read_and_nothing_sorted_beyond_what_is_shown(
    bob: User, finance: Group, django_assert_num_queries: Any
) -> None:
    finance.user_set.add(bob)
    with CaptureQueriesContext(connection) as first:
        queue.first(bob.pk, 50)
    with django_assert_num_queries(1):
        queue.count(bob.pk, 1000)
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + first.captured_queries[-1]["sql"])
        plan = "\n".join(row[-1] for row in cursor.fetchall())
    for index in ("call_waiting", "call_by_deciders_waiting", "call_by_second_group_waiting"):
        assert index in plan
    assert "SCAN gate_toolcall" not in plan
    # Each of the four ways comes in the order of its index: at most equal deadlines are sorted.
    assert plan.count("USE TEMP B-TREE FOR RIGHT PART OF ORDER BY") == 4


@pytest.mark.embedded  # PostgreSQL reads small tables whole.
def test_one_approval_is_found_without_a_look_at_the_others_of_its_person(bob: User, tool: Tool) -> None:
    one = approval_of(ask(bob, tool))
    found = deciders.seen_by(bob.pk, [one.pk])
    plan = found.order_by().explain()
    assert found.get() == one
    # By its own id in each way of coming to see it; these would read all that somebody has or may decide.
    for index in ("SCAN", "call_by_caller", "call_by_deciders", "call_by_second_group"):
        assert index not in plan
