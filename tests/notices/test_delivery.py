"""Delivery over the wire: to real receivers that take it, refuse it, hang, redirect, or are where they must
not be.
"""

import base64
import hmac
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.base.problems import Conflict
from hitlchat.gate.models import AuditEvent
from hitlchat.notices import delivery, receivers
from hitlchat.notices.models import Kind, Notice, NoticeKind, Receiver, State
from tests import clock
from tests.conftest import signed_in
from tests.gate.asking import ask, recording, say_yes
from tests.notices.noticing import look, made, webhook
from tests.notices.receivers import Delivery, Inbound, receiving

pytestmark = pytest.mark.django_db(transaction=True)


def tried_out(receiver: Receiver, alice: User) -> Notice:
    notice = receivers.test(receiver, alice, signed_in(alice))
    look()
    return Notice.objects.get(pk=notice.pk)


def is_signed(got: Delivery, key: str) -> bool:
    signed = f"{got.id}.{got.headers['webhook-timestamp']}.".encode() + got.body
    digest = hmac.digest(base64.b64decode(key.removeprefix("whsec_")), signed, "sha256")
    return f"v1,{base64.b64encode(digest).decode()}" in got.headers["webhook-signature"].split(" ")


def test_what_is_sent_is_signed_and_a_new_key_counts_beside_the_former_one_for_a_day(
    alice: User, inbound: Inbound
) -> None:
    receiver, former = webhook(alice, inbound)
    assert tried_out(receiver, alice).state == State.SENT
    key = receivers.new_key(receiver, signed_in(alice))
    receiver.refresh_from_db()
    tried_out(receiver, alice)
    with clock.travel(timezone.now() + timedelta(hours=25)):
        tried_out(receiver, alice)
    first, second, third = inbound.got
    assert is_signed(first, former)
    assert (is_signed(second, former), is_signed(second, key)) == (True, True)
    assert (is_signed(third, former), is_signed(third, key)) == (False, True)
    assert first.headers["content-type"] == "application/json"


def test_a_test_shows_what_came_back_without_the_address(alice: User, inbound: Inbound) -> None:
    inbound.status, inbound.said = 403, f"no such hook: {inbound.url}\x1b[31m invalid_token".encode()
    receiver, _ = webhook(alice, inbound)
    notice = tried_out(receiver, alice)
    assert (notice.state, notice.status, notice.trouble) == (State.GIVEN_UP, 403, "The receiver answered 403.")
    assert notice.answer == "no such hook: •••U+001B[31m invalid_token"


def test_a_receiver_that_answers_500_for_a_day_is_tried_ever_more_seldom_and_given_up(
    alice: User, bob: User, inbound: Inbound
) -> None:
    inbound.status = 500
    webhook(alice, inbound)
    begun = timezone.now()
    with clock.travel(begun) as time:
        ask(bob, recording(deadline_seconds=7 * 86400))
        pauses: list[float] = []
        look()
        while (notice := Notice.objects.get()).state == State.DUE:
            pauses.append((notice.next_try_at - timezone.now()).total_seconds())
            time.move_to(notice.next_try_at + timedelta(milliseconds=1))
            look()
        assert timedelta(hours=24) <= timezone.now() - begun < timedelta(hours=32)
    assert notice.state == State.GIVEN_UP
    assert notice.trouble == "The receiver answered 500."
    assert notice.tries == len(inbound.got) == len(pauses) + 1 <= 14
    # About five seconds at first, and what passes at the database meanwhile.
    assert 4 <= pauses[0] <= 12
    assert all(later > earlier for earlier, later in pairwise(pauses[:7]))
    assert {got.id for got in inbound.got} == {notice.message_id}
    assert {got.body for got in inbound.got} == {inbound.got[0].body}


def test_what_comes_while_a_receiver_is_away_is_told_in_few_notices(alice: User, bob: User, inbound: Inbound) -> None:
    inbound.status = 500
    webhook(alice, inbound, tells_decided=False)
    tool = recording(deadline_seconds=7 * 86400)
    with clock.travel(timezone.now()) as time:
        for number in range(8):
            ask(bob, tool, {"text": str(number)})
            look()
            time.shift(1)
        assert len(made()) == 5
        inbound.status = 204
        time.shift(3600)
        look()
        look()
        look()
    waiting = {got.id: got.json["data"]["waiting"] for got in inbound.got}
    assert sorted(waiting.values()) == [1, 1, 1, 1, 1, 3]


def test_a_redirect_is_not_followed(alice: User, inbound: Inbound, other: Inbound) -> None:
    inbound.status, inbound.headers = 307, {"Location": other.url}
    receiver, _ = webhook(alice, inbound)
    notice = tried_out(receiver, alice)
    assert (notice.status, notice.trouble) == (307, "The receiver answered with a redirect, which is not followed.")
    assert other.got == []


def test_410_switches_a_webhook_off_and_says_why(alice: User, bob: User, inbound: Inbound) -> None:
    inbound.status = 410
    receiver, _ = webhook(alice, inbound)
    ask(bob, recording())
    look()
    receiver.refresh_from_db()
    assert (receiver.enabled, receiver.off_why) == (False, "The receiver answered 410 Gone: it wants no more notices.")
    assert AuditEvent.objects.filter(name="notice.webhook_gone").count() == 1
    ask(bob, recording("another"))
    look()
    assert len(inbound.got) == 1


