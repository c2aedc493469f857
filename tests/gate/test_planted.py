"""Attention checks: to whom they come and when, what they are made of, that none can run, and who learns of them."""

import ast
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, models, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hitlchat.base.problems import Forbidden, NotFound
from hitlchat.gate import (
    absences,
    batch,
    decide,
    deciders,
    editing,
    handling,
    perform,
    planted,
    queue,
    stated,
    transition,
)
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.card import card
from hitlchat.gate.models import (
    Announcement,
    AnnouncementRead,
    Approval,
    AttentionCheck,
    AuditEvent,
    Decision,
    Tool,
    ToolCall,
    new_id,
)
from hitlchat.gate.planted import BadAnnouncement, Totals
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from hitlchat.gate.transition import StaleCall
from tests.architecture.source import program_files, tree
from tests.conftest import signed_in
from tests.gate.asking import ask, recording, run, say_yes
from tests.gate.deciding_people import approver, rule
from tests.gate.racing import meanwhile, together
from tests.planted import AS_ASKED, REQUEST, SCHEMA, TEXT, announced, check_for, paid, paying

pytestmark = pytest.mark.django_db


def later(user: User, **by: float) -> None:
    """Let so much time go by for this person."""
    ago = timedelta(**by)
    for row in AnnouncementRead.objects.filter(person=user):
        AnnouncementRead.objects.filter(pk=row.pk).update(at=row.at - ago)
    for each in AttentionCheck.objects.filter(reading__person=user):
        AttentionCheck.objects.filter(pk=each.pk).update(at=each.at - ago, until=each.until - ago)


def other_reading(user: User) -> AnnouncementRead:
    found = planted.current()
    assert found is not None
    return AnnouncementRead.objects.create(announcement=found, person=user)


def planted_for(user: User) -> AttentionCheck | None:
    planted.arrive(user)
    return planted.open_to(user.pk)


def test_no_check_comes_before_it_is_announced_nor_to_whoever_has_not_read_that(alice: User, bob: User) -> None:
    paid(bob, paying())
    assert planted_for(bob) is None
    made = planted.announce(TEXT, 1, signed_in(alice))
    assert planted.arrive(bob) == planted.unread_by(bob.pk) == made
    assert planted_for(bob) is None
    planted.read(made.pk, signed_in(bob))
    assert planted.unread_by(bob.pk) is None
    later(bob, hours=23)
    assert planted_for(bob) is None
    later(bob, hours=13)
    assert planted_for(bob) is not None
    again = planted.announce("Once more.", 1, signed_in(alice))
    later(bob, days=9)
    assert planted.arrive(bob) == again
    assert AttentionCheck.objects.count() == 1


def test_a_person_gets_one_check_at_a_time_and_never_two_within_the_days_that_were_set(alice: User, bob: User) -> None:
    paid(bob, paying())
    announced(alice, bob, days=3)
    first = planted_for(bob)
    assert first is not None
    assert planted_for(bob) == first
    planted.answer(first.pk, signed_in(bob), declined=True)
    for _ in range(3):
        assert planted_for(bob) is None
        later(bob, hours=23.9)
    assert AttentionCheck.objects.count() == 1
    later(bob, days=2)
    second = planted_for(bob)
    assert second is not None
    assert second.after == first.pk
    with pytest.raises(IntegrityError), transaction.atomic():
        AttentionCheck.objects.create(reading=second.reading, after=first.pk, disclosure={}, until=second.until)
    with pytest.raises(IntegrityError), transaction.atomic():
        AttentionCheck.objects.create(after=first.pk, disclosure={}, until=second.until)


