"""Who hears of what: from the record, whoever asked, and nobody twice."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.gate import absences, decide, oversight
from hitlchat.gate.models import Approval, AuditEvent, ToolCall
from hitlchat.gate.status import Status
from hitlchat.notices.models import Heard, Installation, Item, Kind, NoticeKind, State, Wishes
from tests import clock
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, recording, say_yes
from tests.gate.deciding_people import escalated, members, rule
from tests.notices.noticing import look, made, of_group, webhook
from tests.notices.receivers import Inbound

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.guarantee("SR-22", "SR-44")
def test_who_may_decide_hears_with_a_link_and_without_arguments(
    alice: User, bob: User, charlie: User, inbound: Inbound, other: Inbound
) -> None:
    webhook(alice, inbound, person=bob)
    webhook(alice, other, person=charlie)
    call = ask(bob, recording(prompt_template="Say {args.text}?"), {"text": "the-value-4711"})
    look()
    (got,) = inbound.got
    approval = got.json["data"]["approvals"][0]
    assert got.json["type"] == "approval.waiting"
    assert approval["id"] == str(approval_of(call).pk)
    assert approval["url"] == f"https://hitl.example.com/approvals/{approval['id']}"
    assert (approval["tool"], approval["source"], approval["person"], approval["risk"]) == ("refund", "Tests", "bob", 2)
    assert "the-value" not in got.body.decode()
    assert other.got == []
    look()
    assert len(inbound.got) == 1


def test_a_group_hears_of_what_it_decides_and_a_second_one_once_it_may(
    alice: User, bob: User, inbound: Inbound, other: Inbound
) -> None:
    first, second = of_group("first"), of_group("second")
    members(first, "dora")
    (erik,) = members(second, "erik")
    webhook(alice, inbound, group=first)
    webhook(alice, other, group=second)
    tool = recording()
    rule(tool, alice, group=first, escalate_to=second, escalate_after_seconds=60)
    call = ask(bob, tool)
    look()
    assert (inbound.events, other.events) == (["approval.waiting"], [])
    escalated(call)
    look()
    look()
    assert (inbound.events, other.events) == (["approval.waiting"], ["approval.waiting"])
    decide.approve(approval_of(call).pk, signed_in(erik))
    look()
    assert inbound.events[-1] == other.events[-1] == "approval.decided"


def test_in_a_chain_each_group_hears_of_it_when_it_is_its_turn(
    alice: User, bob: User, inbound: Inbound, other: Inbound
) -> None:
    first, second = of_group("first"), of_group("second")
    (dora,), (erik,) = members(first, "dora"), members(second, "erik")
    webhook(alice, inbound, group=first)
    webhook(alice, other, person=erik)
    tool = recording()
    rule(tool, alice, group=first, **oversight.chain(second, None))
    call = ask(bob, tool)
    look()
    assert (inbound.events, other.events) == (["approval.waiting"], [])
    say_yes(dora, call)
    look()
    look()
    assert (inbound.events, other.events) == (["approval.waiting"], ["approval.waiting"])
    decide.take_back(call.pk, signed_in(dora))
    look()
    assert (inbound.events, other.events) == (["approval.waiting"], ["approval.waiting"])


def test_the_delegate_of_somebody_who_decides_hears_too(
    alice: User, bob: User, inbound: Inbound, other: Inbound
) -> None:
    finance = of_group("finance")
    (dora,) = members(finance, "dora")
    for name, to in (("carol", inbound), ("erik", other)):
        webhook(alice, to, person=User.objects.create_user(name))
    until = timezone.now() + timedelta(hours=1)
    absences.begin(dora.pk, "carol", None, until, signed_in(dora))
    absences.begin(bob.pk, "erik", None, until, signed_in(bob))
    tool = recording()
    rule(tool, alice, group=finance, not_the_requester=True)
    ask(bob, tool)
    look()
    assert (inbound.events, other.events) == (["approval.waiting"], [])


def test_what_was_decided_is_told_with_the_id_of_the_notice_that_told_of_it(
    alice: User, bob: User, inbound: Inbound
) -> None:
    webhook(alice, inbound)
    calls = [ask(bob, recording(name)) for name in ("one", "two")]
    look()
    say_yes(bob, calls[0])
    decide.decline(approval_of(calls[1]).pk, signed_in(bob))
    look()
    waiting, decided = inbound.got
    told = {each["tool"]: each for each in decided.json["data"]["approvals"]}
    assert decided.id != waiting.id
    assert {each["notice"] for each in told.values()} == {waiting.id}
    assert {name: (each["person"], each["outcome"], each["by"]) for name, each in told.items()} == {
        "one": ("bob", "approved", "bob"),
        "two": ("bob", "declined", "bob"),
    }


def test_a_burst_is_one_notice_and_the_next_one_comes_after_the_interval(
    alice: User, bob: User, inbound: Inbound, settings: Any
) -> None:
    settings.NOTICE_COLLECT_SECONDS, settings.NOTICE_INTERVAL_SECONDS = 5, 60
    webhook(alice, inbound)
    tool = recording()
    with clock.travel(timezone.now()) as time:
        for number in range(3):
            ask(bob, tool, {"text": str(number)})
        look()
        assert inbound.got == []
        time.shift(6)
        look()
        assert [got.json["data"]["waiting"] for got in inbound.got] == [3]
        ask(bob, tool, {"text": "late"})
        time.shift(30)
        look()
        assert len(inbound.got) == 1
        time.shift(31)
        look()
        assert [got.json["data"]["waiting"] for got in inbound.got] == [3, 1]


def test_what_is_answered_before_anyone_was_told_is_not_told(alice: User, bob: User, inbound: Inbound) -> None:
    webhook(alice, inbound)
    say_yes(bob, ask(bob, recording()))
    look()
    assert inbound.got == []
    assert not Item.objects.exists()


def test_quiet_hours_hold_back_and_their_end_tells_what_waits_and_what_expired(
    alice: User, bob: User, inbound: Inbound
) -> None:
    webhook(alice, inbound, person=bob, kind=Kind.SLACK)
    Wishes.objects.create(person=bob, quiet_from="22:00", quiet_until="07:00", time_zone="Europe/Berlin")
    tool = recording(deadline_seconds=86400)
    # 23:30 in Berlin.
    with clock.travel("2026-06-10T21:30:00+00:00") as time:
        Wishes.objects.update(code_sent_at=None)
        inbound_receiver = bob.notice_receivers.get()
        inbound_receiver.since = timezone.now()
        inbound_receiver.save()
        calls = [ask(bob, tool, {"text": str(number)}) for number in range(3)]
        look()
        time.move_to("2026-06-11T04:59:00+00:00")
        ToolCall.objects.filter(pk=calls[0].pk).update(status=Status.EXPIRED)
        look()
        assert inbound.got == []
        time.move_to("2026-06-11T05:00:01+00:00")
        look()
        look()
    (got,) = inbound.got
    assert (
        "During your quiet hours (22:00 to 07:00), 3 calls waited: 2 still wait, 1 expired, not run."
        in (got.json["text"])
    )


def test_people_hear_only_of_the_risk_and_the_tools_that_they_want(alice: User, bob: User, inbound: Inbound) -> None:
    webhook(alice, inbound, person=bob)
    Wishes.objects.create(person=bob, least_risk=3, tools=["wanted", "mild"])
    for name, risk in (("wanted", 3), ("mild", 2), ("other", 5)):
        ask(bob, recording(name, risk_level=risk))
    look()
    assert [each["tool"] for each in inbound.got[0].json["data"]["approvals"]] == ["wanted"]


def test_who_asks_for_notices_later_hears_nothing_of_what_was_asked_before(
    alice: User, bob: User, inbound: Inbound, other: Inbound
) -> None:
    webhook(alice, inbound)
    ask(bob, recording())
    webhook(alice, other)
    look()
    assert (len(inbound.got), other.got) == (1, [])


def test_somebody_who_was_deactivated_hears_nothing(alice: User, bob: User, inbound: Inbound) -> None:
    webhook(alice, inbound, person=bob)
    call = ask(bob, recording())
    User.objects.filter(pk=bob.pk).update(is_active=False)
    look()
    assert (inbound.got, call.status) == ([], Status.WAITING)


def test_what_was_to_be_tried_again_is_not_once_somebody_is_deactivated(
    alice: User, bob: User, inbound: Inbound
) -> None:
    webhook(alice, inbound, person=bob)
    inbound.status = 500
    ask(bob, recording())
    look()
    User.objects.filter(pk=bob.pk).update(is_active=False)
    inbound.status = 200
    with clock.travel(timezone.now() + timedelta(minutes=5)):
        look()
    assert ([each.state for each in made()], len(inbound.got)) == ([State.DROPPED], 1)


def test_who_left_the_group_before_the_notice_was_made_is_told_nothing_of_its_calls(
    alice: User, inbound: Inbound, settings: Any
) -> None:
    group = of_group("ops")
    dora, erik = members(group, "dora", "erik")
    webhook(alice, inbound, person=dora)
    tool = recording()
    rule(tool, alice, group=group)
    decided = ask(alice, tool)
    look()
    settings.NOTICE_COLLECT_SECONDS = 60
    decide.approve(approval_of(decided).pk, signed_in(erik))
    ask(alice, tool)
    look()
    assert (len(inbound.got), Item.objects.filter(notice=None).count()) == (1, 2)
    group.user_set.remove(dora)
    settings.NOTICE_COLLECT_SECONDS = 0
    look()
    assert (len(inbound.got), Item.objects.filter(notice=None).count()) == (1, 0)


def test_without_an_address_of_its_own_notices_say_so_in_words(
    alice: User, bob: User, inbound: Inbound, settings: Any
) -> None:
    settings.HITL_PUBLIC_URL, settings.ALLOWED_HOSTS = "", ["hitl.example.com"]
    webhook(alice, inbound)
    ask(bob, recording())
    look()
    assert inbound.got[0].json["data"]["approvals"][0]["url"] is None


@pytest.mark.embedded
def test_hundreds_of_approvals_make_one_notice_for_each_receiver(alice: User, bob: User, inbound: Inbound) -> None:
    webhook(alice, inbound, person=bob)
    storm(ask(bob, recording()), 200)
    look()
    look()
    (got,) = inbound.got
    told = got.json["data"]
    assert (told["waiting"], len(told["approvals"]), told["more"]) == (201, 20, 181)
    assert len(got.body) < 10_000


def storm(like: ToolCall, many: int) -> None:
    """So many more calls like this one, as other processes would have asked about them."""
    known = {field.attname: getattr(like, field.attname) for field in ToolCall._meta.fields if field.name != "id"}
    calls = ToolCall.objects.bulk_create(ToolCall(**known) for _ in range(many))
    shown = approval_of(like)
    Approval.objects.bulk_create(
        Approval(call=call, prompt="", disclosure=shown.disclosure, digest=shown.digest) for call in calls
    )
    AuditEvent.objects.bulk_create(AuditEvent(name="call.waiting", call=call, means="system") for call in calls)


def test_what_was_heard_is_forgotten_once_nothing_can_bring_it_up_again(
    alice: User, bob: User, inbound: Inbound
) -> None:
    webhook(alice, inbound)
    ask(bob, recording(deadline_seconds=86400))
    look()
    assert Heard.objects.count() == 1
    with clock.travel(timezone.now() + timedelta(minutes=5)):
        ask(bob, recording("other"))
        look()
    with clock.travel(timezone.now() + timedelta(minutes=15)):
        ask(bob, recording("third"))
        look()
    assert Heard.objects.count() == 2
    assert [len(got.json["data"]["approvals"]) for got in inbound.got] == [1, 1, 1]


@pytest.mark.guarantee("SR-44")
def test_arguments_are_told_only_if_an_administrator_allows_it_and_without_secrets(
    alice: User, bob: User, inbound: Inbound
) -> None:
    Installation.objects.update_or_create(pk=1, defaults={"arguments": True})
    webhook(alice, inbound)
    ask(bob, recording(input_schema={"type": "object"}), {"text": "order 7", "nested": {"dbPassword": "hunter2"}})
    look()
    told = inbound.got[0].json["data"]["approvals"][0]["arguments"]
    assert told == {"text": "order 7", "nested": {"dbPassword": "•••"}}
    assert "hunter2" not in json.dumps([each.body for each in made(NoticeKind.WAITING)])
