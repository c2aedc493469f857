"""Deciding for somebody who is away: who may, when, and that one person never gives two yeses."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hitlchat.accounts import roles
from hitlchat.accounts.models import Role
from hitlchat.gate import absences, decide, deciders, editing, queue, who
from hitlchat.gate.absences import BadAbsence
from hitlchat.gate.actor import Actor
from hitlchat.gate.counting import AlreadyCounted
from hitlchat.gate.decide import NoSuchApproval
from hitlchat.gate.deciders import NotEntitled, OnlySignedIn, SignInAgain
from hitlchat.gate.grants.scope import BadGrant, Scope
from hitlchat.gate.models import Absence, AuditEvent, DecidedBy, Decision, Tool, ToolCall
from hitlchat.gate.question import INPUT_SCHEMA
from hitlchat.gate.status import Status
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approval_of, ask, fresh, recording, run, say_yes, status
from tests.gate.deciding_people import escalated, members, rule
from tests.gate.granting import conditional
from tests.gate.racing import meanwhile, one_behind_the_other, together
from tests.tables import each_row

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
FOREIGN = (NoSuchApproval, NotEntitled)


@pytest.fixture
def carol(db: None) -> User:
    """Somebody without any say of their own."""
    return User.objects.create_user("carol")


def away(person: User, delegate: User, hours: float = 1, *, ago: float = 0) -> Absence:
    """The person says so themselves; `ago`: this many hours were over since."""
    made = absences.begin(person.pk, delegate.username, None, timezone.now() + hours * HOUR, signed_in(person))
    Absence.objects.filter(pk=made.pk).update(since=made.since - ago * HOUR, until=made.until - ago * HOUR)
    return Absence.objects.get(pk=made.pk)


def may(user: User, call: ToolCall) -> bool:
    """Whether a yes of theirs counts; what says so before they try is of one mind with it."""
    approval, lists = approval_of(call), deciders.waiting_for(user.pk).filter(call=call).exists()
    said = deciders.may_decide(signed_in(user), call)
    assert said == lists == (call.pk in queue.first(user.pk, 9)) == bool(queue.among(user.pk, [call.pk]))
    assert said == bool(queue.count(user.pk, 9))
    before = fresh(call).status
    try:
        decide.approve(approval.pk, signed_in(user), digest=approval.digest)
    except FOREIGN:
        assert (fresh(call).status, Decision.objects.filter(person=user).count()) == (before, 0)
        return False
    finally:
        assert said == (Decision.objects.filter(person=user).count() == 1)
    return True


# -- who ---------------------------------------------------------------------------------------------------------------


RULES: dict[str, dict[str, Any]] = {
    "requester": {},
    "approver": {"decided_by": DecidedBy.APPROVERS},
    "group": {"group": "finance"},
    "escalation": {"decided_by": DecidedBy.REQUESTER, "escalate_to": "finance", "escalate_after_seconds": 60},
    "two approvers": {"decided_by": DecidedBy.APPROVERS, "quorum": 2},
    "four eyes": {"decided_by": DecidedBy.APPROVERS, "not_the_requester": True},
    "two of a group, four eyes": {"group": "finance", "quorum": 2, "not_the_requester": True},
}
# Of which rules the absent dora, who is an approver and in the group, is one who decides; bob asks.
OF_DORA = {*RULES} - {"requester"}


def _asked(rules: str, asker: User, alice: User, finance: Group, tool: Tool) -> ToolCall:
    given = {name: finance if value == "finance" else value for name, value in RULES[rules].items()}
    if given:
        rule(tool, alice, **given)
    call = ask(asker, tool)
    if "escalate_to" in given:
        escalated(call)
    return fresh(call)


@pytest.mark.guarantee("gate:only-people")
@each_row("rules", [*RULES])
def test_a_delegate_may_what_the_absent_person_may_and_nothing_else(
    alice: User, bob: User, dora: User, carol: User, finance: Group, tool: Tool, rules: str
) -> None:
    members(finance, "gus", "fay")
    finance.user_set.add(dora)
    call = _asked(rules, bob, alice, finance, tool)
    assert not may(carol, call)
    away(dora, carol)
    assert may(carol, call) == (rules in OF_DORA)
    assert status(call) != Status.WAITING or not may(User.objects.create_user("stranger"), call)
    if rules in OF_DORA:
        yes = Decision.objects.get()
        assert (yes.person, yes.absent, yes.absent_name, who.name(yes)) == (carol, dora, "dora", "carol for dora")
        assert status(call) == (Status.WAITING if fresh(call).quorum > 1 else Status.APPROVED)


@pytest.mark.guarantee("gate:only-people")
def test_the_delegate_of_who_asks_decides_where_they_do_but_never_about_a_question_to_them(
    bob: User, carol: User, tool: Tool
) -> None:
    away(bob, carol)
    ask_user = recording("ask_user", source="person", input_schema=INPUT_SCHEMA)
    question = ask(bob, ask_user, {"question": "Which customer?"})
    assert status(question) == Status.WAITING
    assert not deciders.may_decide(signed_in(carol), question)
    with pytest.raises(NoSuchApproval):
        say_yes(carol, question)
    call = ask(bob, tool)
    assert deciders.right_of(signed_in(carol), call) == (True, bob)
    say_yes(carol, call)
    assert run(call)
    assert status(call) == Status.SUCCEEDED


@pytest.mark.guarantee("gate:only-people", "SR-43")
def test_a_delegate_gives_no_grant_for_the_calls_of_who_is_away(bob: User, carol: User) -> None:
    away(bob, carol)
    call = ask(bob, conditional())
    with pytest.raises(BadGrant, match="Only the person whose calls"):
        say_yes(carol, call, grant=Scope(calls=1))
    assert status(call) == Status.WAITING


@pytest.mark.guarantee("gate:only-people")
@each_row("rules", [name for name, given in RULES.items() if given.get("not_the_requester")])
def test_four_eyes_keep_out_the_delegate_of_who_asks_whatever_else_they_may(
    alice: User, bob: User, dora: User, erik: User, carol: User, finance: Group, tool: Tool, rules: str
) -> None:
    finance.user_set.add(dora, erik)
    call = _asked(rules, bob, alice, finance, tool)
    away(bob, dora)
    away(erik, carol)
    # Their own say, too; and that of somebody else whose delegate they are.
    assert not may(dora, call)
    Absence.objects.filter(person=erik).update(delegate=dora)
    User.objects.filter(pk=dora.pk).update(is_active=True)
    roles.give(dora, Role.MEMBER)
    finance.user_set.remove(dora)
    assert not may(dora, call)
    assert {*deciders.delegates(call)} == set()
    Absence.objects.filter(person=bob).update(until=timezone.now())
    assert may(dora, call)


@pytest.mark.guarantee("gate:only-people")
def test_four_eyes_keep_out_who_asks_as_the_delegate_of_somebody_who_decides(
    alice: User, bob: User, dora: User, tool: Tool
) -> None:
    rule(tool, alice, not_the_requester=True)
    call = ask(bob, tool)
    away(dora, bob)
    assert not deciders.may_decide(signed_in(bob), call)
    with pytest.raises(NotEntitled):
        say_yes(bob, call)
    assert (status(call), Decision.objects.count()) == (Status.WAITING, 0)
    assert not deciders.delegates(call).exists()


@pytest.mark.guarantee("gate:only-people")
@each_row("what", ["over", "not begun", "ended", "delegate deactivated", "absent deactivated", "role lost", "left"])
def test_the_right_is_gone_at_once_with_its_dates_its_people_and_what_it_came_from(
    alice: User, bob: User, dora: User, carol: User, finance: Group, tool: Tool, what: str
) -> None:
    (fay,) = members(finance, "fay")
    rule(tool, alice, **({"group": finance} if what == "left" else {}))
    absence = away(fay if what == "left" else dora, carol)
    call = ask(bob, tool)
    assert deciders.may_decide(signed_in(carol), call)
    rows, now = Absence.objects.filter(pk=absence.pk), timezone.now()
    match what:
        case "over":
            rows.update(since=now - HOUR, until=now)
        case "not begun":
            rows.update(since=now + HOUR / 2)
        case "ended":
            absences.end(absence.pk, signed_in(dora))
        case "delegate deactivated":
            User.objects.filter(pk=carol.pk).update(is_active=False)
        case "absent deactivated":
            User.objects.filter(pk=dora.pk).update(is_active=False)
        case "role lost":
            roles.give(dora, Role.MEMBER)
        case "left":
            finance.user_set.remove(fay)
    assert not may(carol, call)
    with pytest.raises(NoSuchApproval):
        decide.decline(approval_of(call).pk, signed_in(carol))
    assert status(call) == Status.WAITING


def test_what_was_passed_on_is_not_passed_on(alice: User, bob: User, dora: User, carol: User, tool: Tool) -> None:
    rule(tool, alice)
    gus = User.objects.create_user("gus")
    away(dora, carol)
    away(carol, gus)
    call = ask(bob, tool)
    assert not may(gus, call)
    assert may(carol, call)


def test_who_may_themselves_decides_in_their_own_right(
    alice: User, bob: User, dora: User, erik: User, tool: Tool
) -> None:
    rule(tool, alice)
    away(dora, erik)
    call = ask(bob, tool)
    say_yes(erik, call)
    assert Decision.objects.get().absent is None
    assert not AuditEvent.objects.filter(call=call, data__contains='"for":').exists()


def test_a_delegate_gets_five_more_minutes_in_the_last_one(
    alice: User, bob: User, dora: User, carol: User, tool: Tool
) -> None:
    rule(tool, alice)
    absence, call = away(dora, carol), ask(bob, tool)
    until = timezone.now() + timedelta(seconds=30)
    ToolCall.objects.filter(pk=call.pk).update(deadline=until)
    assert editing.extend(approval_of(call).pk, signed_in(carol)).deadline == until + editing.MORE
    ToolCall.objects.filter(pk=call.pk).update(deadline=until)
    absences.end(absence.pk, signed_in(dora))
    with pytest.raises(NoSuchApproval):
        editing.extend(approval_of(call).pk, signed_in(carol))
    assert fresh(call).deadline == until


@pytest.mark.django_db(transaction=True)
@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:only-people")
def test_whose_right_ends_in_that_moment_adds_no_minutes(
    alice: User, bob: User, dora: User, carol: User, tool: Tool
) -> None:
    rule(tool, alice)
    absence, call = away(dora, carol), ask(bob, tool)
    until = timezone.now() + timedelta(seconds=30)
    ToolCall.objects.filter(pk=call.pk).update(deadline=until)
    with meanwhile(lambda: absences.end(absence.pk, signed_in(dora))), pytest.raises(NoSuchApproval):
        editing.extend(approval_of(call).pk, signed_in(carol))
    assert fresh(call).deadline == until


def test_a_delegate_declines_and_answers_and_the_record_says_for_whom(
    alice: User, bob: User, dora: User, carol: User, tool: Tool
) -> None:
    rule(tool, alice)
    away(dora, carol)
    first, second = ask(bob, tool), ask(bob, tool, {"text": "other"})
    decide.decline(approval_of(first).pk, signed_in(carol), reason="no")
    decide.answer(approval_of(second).pk, signed_in(carol), "42")
    assert (status(first), status(second)) == (Status.DECLINED, Status.ANSWERED)
    for call, name in ((first, "call.declined"), (second, "call.answered")):
        event = AuditEvent.objects.get(call=call, name=name)
        assert (event.actor, event.data["for"]) == (carol, {"id": dora.pk, "name": "dora"})
    # What they decided they may look at, also later; and nothing else.
    Absence.objects.update(until=timezone.now())
    assert {each.call_id for each in deciders.seen_by(carol.pk)} == {first.pk, second.pk}


@pytest.mark.guarantee("gate:only-people")
def test_the_highest_risk_needs_the_fresh_sign_in_of_the_delegate(
    alice: User, bob: User, dora: User, carol: User
) -> None:
    tool = recording(risk_level=5)
    rule(tool, alice)
    away(dora, carol)
    call = ask(bob, tool)
    approval = approval_of(call)
    with pytest.raises(SignInAgain):
        decide.approve(approval.pk, Actor(carol.pk, "session", signed_in_at=timezone.now() - HOUR))
    with pytest.raises(OnlySignedIn):
        decide.approve(approval.pk, Actor(carol.pk, "token", token="t"))
    say_yes(carol, call)
    assert status(call) == Status.APPROVED


# -- one yes for each --------------------------------------------------------------------------------------------------


@pytest.fixture
def by_two(alice: User, tool: Tool) -> Tool:
    rule(tool, alice, quorum=2)
    return tool


@pytest.mark.guarantee("gate:only-people")
def test_the_absent_person_and_their_delegate_have_one_yes_together(
    alice: User, bob: User, dora: User, carol: User, by_two: Tool
) -> None:
    away(dora, carol)
    first, second = ask(bob, by_two), ask(bob, by_two, {"text": "other"})
    say_yes(carol, first)
    with pytest.raises(AlreadyCounted, match="The yes of dora counts already: 1 of 2"):
        say_yes(dora, first)
    say_yes(dora, second)
    with pytest.raises(AlreadyCounted, match="The yes of dora counts already"):
        say_yes(carol, second)
    assert {status(first), status(second)} == {Status.WAITING}
    standing = who.stance_of(approval_of(first), signed_in(dora))
    assert (standing.stance, standing.by and standing.by.plain) == ("said", "carol for dora")
    assert [each.plain for each in standing.yes] == ["carol for dora"]
    for call in (first, second):
        say_yes(alice, call)
        assert status(call) == Status.APPROVED


@pytest.mark.guarantee("gate:only-people")
def test_the_delegate_of_two_has_one_yes_also_when_they_come_to_a_say_of_their_own(
    alice: User, bob: User, dora: User, erik: User, carol: User, by_two: Tool
) -> None:
    away(dora, carol)
    away(erik, carol)
    call = ask(bob, by_two)
    say_yes(carol, call)
    with pytest.raises(AlreadyCounted, match="You already approved"):
        say_yes(carol, call)
    roles.give(carol, Role.APPROVER)
    # It becomes their own, and dora may give hers.
    say_yes(carol, call)
    with pytest.raises(AlreadyCounted, match="You already approved"):
        say_yes(carol, call)
    assert (status(call), Decision.objects.get().absent) == (Status.WAITING, None)
    say_yes(dora, call)
    assert status(call) == Status.APPROVED


@pytest.mark.guarantee("gate:only-people")
def test_of_two_yeses_for_one_that_both_come_to_count_one_does(
    alice: User, bob: User, dora: User, erik: User, carol: User, by_two: Tool
) -> None:
    away(dora, carol)
    call = ask(bob, by_two)
    say_yes(carol, call)
    User.objects.filter(pk=carol.pk).update(is_active=False)
    say_yes(dora, call)
    User.objects.filter(pk=carol.pk).update(is_active=True)
    assert deciders.counted(approval=approval_of(call)).count() == 2
    with pytest.raises(AlreadyCounted):
        say_yes(dora, call)
    assert status(call) == Status.WAITING
    say_yes(erik, call)
    assert status(call) == Status.APPROVED


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_call_moved_past_two_yeses_for_one_person_does_not_run(
    alice: User, bob: User, dora: User, carol: User, by_two: Tool, entered: list[ToolCall]
) -> None:
    away(dora, carol)
    call = ask(bob, by_two)
    say_yes(carol, call)
    User.objects.filter(pk=carol.pk).update(is_active=False)
    say_yes(dora, call)
    ToolCall.objects.filter(pk=call.pk).update(status=Status.APPROVED)
    assert Decision.objects.count() == by_two.oversight.quorum == 2
    assert not run(call)
    assert (entered, fresh(call).reason) == ([], "Not run: fewer people approved it than have to.")


@pytest.mark.guarantee("gate:only-people")
@each_row("what", ["ended", "delegate deactivated", "four eyes"])
def test_a_yes_for_somebody_counts_while_it_may_be_given(
    alice: User, bob: User, dora: User, erik: User, carol: User, tool: Tool, what: str
) -> None:
    rule(tool, alice, quorum=2, not_the_requester=True)
    absence = away(dora, carol)
    call = ask(bob, tool)
    say_yes(carol, call)
    if what == "ended":
        absences.end(absence.pk, signed_in(dora))
    elif what == "four eyes":
        away(bob, carol)
    else:
        User.objects.filter(pk=carol.pk).update(is_active=False)
    say_yes(erik, call)
    assert status(call) == Status.WAITING
    say_yes(dora, call)
    assert status(call) == Status.APPROVED


def test_a_yes_stays_that_moved_the_call_before_the_end(
    alice: User, bob: User, dora: User, carol: User, tool: Tool
) -> None:
    rule(tool, alice)
    absence = away(dora, carol)
    call = ask(bob, tool)
    say_yes(carol, call)
    absences.end(absence.pk, signed_in(dora))
    assert run(call)


# -- dates and people --------------------------------------------------------------------------------------------------


def test_a_person_names_a_delegate_and_ends_it_on_record(alice: User, bob: User, carol: User) -> None:
    until = timezone.now() + HOUR
    made = absences.begin(bob.pk, "carol", timezone.now() - 9 * HOUR, until, signed_in(bob))
    # Never of what was before.
    assert timezone.now() - made.since < HOUR
    with pytest.raises(LookupError):
        absences.end(made.pk, signed_in(carol))
    absences.end(made.pk, signed_in(alice))
    with pytest.raises(LookupError):
        absences.end(made.pk, signed_in(bob))
    facts = [*AuditEvent.objects.filter(name__startswith="delegation.").values_list("name", "actor__username")]
    assert facts == [("delegation.made", "bob"), ("delegation.ended", "alice")]
    later = absences.begin(bob.pk, "carol", until, until + HOUR, signed_in(bob))
    absences.end(later.pk, signed_in(bob))
    assert not absences.open_ones().exists()
    assert Absence.objects.get(pk=later.pk).until == later.since


@each_row("who_names", ["bob", "alice", "dora"])
def test_an_administrator_names_one_for_somebody_else_and_nobody_else_does(
    alice: User, bob: User, carol: User, dora: User, who_names: str
) -> None:
    actor = signed_in(User.objects.get(username=who_names))
    begin = partial(absences.begin, bob.pk, "carol", None, timezone.now() + HOUR, actor)
    if who_names == "dora":
        with pytest.raises(LookupError):
            begin()
        assert not Absence.objects.exists()
    else:
        assert begin().delegate == carol


def test_no_program_and_nobody_deactivated_names_a_delegate(bob: User, carol: User) -> None:
    until = timezone.now() + HOUR
    for actor in (Actor(bob.pk, "system"), Actor(bob.pk, "elicitation")):
        with pytest.raises(LookupError):
            absences.begin(bob.pk, "carol", None, until, actor)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    with pytest.raises(LookupError):
        absences.begin(bob.pk, "carol", None, until, signed_in(bob))


@each_row(
    "case",
    [
        ("bob", "bob", 0, 1, "Nobody can decide in their own place"),
        ("bob", "nobody", 0, 1, "no active person"),
        ("bob", "gone", 0, 1, "no active person"),
        ("alice", "alice", 0, 1, "You cannot name yourself"),
        ("bob", "carol", 2, 2, "Expected a moment after the beginning"),
        ("bob", "carol", -2, -1, "later than now"),
        ("bob", "carol", 0, 366 * 24, "At most 365 days"),
        ("bob", "dora", 1, 3, "dora has named somebody else"),
        ("erik", "carol", 1, 3, "Somebody is named for a part of this time"),
    ],
)
def test_no_delegate_is_named_who_must_not_be(
    alice: User, bob: User, carol: User, dora: User, erik: User, case: tuple[str, str, int, int, str]
) -> None:
    User.objects.create_user("gone", is_active=False)
    for person in (dora, erik):
        absences.begin(person.pk, "bob", None, timezone.now() + 2 * HOUR, signed_in(person))
    by, name, since, until, words = case
    whose = erik if by == "erik" else bob
    actor, now = signed_in(User.objects.get(username=by)), timezone.now()
    with pytest.raises(BadAbsence, match=words):
        absences.begin(whose.pk, name, now + since * HOUR, now + until * HOUR, actor)
    assert Absence.objects.count() == 2


def test_delegations_one_after_the_other_are_fine(bob: User, carol: User, dora: User) -> None:
    now = timezone.now()
    absences.begin(dora.pk, "bob", None, now + HOUR, signed_in(dora))
    absences.begin(bob.pk, "dora", now + HOUR, now + 2 * HOUR, signed_in(bob))
    absences.begin(bob.pk, "carol", now + 2 * HOUR, now + 3 * HOUR, signed_in(bob))


# -- cost --------------------------------------------------------------------------------------------------------------


def _statements(call: ToolCall, user: User) -> list[str]:
    with CaptureQueriesContext(connection) as queries:
        say_yes(user, call)
    return [each["sql"] for each in queries]


def test_a_person_s_yes_to_their_own_call_reads_nothing_of_delegations(bob: User, tool: Tool) -> None:
    assert not [sql for sql in _statements(ask(bob, tool), bob) if "gate_absence" in sql]


# -- at once -----------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:only-people", "gate:one-outcome")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("what", ["ended", "over", "deactivated", "role lost", "four eyes"])
def test_a_right_that_ends_between_reading_and_writing_does_not_count(
    alice: User, bob: User, dora: User, carol: User, make_tool: MakeTool, what: str
) -> None:
    tool = make_tool("echo")
    rule(tool, alice, not_the_requester=True)
    absence = away(dora, carol)
    call = ask(bob, tool)
    ends: dict[str, Any] = {
        "ended": partial(absences.end, absence.pk, signed_in(dora)),
        "over": partial(Absence.objects.filter(pk=absence.pk).update, until=timezone.now()),
        "deactivated": partial(User.objects.filter(pk=carol.pk).update, is_active=False),
        "role lost": partial(roles.give, dora, Role.MEMBER),
        "four eyes": partial(away, bob, carol),
    }
    with meanwhile(ends[what]), pytest.raises(NoSuchApproval):
        say_yes(carol, call)
    assert (status(call), Decision.objects.count()) == (Status.WAITING, 0)


@pytest.mark.guarantee("gate:only-people")
@pytest.mark.django_db(transaction=True)
def test_the_absent_person_and_their_delegate_at_once_give_one_yes(
    alice: User, bob: User, dora: User, carol: User, make_tool: MakeTool
) -> None:
    tool = make_tool("echo")
    rule(tool, alice, quorum=2)
    away(dora, carol)
    call = ask(bob, tool)
    ends = together(partial(say_yes, dora, call), partial(say_yes, carol, call), meet_at_first_write=True)
    assert sorted(type(each).__name__ for each in ends) == ["AlreadyCounted", "Approval"]
    assert (status(call), Decision.objects.count()) == (Status.WAITING, 1)


@pytest.mark.guarantee("gate:one-outcome")
@pytest.mark.django_db(transaction=True)
def test_an_end_and_a_yes_at_once_come_one_after_the_other(
    alice: User, bob: User, dora: User, carol: User, make_tool: MakeTool
) -> None:
    tool = make_tool("echo")
    rule(tool, alice)
    absence = away(dora, carol)
    call = ask(bob, tool)
    yes, _ = together(
        partial(say_yes, carol, call), partial(absences.end, absence.pk, signed_in(dora)), meet_at_first_write=True
    )
    assert (status(call) == Status.APPROVED) == (not isinstance(yes, BaseException))
    assert not Absence.current().exists()


@pytest.mark.postgres
@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("audit:complete")
@pytest.mark.django_db(transaction=True)
def test_an_end_waits_for_a_yes_that_is_on_its_way_to_the_record(
    alice: User, bob: User, dora: User, carol: User, make_tool: MakeTool
) -> None:
    tool = make_tool("echo")
    rule(tool, alice)
    absence = away(dora, carol)
    call = ask(bob, tool)
    one_behind_the_other(partial(say_yes, carol, call), partial(absences.end, absence.pk, signed_in(dora)))
    names = ["call.approved", absences.ENDED]
    assert [*AuditEvent.objects.filter(name__in=names).order_by("pk").values_list("name", flat=True)] == names


@pytest.mark.django_db(transaction=True)
def test_of_two_who_end_one_at_once_one_does_and_others_stay(alice: User, bob: User, dora: User, carol: User) -> None:
    absence, other = away(bob, carol), away(dora, carol)
    with meanwhile(partial(absences.end, absence.pk, signed_in(alice))):
        absences.end(absence.pk, signed_in(bob))
    assert AuditEvent.objects.get(name=absences.ENDED).actor == alice
    assert [*Absence.current()] == [other]


@pytest.mark.django_db(transaction=True)
def test_two_who_name_each_other_at_once_make_no_circle(bob: User, carol: User) -> None:
    until = timezone.now() + HOUR
    ends = together(
        partial(absences.begin, bob.pk, "carol", None, until, signed_in(bob)),
        partial(absences.begin, carol.pk, "bob", None, until, signed_in(carol)),
        meet_at_first_write=True,
    )
    assert sorted(type(each).__name__ for each in ends) == ["Absence", "BadAbsence"]
    assert Absence.objects.count() == 1