def test_a_check_shows_an_amount_that_contradicts_the_request_on_its_card(alice: User, bob: User) -> None:
    check = check_for(bob, alice)
    assert (check.argument, check.wanted, check.planted) == ("amount", "40", "400")
    shown = card(planted.as_question(check), signed_in(bob))
    assert shown.prompt.plain == "Refund 400"
    assert {row.name.plain: row.value.plain for row in shown.rows} == {"amount": "400", "note": "Thank you."}
    assert shown.said is not None
    assert shown.said.plain == REQUEST
    assert (shown.who and shown.who.stance, shown.whys, shown.grantable) == ("may", None, False)
    source = ToolCall.objects.get()
    assert str(source.pk) not in str(check.disclosure)
    assert str(source.conversation_id) not in str(check.disclosure)


@pytest.mark.parametrize(
    "given, shown",
    [("40.50", "405.00"), (40.5, "405.0"), ("40", "400")],
    ids=["an amount as text", "a fraction", "a whole one as text"],
)
def test_an_amount_is_changed_however_it_is_written(alice: User, bob: User, given: object, shown: str) -> None:
    tool = paying(input_schema={"type": "object", "properties": {"amount": {}}})
    paid(bob, tool, {"amount": given}, f"Refund {given} EUR.")
    announced(alice, bob)
    check = planted_for(bob)
    assert check is not None
    assert check.planted == shown


def test_a_recipient_is_changed_to_that_of_another_call_of_the_person(alice: User, bob: User) -> None:
    tool = paying()
    paid(bob, tool, {"to": "carol@example.com"})
    announced(alice, bob)
    assert planted_for(bob) is None
    paid(bob, tool, {"to": "dave@example.com"}, "Refund what is left to our other customer.")
    check = planted_for(bob)
    assert check is not None
    assert (check.argument, check.wanted, check.planted) == ("to", "carol@example.com", "dave@example.com")


@pytest.mark.parametrize(
    "columns, arguments, request_text",
    [
        ({}, AS_ASKED, ""),
        ({}, AS_ASKED, "Please refund what carol paid."),
        ({}, {"amount": 0}, "Refund 0."),
        ({}, {"note": "Thank you."}, "Say Thank you."),
        ({"risk_level": 5}, AS_ASKED, REQUEST),
        ({"input_schema": {"type": "object", "properties": {"amount": {"maximum": 50}}}}, AS_ASKED, REQUEST),
    ],
    ids=["no request", "not in it", "nothing more", "nothing to compare", "L5", "more than it may be"],
)
def test_of_a_call_that_tells_nothing_no_check_is_made(
    alice: User, bob: User, columns: dict[str, Any], arguments: dict[str, Any], request_text: str
) -> None:
    paid(bob, paying(**columns), arguments, request_text)
    announced(alice, bob)
    assert planted_for(bob) is None


def test_of_a_call_whose_card_shows_more_than_the_call_no_check_is_made(
    alice: User, bob: User, previews: list[Any]
) -> None:
    previews.append(Preview(text="Refunds 40 EUR"))
    call = ask(bob, paying(source="previewing"), AS_ASKED, user_prompt=REQUEST)
    say_yes(bob, call)
    announced(alice, bob)
    assert planted_for(bob) is None


@pytest.mark.django_db(transaction=True)
def test_of_two_pages_that_plant_or_answer_at_once_one_does(alice: User, bob: User) -> None:
    paid(bob, paying())
    announced(alice, bob)
    assert together(*[lambda: planted.arrive(bob)] * 2, meet_at_first_write=True) == [None, None]
    check = AttentionCheck.objects.get()
    actor = signed_in(bob)
    answers = together(
        lambda: planted.answer(check.pk, actor, declined=True).seen,
        lambda: planted.answer(check.pk, actor, declined=False).seen,
        meet_at_first_write=True,
    )
    assert answers in ([True, True], [False, False])
    names = [planted.PLANTED, planted.ANSWERED]
    assert list(AuditEvent.objects.filter(name__in=names).order_by("pk").values_list("name", flat=True)) == names


