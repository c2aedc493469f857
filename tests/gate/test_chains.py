"""Chains: first one of this group, then one of that, each another person; it runs with the yes of the last."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone

from hitlchat.gate import absences, batch, decide, deciders, handling, oversight, queue, ruling, stopping, tools, who
from hitlchat.gate.counting import AlreadyCounted
from hitlchat.gate.decide import AlreadySettled, BadEdit, NoSuchApproval, PassedOn, take_back
from hitlchat.gate.deciders import NotEntitled
from hitlchat.gate.loosening import weaker_rules
from hitlchat.gate.models import AuditEvent, DecidedBy, Decision, Handling, Oversight, Tool, ToolCall
from hitlchat.gate.oversight import Rules
from hitlchat.gate.ruling import BadRules
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from hitlchat.record import calls as record
from hitlchat.record.report import Report
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approval_of, ask, events, fresh, recording, run, say_yes, status
from tests.gate.deciding_people import escalated, members
from tests.gate.racing import meanwhile, together
from tests.tables import each_row

pytestmark = pytest.mark.django_db


@pytest.fixture
def legal(db: None) -> Group:
    return Group.objects.create(name="legal")


@pytest.fixture
def fay(finance: Group) -> User:
    return members(finance, "fay")[0]


@pytest.fixture
def gus(finance: Group) -> User:
    return members(finance, "gus")[0]


@pytest.fixture
def lea(legal: Group) -> User:
    return members(legal, "lea")[0]


@pytest.fixture
def max_(legal: Group) -> User:
    return members(legal, "max")[0]


def rule_in_order(
    tool: Tool, alice: User, first: Group, second: Group, third: Group | None = None, **more: Any
) -> None:
    rules = Rules(decided_by=DecidedBy.GROUP, group=first, **oversight.chain(second, third), **more)
    ruling.change(tool, rules, signed_in(alice), confirmed=True)


@pytest.fixture
def chained(alice: User, tool: Tool, finance: Group, legal: Group, fay: User, gus: User, lea: User, max_: User) -> Tool:
    """First fay or gus, of finance; then lea or max, of legal."""
    rule_in_order(tool, alice, finance, legal)
    return tool


def waits_for(call: ToolCall) -> set[str]:
    """The people whose turn it is; all that is asked of a person says the same."""
    found, now = set(), fresh(call)
    said = {*Decision.objects.filter(approval__call=call, round=now.round).values_list("person_id", flat=True)}
    for user in User.objects.all():
        listed = bool(queue.among(user.pk, [call.pk]))
        assert listed == (call.pk in queue.first(user.pk, 9)) == bool(queue.count(user.pk, 9))
        assert listed == (deciders.may_decide(signed_in(user), now) and user.pk not in said)
        found |= {user.username} if listed else set()
    return found


def wrong_on_record() -> list[str]:
    return [each.kind for each in record.compare(Report()) if each is not None]


# -- in order ----------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:only-people", "audit:complete")
def test_each_group_is_asked_in_its_turn_and_it_runs_with_the_last_yes(
    bob: User, fay: User, gus: User, lea: User, max_: User, chained: Tool, entered: list[ToolCall]
) -> None:
    call = ask(bob, chained)
    assert waits_for(call) == {"fay", "gus"}
    with pytest.raises(NoSuchApproval):
        say_yes(lea, call)
    say_yes(fay, call)
    assert (status(call), waits_for(call)) == (Status.WAITING, {"lea", "max"})
    assert not run(call)
    with pytest.raises(NoSuchApproval):
        say_yes(gus, call)
    assert not deciders.seen_by(gus.pk).exists()
    assert who.stance_of(approval_of(call), signed_in(lea)).yes[0].plain == "fay"
    say_yes(lea, call)
    assert run(call)
    assert len(entered) == 1
    begun = ["call.waiting", "call.counted", "call.passed_on", "call.approved", "call.executing", "call.succeeded"]
    assert events(call) == begun
    assert AuditEvent.objects.get(name="call.passed_on").data["group"] == "legal"
    assert wrong_on_record() == []


def test_a_chain_of_three_asks_three(
    alice: User, bob: User, fay: User, lea: User, finance: Group, legal: Group
) -> None:
    board = Group.objects.create(name="board")
    (ida,) = members(board, "ida")
    tool = recording("pay")
    rule_in_order(tool, alice, legal, finance, board)
    call = ask(bob, tool)
    for user in (lea, fay):
        assert waits_for(call) == {user.username}
        say_yes(user, call)
        assert not run(call)
    say_yes(ida, call)
    assert run(call)


def test_who_said_yes_sees_how_it_goes_on_and_no_more(bob: User, fay: User, lea: User, chained: Tool) -> None:
    call = ask(bob, chained)
    say_yes(fay, call)
    approval = approval_of(call)
    assert deciders.one_seen_by(fay.pk, approval.pk) == approval
    stance = who.stance_of(approval, signed_in(fay))
    assert (stance.stance, stance.has_passed, stance.turn) == (
        "said",
        True,
        "Now one of the people of the group “legal” has to approve.",
    )
    words = (
        "First one of the people of the group “finance” has to approve, then one of the people of the group “legal”."
    )
    for answer in (partial(say_yes, fay, call), partial(decide.decline, approval.pk, signed_in(fay))):
        with pytest.raises(NotEntitled, match=words):
            answer()
    assert who.stance_of(approval, signed_in(bob)).stance == "others"


@pytest.mark.guarantee("gate:one-outcome")
@each_row("at", [0, 1])
def test_a_no_ends_it_at_each_step(at: int, bob: User, fay: User, gus: User, lea: User, chained: Tool) -> None:
    call = ask(bob, chained)
    if at:
        say_yes(fay, call)
    decide.decline(approval_of(call).pk, signed_in(lea if at else gus))
    assert status(call) == Status.DECLINED
    assert not run(call)
    assert wrong_on_record() == []


@pytest.mark.guarantee("SR-25")
def test_nobody_says_yes_for_two_groups(bob: User, fay: User, lea: User, legal: Group, chained: Tool) -> None:
    legal.user_set.add(fay)
    call = ask(bob, chained)
    say_yes(fay, call)
    assert "fay" not in waits_for(call)
    with pytest.raises(AlreadyCounted, match="You already approved this call: 1 of 2"):
        say_yes(fay, call)
    assert (status(call), Decision.objects.count()) == (Status.WAITING, 1)
    say_yes(lea, call)
    assert status(call) == Status.APPROVED


@pytest.mark.guarantee("gate:only-people", "SR-25")
def test_four_eyes_hold_at_each_step(
    alice: User, fay: User, gus: User, finance: Group, legal: Group, lea: User
) -> None:
    tool = recording("pay")
    legal.user_set.add(fay)
    rule_in_order(tool, alice, finance, legal, not_the_requester=True)
    call = ask(fay, tool)
    say_yes(gus, call)
    assert waits_for(call) == {"lea"}
    with pytest.raises(NotEntitled):
        say_yes(fay, call)


def test_others_who_may_decide_after_some_time_stand_in_for_a_step(
    alice: User, bob: User, finance: Group, legal: Group, fay: User, lea: User
) -> None:
    board, tool = Group.objects.create(name="board"), recording("pay")
    ida, jon = members(board, "ida", "jon")
    rule_in_order(tool, alice, finance, legal, escalate_to=board, escalate_after_seconds=60)
    call = ask(bob, tool)
    assert waits_for(call) == {"fay"}
    escalated(call)
    say_yes(ida, call)
    assert waits_for(call) == {"lea", "jon"}
    with pytest.raises(AlreadyCounted):
        say_yes(ida, call)
    say_yes(jon, call)
    assert status(call) == Status.APPROVED


def test_what_a_chain_approves_stays_as_it_was_asked(bob: User, fay: User, chained: Tool) -> None:
    with pytest.raises(BadEdit, match="2 people approve this call"):
        say_yes(fay, ask(bob, chained), edited={"text": "other"})


def test_whoever_was_on_it_is_not_any_more_once_it_is_passed_on(bob: User, gus: User, fay: User, chained: Tool) -> None:
    call = ask(bob, chained)
    handling.take_up(approval_of(call).pk, signed_in(gus))
    say_yes(fay, call)
    assert not Handling.objects.exists()


@pytest.mark.guarantee("gate:same-call")
def test_asking_again_begins_with_the_first_group(
    alice: User, bob: User, finance: Group, legal: Group, fay: User, lea: User, previews: list[Any]
) -> None:
    previews[:] = [Preview(text="Refunds 1 EUR"), Preview(text="Refunds 9 EUR")]
    tool = recording(source="previewing")
    rule_in_order(tool, alice, finance, legal)
    call = ask(bob, tool)
    say_yes(fay, call)
    say_yes(lea, call)
    assert not run(call)
    assert (fresh(call).round, waits_for(call)) == (2, {"fay"})
    previews[:] = [Preview(text="Refunds 9 EUR")] * 3
    for user in (fay, lea):
        say_yes(user, call, digest=approval_of(call).digest)
    assert run(call)
    assert wrong_on_record() == []


# -- yeses that count no more ------------------------------------------------------------------------------------------


def test_a_chain_says_that_nobody_can_decide_once_only_who_said_yes_is_left(
    bob: User, fay: User, legal: Group, chained: Tool
) -> None:
    legal.user_set.add(fay)
    call = ask(bob, chained)
    say_yes(fay, call)
    approval = approval_of(call)
    assert who.stance_of(approval, signed_in(bob)).stuck == ""
    legal.user_set.set([fay])
    assert who.stance_of(approval, signed_in(bob)).stuck == who.NOBODY


@pytest.mark.guarantee("gate:only-people")
@each_row("loses", ["group", "account"])
def test_a_step_whose_yes_counts_no_more_is_asked_again(
    loses: str, bob: User, fay: User, gus: User, lea: User, finance: Group, chained: Tool
) -> None:
    call = ask(bob, chained)
    say_yes(fay, call)
    if loses == "group":
        finance.user_set.remove(fay)
    else:
        User.objects.filter(pk=fay.pk).update(is_active=False)
    say_yes(lea, call)
    assert (status(call), waits_for(call)) == (Status.WAITING, {"gus"})
    assert not run(call)
    say_yes(gus, call)
    assert run(call)
    assert wrong_on_record() == []


def test_who_has_changed_groups_may_say_yes_for_the_other_in_place_of_the_first(
    bob: User, fay: User, gus: User, finance: Group, legal: Group, chained: Tool
) -> None:
    call = ask(bob, chained)
    say_yes(fay, call)
    finance.user_set.remove(fay)
    legal.user_set.add(fay)
    say_yes(fay, call)
    assert waits_for(call) == {"gus"}
    say_yes(gus, call)
    assert status(call) == Status.APPROVED
    assert wrong_on_record() == []


def test_a_yes_that_is_taken_back_brings_its_group_back(
    bob: User, fay: User, gus: User, lea: User, chained: Tool
) -> None:
    call = ask(bob, chained)
    say_yes(fay, call)
    take_back(call.pk, signed_in(fay))
    assert (waits_for(call), Decision.objects.count()) == ({"fay", "gus"}, 0)
    say_yes(gus, call)
    say_yes(lea, call)
    take_back(call.pk, signed_in(gus))
    assert status(call) == Status.WITHDRAWN
    assert wrong_on_record() == []


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_two_yeses_of_one_group_are_none_of_the_other(
    bob: User, fay: User, gus: User, lea: User, chained: Tool
) -> None:
    call = ask(bob, chained)
    say_yes(fay, call)
    User.objects.filter(pk=fay.pk).update(is_active=False)
    say_yes(lea, call)
    take_back(call.pk, signed_in(lea))
    # The yes of fay counts again.
    User.objects.filter(pk=fay.pk).update(is_active=True)
    say_yes(gus, call)
    assert (status(call), waits_for(call)) == (Status.WAITING, {"lea", "max"})
    say_yes(lea, call)
    assert run(call)


# -- delegates ---------------------------------------------------------------------------------------------------------


def away(person: User, delegate: User) -> None:
    absences.begin(person.pk, delegate.username, None, timezone.now() + timedelta(hours=1), signed_in(person))


def test_a_delegate_stands_in_for_a_step(bob: User, fay: User, lea: User, charlie: User, chained: Tool) -> None:
    away(lea, charlie)
    call = ask(bob, chained)
    with pytest.raises(NoSuchApproval):
        say_yes(charlie, call)
    say_yes(fay, call)
    assert waits_for(call) == {"lea", "max", "charlie"}
    say_yes(charlie, call)
    assert (status(call), Decision.objects.get(person=charlie).absent) == (Status.APPROVED, lea)
    assert run(call)


@pytest.mark.guarantee("SR-25")
@each_row("order", ["delegate first", "absent first", "for two"])
def test_one_person_never_gives_two_yeses_by_way_of_a_delegate(
    order: str, bob: User, fay: User, lea: User, charlie: User, legal: Group, chained: Tool
) -> None:
    legal.user_set.add(fay)
    away(fay, charlie)
    if order == "for two":
        away(lea, charlie)
    call = ask(bob, chained)
    first, second = (fay, charlie) if order == "absent first" else (charlie, fay)
    say_yes(first, call)
    with pytest.raises(AlreadyCounted):
        say_yes(charlie if order == "for two" else second, call)
    assert (status(call), Decision.objects.count()) == (Status.WAITING, 1)


def test_a_yes_for_somebody_who_said_yes_before_stands_for_no_other_step_once_theirs_counts_again(
    alice: User, bob: User, fay: User, gus: User, charlie: User, finance: Group, legal: Group
) -> None:
    board, tool = Group.objects.create(name="board"), recording("pay")
    members(board, "ida")
    legal.user_set.add(fay)
    rule_in_order(tool, alice, finance, legal, board)
    away(fay, charlie)
    call = ask(bob, tool)
    say_yes(fay, call)
    finance.user_set.remove(fay)
    say_yes(charlie, call)
    assert waits_for(call) == {"gus"}
    say_yes(gus, call)
    finance.user_set.add(fay)
    take_back(call.pk, signed_in(gus))
    assert "ida" not in waits_for(call)
    assert not run(call)


# -- at once -----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:one-outcome", "SR-25")
def test_of_two_of_a_group_at_once_one_counts_and_the_other_is_told_who_is_asked(
    bob: User, fay: User, gus: User, legal: Group, chained: Tool
) -> None:
    # Also of somebody who may say yes at the next step: theirs was to this one.
    legal.user_set.add(gus)
    call = ask(bob, chained)
    yes = [partial(decide.approve, approval_of(call).pk, signed_in(user)) for user in (fay, gus)]
    ends = together(*yes, meet_at_first_write=True)
    assert [type(end) for end in ends if isinstance(end, Exception)] == [PassedOn]
    assert (status(call), fresh(call).decider_group) == (Status.WAITING, legal.pk)
    assert Decision.objects.count() == 1
    assert not run(call)


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("audit:complete")
@each_row("what", ["stopped", "taken back"])
def test_what_comes_to_a_call_that_is_passed_on_just_then_is_not_lost(
    what: str, bob: User, fay: User, lea: User, chained: Tool
) -> None:
    call = ask(bob, chained)
    if what == "stopped":
        with meanwhile(partial(say_yes, fay, call)):
            stopping.withdraw_call(call.pk, actor=signed_in(bob), why="its run was stopped")
    else:
        say_yes(fay, call)
        with meanwhile(partial(say_yes, lea, call)):
            take_back(call.pk, signed_in(fay))
    assert status(call) == Status.WITHDRAWN
    assert not run(call)
    assert wrong_on_record() == []


@pytest.mark.django_db(transaction=True)
def test_a_yes_is_taken_back_also_while_another_passes_the_call_on(
    alice: User, bob: User, fay: User, lea: User, finance: Group, legal: Group
) -> None:
    board, tool = Group.objects.create(name="board"), recording("pay")
    members(board, "ida")
    rule_in_order(tool, alice, finance, legal, board)
    call = ask(bob, tool)
    say_yes(fay, call)
    with meanwhile(partial(say_yes, lea, call)):
        take_back(call.pk, signed_in(fay))
    assert (status(call), waits_for(call)) == (Status.WAITING, {"fay"})


@pytest.mark.django_db(transaction=True)
def test_one_of_several_answered_together_that_is_passed_on_just_then_is_said_so(
    bob: User, fay: User, gus: User, chained: Tool
) -> None:
    call, other = ask(bob, chained), ask(bob, chained, {"text": "other"})
    items = [batch.Item(each.pk, each.digest) for each in map(approval_of, (call, other))]
    with meanwhile(partial(say_yes, fay, call)):
        ends = batch.answer(items, "approve", signed_in(gus))
    assert [end.counted for end in ends] == [False, True]
    assert "it waits for another group now" in ends[0].said


@pytest.mark.django_db(transaction=True)
def test_a_no_of_before_it_was_passed_on_is_none_to_the_next_step(
    bob: User, fay: User, gus: User, chained: Tool
) -> None:
    call = ask(bob, chained)
    with meanwhile(partial(say_yes, fay, call)), pytest.raises(PassedOn):
        decide.decline(approval_of(call).pk, signed_in(gus))
    assert (status(call), waits_for(call)) == (Status.WAITING, {"lea", "max"})


# -- right before it starts --------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run")
@each_row("forged", ["one yes", "two of one group", "one for both"])
def test_a_call_moved_past_a_step_does_not_run(
    forged: str, bob: User, fay: User, gus: User, lea: User, finance: Group, legal: Group, chained: Tool
) -> None:
    call = ask(bob, chained)
    say_yes(fay, call)
    if forged != "one yes":
        say_yes(lea, call)
        theirs = Decision.objects.filter(person=lea)
        theirs.update(for_group=finance.pk) if forged == "two of one group" else theirs.update(absent=fay)
    if forged == "one yes":
        ToolCall.objects.filter(pk=call.pk).update(status=Status.APPROVED)
    assert status(call) == Status.APPROVED
    assert not run(call)
    assert fresh(call).reason == "Not run: fewer people approved it than have to."


@pytest.mark.guarantee("gate:same-call")
@each_row("change", ["order", "one group", "dropped", "third", "second deleted", "first deleted"])
def test_another_chain_voids_what_waits_and_what_was_approved_before(
    change: str, alice: User, bob: User, fay: User, lea: User, finance: Group, legal: Group, chained: Tool
) -> None:
    waits, passed, yes = (ask(bob, chained) for _ in range(3))
    for call in (passed, yes):
        say_yes(fay, call)
    say_yes(lea, yes)
    board = Group.objects.create(name="board")
    members(board, "ida")
    match change:
        case "order":
            rule_in_order(chained, alice, legal, finance)
        case "third":
            rule_in_order(chained, alice, finance, legal, board)
        case "one group" | "dropped":
            rules = Rules(DecidedBy.GROUP, finance, quorum=2) if change == "one group" else Rules()
            ruling.change(chained, rules, signed_in(alice), confirmed=True)
        case _:
            group = legal if change == "second deleted" else finance
            ruling.delete_group(group, signed_in(alice), confirmed=True)
    for call in (waits, passed, yes):
        assert not run(call)
        assert status(call) == Status.WITHDRAWN
    assert wrong_on_record() == []


def test_nobody_approves_what_is_asked_by_a_chain_with_a_deleted_group(
    bob: User, fay: User, gus: User, legal: Group, chained: Tool
) -> None:
    legal.delete()
    call = ask(bob, chained)
    with pytest.raises(AlreadySettled):
        say_yes(fay, call)
    assert (status(call), Oversight.objects.get().quorum) == (Status.WITHDRAWN, 2)


def test_a_chain_of_three_is_void_once_its_third_group_is_deleted(
    alice: User, bob: User, finance: Group, legal: Group, chained: Tool
) -> None:
    board = Group.objects.create(name="board")
    members(board, "ida")
    rule_in_order(chained, alice, finance, legal, board)
    call = ask(bob, chained)
    ruling.delete_group(board, signed_in(alice), confirmed=True)
    assert status(call) == Status.WITHDRAWN


def test_another_name_of_a_group_is_no_other_chain(
    bob: User, fay: User, lea: User, legal: Group, chained: Tool
) -> None:
    call, before = ask(bob, chained), oversight.of(chained).digest
    Group.objects.filter(pk=legal.pk).update(name="lawyers")
    assert oversight.of(chained).digest == before
    for user in (fay, lea):
        say_yes(user, call)
    assert run(call)


@pytest.mark.guarantee("audit:complete")
def test_whose_turn_it_is_cannot_be_changed_behind_the_record(
    bob: User, fay: User, finance: Group, chained: Tool
) -> None:
    call = ask(bob, chained)
    say_yes(fay, call)
    assert wrong_on_record() == []
    ToolCall.objects.filter(pk=call.pk).update(decider_group=finance.pk)
    assert wrong_on_record() == ["not what was called"]
    ToolCall.objects.filter(pk=call.pk).update(decider_group=Group.objects.get(name="legal").pk)
    Decision.objects.update(for_group=None)
    assert wrong_on_record() == ["not what was decided"]


# -- the rules ---------------------------------------------------------------------------------------------------------


def test_chains_that_could_never_be_satisfied_are_refused(
    subtests: pytest.Subtests, finance: Group, legal: Group, fay: User, tool: Tool
) -> None:
    legal.user_set.add(fay)
    full = Group.objects.create(name="full")
    members(full, "ida", "jon")
    group = DecidedBy.GROUP
    for given, words in [
        (Rules(DecidedBy.APPROVERS, **oversight.chain(legal, None)), "no group decides"),
        (Rules(group, finance, **oversight.chain(None, legal)), "approves second"),
        (Rules(group, full, **oversight.chain(full, None)), "another group for each step"),
        # Both are fay.
        (Rules(group, finance, **oversight.chain(legal, None)), "an active person of its own"),
        (Rules(group, finance, **oversight.chain(legal, full)), "an active person of its own"),
        (Rules(group, full, **oversight.chain(Group.objects.create(name="none"), None)), "an active person of its own"),
    ]:
        with subtests.test(words=words), pytest.raises(BadRules) as found:
            ruling.check(tool, given)
        assert words in found.value.errors["second"]
    ruling.check(tool, Rules(group, finance, **oversight.chain(full, None)))


def test_what_loosens_a_chain_is_confirmed_as_of_a_quorum(
    subtests: pytest.Subtests, finance: Group, legal: Group
) -> None:
    board, group = Group.objects.create(name="board"), DecidedBy.GROUP
    alone, two = Rules(group, finance), Rules(group, finance, quorum=2)
    chain = Rules(group, finance, **oversight.chain(legal, None))
    longer = Rules(group, finance, **oversight.chain(legal, board))
    turned = Rules(group, legal, **oversight.chain(finance, None))
    fewer, others = "different people have to approve", "Other people decide."
    for before, after, words in [
        (Rules(), chain, ()),
        (alone, chain, ()),
        (chain, longer, ()),
        (chain, alone, (fewer,)),
        (longer, chain, (fewer,)),
        (chain, turned, (others,)),
        (chain, Rules(group, finance, **oversight.chain(board, None)), (others,)),
        (chain, two, (others,)),
        (two, chain, (others,)),
        (longer, two, (fewer, others)),
        (chain, Rules(DecidedBy.APPROVERS, quorum=2), (others,)),
        (chain, Rules(), (fewer, "decides alone")),
    ]:
        with subtests.test(before=before, after=after):
            found = weaker_rules(before, after)
            assert len(found) == len(words)
            assert all(part in sentence for part, sentence in zip(words, found, strict=True))


def test_the_next_tool_of_a_name_has_its_chain_but_for_a_deleted_group(
    alice: User, bob: User, fay: User, lea: User, finance: Group, legal: Group, make_tool: MakeTool
) -> None:
    rule_in_order(make_tool("echo"), alice, finance, legal)
    rules = oversight.of(Tool.objects.get(name="echo"))
    for deleted in (False, True):
        tools.remove([Tool.objects.get(name="echo")], signed_in(alice))
        if deleted:
            legal.delete()
        found = oversight.of(make_tool("echo"))
        assert found == (replace(rules, second=None) if deleted else rules)