def test_nothing_is_sent_to_private_addresses_unless_an_administrator_said_so(alice: User, inbound: Inbound) -> None:
    """What an address itself says is refused at once; where a name leads to, when it is sent."""
    for host in ("[::1]", "169.254.169.254"):
        with pytest.raises(Conflict, match="is not a public address"):
            webhook(alice, f"https://{host}:{inbound.port}/in", allow_private=False)
    receiver, _ = webhook(alice, f"https://localhost:{inbound.port}/in", allow_private=False)
    notice = tried_out(receiver, alice)
    assert "must not be reached, and private addresses are not allowed" in notice.trouble
    assert inbound.got == []


def test_where_the_installation_forbids_private_addresses_no_administrator_opens_them(
    alice: User, inbound: Inbound, settings: Any
) -> None:
    receiver, _ = webhook(alice, inbound)
    settings.NOTICE_ALLOW_PRIVATE = False
    assert "private addresses are not allowed" in tried_out(receiver, alice).trouble
    assert inbound.got == []
    with pytest.raises(Conflict, match="https://"):
        webhook(alice, inbound)


NO_ADDRESSES = (
    "", "ftp://example.com/x", "https://", "http://example.com/x", "https://user:pass@example.com/",
    "https://example.com/#x", "https://example.com:0/", "https://exämple.com/", "https://example.com/a b",
    "https://example.com/\r\nX: y", "https://[::ffff:127.0.0.1]/", "https://256.1.1.1/", "https://[v1.x]/",
)  # fmt: skip


def test_what_is_no_address_for_a_webhook_is_refused_or_leads_nowhere(alice: User) -> None:
    for url in NO_ADDRESSES:
        with pytest.raises(Conflict):
            webhook(alice, url, allow_private=False)
    receiver, _ = webhook(alice, "https://2130706433/", allow_private=False)
    assert tried_out(receiver, alice).state == State.GIVEN_UP


@pytest.fixture
def silent() -> Iterator[list[Inbound]]:
    """Receivers that take a request and never answer."""
    with ExitStack() as stack:
        found = [stack.enter_context(receiving()) for _ in range(2)]
        for each in found:
            each.hangs = True
        yield found
        for each in found:
            each.over.set()


def test_receivers_that_hang_delay_neither_others_nor_answers(
    alice: User, bob: User, silent: list[Inbound], inbound: Inbound, settings: Any
) -> None:
    """They are told first; the time that they may take is shortened."""
    settings.NOTICE_TIMEOUT_SECONDS = 1
    for each in silent:
        for _ in range(4):
            webhook(alice, each)
    webhook(alice, inbound)
    call = ask(bob, recording())
    look()
    assert len(inbound.got) == 1
    assert all(len(each.got) == delivery.MOST_PER_PLACE for each in silent)
    failed = Notice.objects.exclude(trouble="")
    assert {each.trouble for each in failed} == {"No complete response within 1 seconds."}
    say_yes(bob, call)


@pytest.mark.servers("row locks tell two at a time apart")
def test_what_a_process_left_that_died_another_one_sends_under_the_same_id(
    alice: User, bob: User, inbound: Inbound
) -> None:
    webhook(alice, inbound)
    ask(bob, recording(deadline_seconds=86400))
    look()
    until = timezone.now() + delivery.lease(is_mail=False)
    # As it is when a process dies after it sent, and before it noted that.
    Notice.objects.update(state=State.DUE, done_at=None, owner="another process", lease_until=until)
    look()
    assert len(inbound.got) == 1
    with clock.travel(until + timedelta(seconds=1)):
        look()
    first, second = inbound.got
    assert (first.id, first.body) == (second.id, second.body)
    assert Notice.objects.get().state == State.SENT


@pytest.mark.servers("row locks tell two at a time apart")
def test_of_two_processes_that_claim_one_sends(alice: User, inbound: Inbound) -> None:
    receiver, _ = webhook(alice, inbound)
    receivers.test(receiver, alice, signed_in(alice))
    first, second = delivery.claim(10, {}), delivery.claim(10, {})
    assert (len(first), len(second)) == (1, 0)


def test_a_receiver_that_cannot_be_reached_or_speaks_no_http_is_told_in_words(alice: User) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        receiver, _ = webhook(alice, f"http://127.0.0.1:{port}/very-secret-path")
        notice = tried_out(receiver, alice)
    assert notice.trouble.startswith("The receiver could not be reached")
    assert "very-secret" not in notice.trouble


@pytest.mark.guarantee("SR-44")
def test_neither_secrets_nor_arguments_reach_the_log_or_the_record(
    alice: User, bob: User, inbound: Inbound, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    receiver, key = webhook(alice, inbound, kind=Kind.SLACK)
    inbound.status = 500
    ask(bob, recording(), {"text": "argument-4711"})
    look()
    tried_out(receiver, alice)
    receivers.new_key(receiver, signed_in(alice))
    receiver.refresh_from_db()
    receivers.switch(receiver, signed_in(alice), on=False)
    receivers.remove(receiver, signed_in(alice))
    recorded = " ".join(
        str(data) for data in AuditEvent.objects.filter(name__startswith="notice.").values_list("data", flat=True)
    )
    ours = " ".join(record.getMessage() for record in caplog.records if "notices" in record.name)
    stored = f"{receiver.url} {receiver.secret}"
    for secret in ("very-secret-path", key, key.removeprefix("whsec_"), "argument-4711"):
        assert secret not in recorded
        assert secret not in ours
        assert secret not in stored
    assert "127.0.0.1" in recorded
    assert [kind.value for kind in NoticeKind] == ["waiting", "decided", "test"]