def test_nothing_is_made_of_calls_of_others_of_declined_ones_nor_of_a_tool_that_was_changed(
    alice: User, bob: User
) -> None:
    tool = paying()
    paid(alice, tool)
    decide.decline(ask(bob, tool, AS_ASKED, user_prompt=REQUEST).approval.pk, signed_in(bob))
    announced(alice, bob)
    assert planted_for(bob) is None
    paid(bob, tool)
    Tool.objects.filter(pk=tool.pk).update(definition_hash="e" * 64)
    assert planted_for(bob) is None


def test_nothing_is_made_of_calls_of_others_that_a_person_decided_nor_of_values_that_they_set_themselves(
    alice: User, bob: User, charlie: User
) -> None:
    dora, tool = approver("dora"), paying()
    absences.begin(bob.pk, "charlie", None, timezone.now() + timedelta(days=1), signed_in(bob))
    say_yes(charlie, ask(bob, tool, AS_ASKED, user_prompt=REQUEST))
    edited = ask(alice, tool, AS_ASKED, user_prompt=REQUEST)
    say_yes(alice, edited, edited=AS_ASKED | {"amount": 41})
    rule(tool, alice)
    say_yes(dora, ask(bob, tool, AS_ASKED, user_prompt=REQUEST))
    announced(alice, alice, charlie, dora)
    assert [planted_for(each) for each in (alice, charlie, dora)] == [None] * 3


def test_another_value_is_one_of_the_same_tool(alice: User, bob: User) -> None:
    paid(
        bob,
        recording("other", input_schema=SCHEMA),
        {"to": "dave@example.com"},
        "Refund what is left to our other customer.",
    )
    paid(bob, paying(), {"to": "carol@example.com"})
    announced(alice, bob)
    assert planted_for(bob) is None


def test_after_another_announcement_the_time_begins_anew_and_it_is_read_once(alice: User, bob: User) -> None:
    check = check_for(bob, alice)
    planted.answer(check.pk, signed_in(bob), declined=True)
    later(bob, days=3)
    made = planted.announce("Once more.", 1, signed_in(alice))
    for _ in range(2):
        planted.read(made.pk, signed_in(bob))
    assert planted_for(bob) is None
    assert AuditEvent.objects.filter(name=planted.READ, data__contains=str(made.pk)).count() == 1
    later(bob, days=2)
    assert planted_for(bob) is not None


def test_an_answer_is_of_one_check(alice: User, bob: User) -> None:
    first = check_for(bob, alice)
    paid(alice, Tool.objects.get())
    planted.read(first.reading.announcement_id, signed_in(alice))
    later(alice, days=22)
    second = planted_for(alice)
    assert second is not None
    planted.answer(first.pk, signed_in(bob), declined=True)
    assert planted.open_to(alice.pk) == second


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_no_way_to_answer_move_or_run_a_call_meets_a_check(alice: User, bob: User, entered: list[ToolCall]) -> None:
    check, actor = check_for(bob, alice), signed_in(bob)
    digest = planted.as_question(check).digest
    ways: list[Callable[[], object]] = [
        lambda: decide.approve(check.pk, actor, digest=digest),
        lambda: decide.decline(check.pk, actor),
        lambda: decide.answer(check.pk, actor, "Done."),
        lambda: decide.take_back_approval(check.pk, actor),
        lambda: editing.approve(check.pk, actor, digest=digest, edited="{}", shown=digest),
        lambda: handling.take_up(check.pk, actor),
    ]
    for way in ways:
        with pytest.raises(decide.NoSuchApproval):
            way()
    call = planted.as_question(check).call
    for status in (Status.APPROVED, Status.DECLINED, Status.ANSWERED, Status.EXPIRED, Status.WITHDRAWN):
        with pytest.raises(StaleCall):
            transition.move(call, status, actor=SYSTEM)
    assert async_to_sync(perform.start)(check.pk) is None
    other = ask(bob, recording("other")).approval
    with pytest.raises(decide.NoSuchApproval):
        batch.answer([batch.Item(check.pk, digest), batch.Item(other.pk, other.digest)], "approve", actor)
    decide.decline(other.pk, actor)
    assert deciders.one_seen_by(bob.pk, check.pk) is None
    assert (queue.count(bob.pk, 10), queue.first(bob.pk, 10)) == (0, [])
    assert (entered, set(ToolCall.objects.values_list("tool_name", flat=True))) == ([], {"pay", "other"})
    assert AuditEvent.objects.filter(call=None, name__startswith="call.").count() == 0
    check.refresh_from_db()
    assert check.is_open


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_no_statement_of_a_call_touches_checks_and_none_of_a_check_writes_anything_of_calls(
    alice: User, bob: User
) -> None:
    check = check_for(bob, alice)
    with CaptureQueriesContext(
        connection,
    ) as of_call:
        call = ask(bob, recording("other"))
        say_yes(bob, call)
        assert run(call)
        decide.decline(ask(bob, Tool.objects.get(name="other")).approval.pk, signed_in(bob))
    assert len(of_call) > 10
    assert [each["sql"] for each in of_call if "attentioncheck" in each["sql"]] == []
    with CaptureQueriesContext(connection) as of_check:
        planted.answer(check.pk, signed_in(bob), declined=False)
    written = [each["sql"] for each in of_check if each["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    assert [sql.split('"')[1] for sql in written] == ["gate_attentioncheck", "gate_auditevent"]
    assert Decision.objects.filter(person=bob, verdict="approve").count() == 2


@pytest.mark.guarantee("gate:one-funnel")
def test_checks_hang_on_no_call_and_only_their_own_files_know_of_them() -> None:
    related = {
        field.related_model
        for model in apps.get_app_config("gate").get_models()
        for field in model._meta.get_fields()
        if isinstance(field, models.ForeignKey) and AttentionCheck in (model, field.related_model)
    }
    assert related == {AnnouncementRead}
    knows = {
        path
        for path in program_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Name | ast.Attribute | ast.ClassDef | ast.alias)
        and "AttentionCheck" in (getattr(node, field, "") for field in ("id", "attr", "name"))
    }
    assert {path for path in knows if "/migrations/" not in path} == {
        "hitlchat/gate/models/__init__.py",
        "hitlchat/gate/models/attention.py",
        "hitlchat/gate/planted.py",
        "hitlchat/gate/stated.py",
        "hitlchat/approvals/planted.py",
        "hitlchat/api/planted.py",
    }


def test_the_first_answer_of_its_person_counts_and_no_other(alice: User, bob: User) -> None:
    check = check_for(bob, alice)
    for actor in (signed_in(alice), Actor(bob.pk, "token"), Actor(bob.pk, "system"), SYSTEM):
        with pytest.raises(NotFound):
            planted.answer(check.pk, actor, declined=True)
    assert planted.answer(check.pk, signed_in(bob), declined=False).seen is False
    assert planted.answer(check.pk, signed_in(bob), declined=True).seen is False
    assert planted.open_to(bob.pk) is None
    assert [each.seen for each in planted.over(bob.pk)] == [False]
    assert planted.over(alice.pk) == []


@pytest.mark.django_db(transaction=True)
def test_an_answer_counts_for_nothing_if_checks_are_turned_off_meanwhile(alice: User, bob: User) -> None:
    check = check_for(bob, alice)
    with meanwhile(lambda: planted.end(signed_in(alice))):
        assert planted.answer(check.pk, signed_in(bob), declined=True).seen is None


@pytest.mark.parametrize("turned_off", [True, False])
def test_an_answer_after_its_time_or_once_checks_are_off_counts_for_nothing(
    alice: User, bob: User, *, turned_off: bool
) -> None:
    check = check_for(bob, alice)
    if turned_off:
        planted.end(signed_in(alice))
        # Another process, which has not heard of it.
        planted.switch.on = True
    else:
        later(bob, days=1)
    assert planted.open_to(bob.pk) is None
    assert planted.answer(check.pk, signed_in(bob), declined=True).seen is None
    assert not AuditEvent.objects.filter(name=planted.ANSWERED).exists()
    assert [each.seen for each in planted.over(bob.pk)] == [None]


def test_the_record_says_that_there_was_a_check_and_seals_for_whom_and_how_without_telling(
    alice: User, bob: User
) -> None:
    check = check_for(bob, alice)
    made = planted.answer(check.pk, signed_in(bob), declined=False)
    events = list(AuditEvent.objects.filter(name__startswith="attention.").order_by("pk"))
    assert [(each.name, each.actor, each.call_id) for each in events] == [
        (planted.ANNOUNCED, alice, None),
        (planted.READ, bob, None),
        (planted.PLANTED, None, None),
        (planted.ANSWERED, None, None),
    ]
    assert [sorted(each.data) for each in events[2:]] == [["check", "states"]] * 2
    assert len({str(each.data["states"]) for each in events[2:]}) == 2
    for told in ("bob", "seen", "400", str(check.reading_id)):
        assert told not in str([each.data for each in events[2:]])
    assert stated.now("attention check") == events[-1].data["states"]["attention check"]
    for column, forged in {"seen": True, "planted": "40", "nonce": "", "reading": other_reading(alice)}.items():
        before = AttentionCheck.objects.values(column).get()
        AttentionCheck.objects.update(**{column: forged})
        assert stated.now("attention check") != events[-1].data["states"]["attention check"]
        AttentionCheck.objects.update(**before)
    assert made.seen is False


def test_administrators_get_totals_and_none_of_fewer_than_five_people(alice: User) -> None:
    tool = paying()
    people = [User.objects.create_user(f"person{number}") for number in range(5)]
    for person in people:
        paid(person, tool)
    announced(alice, *people)
    for number, person in enumerate(people):
        assert planted.totals() is None
        check = planted_for(person)
        assert check is not None
        planted.answer(check.pk, signed_in(person), declined=number != 1)
    assert planted.totals() == Totals(people=5, answered=5, seen=4)
    AttentionCheck.objects.update(at=timezone.now() - planted.COUNTED - timedelta(days=1))
    assert planted.totals() is None


def test_only_administrators_turn_them_on_and_only_with_words_and_a_bound(alice: User, bob: User) -> None:
    for actor in (signed_in(bob), Actor(alice.pk, "system"), SYSTEM):
        with pytest.raises(Forbidden):
            planted.announce(TEXT, 14, actor)
        with pytest.raises(Forbidden):
            planted.end(actor)
    for text, days, field in (
        ("  ", 14, "text"),
        ("x" * 2001, 14, "text"),
        (TEXT, 0, "every_days"),
        (TEXT, 91, "every_days"),
    ):
        with pytest.raises(BadAnnouncement) as refused:
            planted.announce(text, days, signed_in(alice))
        assert list(refused.value.errors) == [field]
    assert planted.current() is None
    with pytest.raises(NotFound):
        planted.read(new_id(), signed_in(bob))
    made = planted.announce(TEXT, 14, signed_in(alice))
    with pytest.raises(NotFound):
        planted.read(made.pk, Actor(bob.pk, "system"))
    planted.announce("Another one.", 14, signed_in(alice))
    with pytest.raises(NotFound):
        planted.read(made.pk, signed_in(bob))


def test_where_they_are_off_a_page_costs_no_query_for_them(bob: User, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert planted.arrive(bob) is None
        assert planted.open_to(bob.pk) is None
    assert not Approval.objects.exists()


def test_a_process_learns_what_another_one_announced_and_ended(alice: User, bob: User) -> None:
    async def look() -> None:
        await planted.worker().turn()

    planted.announce(TEXT, 14, signed_in(alice))
    planted.switch.on = False
    async_to_sync(look)()
    assert planted.arrive(bob) is not None
    Announcement.objects.update(ended_at=timezone.now())
    async_to_sync(look)()
    assert not planted.switch.on
