"""The capability `email`: over the wire to a real server, and only to whom the tool may write."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import User
from django.core import mail

from hitlchat.gate.status import Status
from tests.conftest import MakeTool
from tests.tables import each_row
from tests.tools_studio.calling import call, said
from tests.tools_studio.mailbox import Mailbox, listening
from tools_studio.capabilities import store

SENDS = '''from hitl import send_email


def run(to: list[str], subject: str, text: str) -> str:
    """Send."""
    send_email(to, subject, text)
    return "sent"
'''


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    """A mail server, and settings that name it."""
    with listening() as box:
        settings.EMAIL_BACKEND = store.SMTP
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", box.port, 1
        settings.DEFAULT_FROM_EMAIL = "tools@example.com"
        yield box


def send(to: Any, subject: Any = "Hello", text: Any = "Text", patterns: tuple[str, ...] = ("*",)) -> None:
    async_to_sync(store.email_grants(patterns)["send_email"])(to, subject, text)


@pytest.mark.django_db(transaction=True)
def test_a_tool_sends_a_message_over_the_wire(make_tool: MakeTool, alice: User, mailbox: Mailbox) -> None:
    make_tool("sends", code=SENDS, capabilities={"email": {"to": ["@example.com"]}}, hitl_mode="DISABLED")
    text = "Grüße\n.\n..hidden dots\n" + "long " * 300
    done = call(alice, "sends", to=["Bob@Example.com", "c@example.com"], subject="Über €", text=text)
    assert (done.status, done.result) == (Status.SUCCEEDED, "sent")
    (message,) = mailbox.messages
    assert mailbox.recipients == [["Bob@Example.com", "c@example.com"]]
    assert (message["Subject"], message["From"], message["To"]) == (
        "Über €", "tools@example.com", "Bob@Example.com, c@example.com",
    )  # fmt: skip
    assert message.get_content().replace("\r\n", "\n").rstrip() == text.rstrip()


@pytest.mark.django_db(transaction=True)
def test_a_tool_cannot_write_to_anyone_else(make_tool: MakeTool, alice: User, mailbox: Mailbox) -> None:
    make_tool("sends", code=SENDS, capabilities={"email": {"to": ["ops@example.com"]}}, hitl_mode="DISABLED")
    done = call(alice, "sends", to=["ops@example.com", "eve@example.com"], subject="x", text="x")
    assert said(done) == "send_email: this tool may not write to eve@example.com"
    assert mailbox.messages == []


@pytest.mark.parametrize(
    "pattern, address, allowed",
    [
        ("ops@example.com", "ops@example.com", True),
        ("ops@example.com", "Ops@EXAMPLE.com", True),
        ("ops@example.com", "ops@example.com.evil.org", False),
        ("ops@example.com", "dev-ops@example.com", False),
        ("@example.com", "anyone@example.com", True),
        ("@example.com", "x@sub.example.com", False),
        ("@example.com", "x@notexample.com", False),
        ("@example.com", "x@example.com.evil.org", False),
        ("@EXAMPLE.com", "x@example.COM", True),
        ("*", "who@ever.org", True),
        ("*", "who@localhost", True),
    ],
)
def test_a_pattern_covers_exactly_whom_it_names(pattern: str, address: str, allowed: bool) -> None:
    if allowed:
        send(address, patterns=(pattern,))
        assert [message.to for message in mail.outbox] == [[address]]
        return
    with pytest.raises(PermissionError, match="may not write to"):
        send(address, patterns=(pattern,))
    assert mail.outbox == []


@each_row(
    "address",
    [
        "", "x", "@example.com", "x@", "x@@example.com", "a@example.com,b@example.com", "a@example.com b@example.com",
        "a@example.com\nBcc: eve@example.com", "a@example.com\r\n", "a\x00@example.com", "Bob <bob@example.com>",
        '"a b"@example.com', "a@[127.0.0.1]", "a@exämple.com", "a@example.com.", "a@-example.com", ".a@example.com",
        "user%evil.org@example.com", "evil.org!user@example.com", "a@ban\u212a.com", "x" * 250 + "@example.com", "*",
        "a@example.com>", "@evil.org:a@example.com",
    ],
    ids=ascii,
)  # fmt: skip
@each_row("among", [False, True])
def test_what_is_no_plain_address_is_refused(address: str, among: bool) -> None:
    with pytest.raises(ValueError, match="is not an address such as"):
        send(["ops@example.com", address] if among else address)
    assert mail.outbox == []


@each_row("subject", ["a\nBcc: eve@example.com", "a\rb", "a\x00", "a\u2028b", "x" * 201], ids=ascii)
def test_a_subject_is_one_short_line(subject: str) -> None:
    with pytest.raises(ValueError, match="the subject is one line of at most 200"):
        send("ops@example.com", subject)
    assert mail.outbox == []


@each_row(
    "arguments, words",
    [
        ((None,), "an address, or a list"),
        ((["a@example.com", 7],), "an address, or a list"),
        (({"a@example.com": 1},), "an address, or a list"),
        (("a@example.com", None), "the subject is a text"),
        (("a@example.com", "x", b"x"), "the message is a text"),
        (([],), "1 to 20 recipients, not 0"),
        (([f"a{number}@example.com" for number in range(21)],), "1 to 20 recipients, not 21"),
        (("a@example.com", "x", "é" * 51_201), "at most 102,400 bytes"),
        (("a@example.com", "x", "a\x00"), "without U"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_words(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        send(*arguments)
    assert mail.outbox == []


def test_a_recipient_named_twice_gets_it_once() -> None:
    send(["a@example.com", "a@example.com"])
    assert mail.outbox[0].to == ["a@example.com"]


def test_without_a_mail_server_the_error_says_what_to_set(settings: Any) -> None:
    settings.EMAIL_BACKEND, settings.EMAIL_HOST = store.SMTP, ""
    with pytest.raises(ValueError, match="E-mail is not set up on this server: set EMAIL_HOST"):
        send("a@example.com")


@pytest.mark.parametrize(
    "answers, words",
    [
        ({"RCPT": "550 no such user at 10.0.0.7"}, "refused the recipients"),
        ({"DATA": "554 internal relay 10.0.0.7 says no"}, "rejected the message"),
        ({"MAIL": "451 try later"}, "rejected the message"),
        ({".": ""}, "the message may have been sent"),
        ({"EHLO": ""}, "the message may have been sent"),
    ],
)
def test_what_goes_wrong_on_the_way_is_told_without_internals(
    mailbox: Mailbox, answers: dict[str, str], words: str
) -> None:
    mailbox.answers |= answers
    with pytest.raises((ValueError, TimeoutError), match=words) as caught:
        send("a@example.com")
    assert "10.0.0.7" not in str(caught.value)
    assert mailbox.messages == []


def test_a_server_that_is_not_there_is_told(mailbox: Mailbox, settings: Any) -> None:
    settings.EMAIL_PORT = 1
    with pytest.raises(ValueError, match="could not be reached"):
        send("a@example.com")
    assert mailbox.messages == []


def test_nothing_is_offered_without_recipients() -> None:
    assert store.email_grants(()) == {}


def test_a_set_up_that_cannot_work_stops_the_start() -> None:
    both = {**os.environ, "EMAIL_USE_TLS": "1", "EMAIL_USE_SSL": "1"}
    started = subprocess.run(
        [sys.executable, "-c", "import hitlchat.settings"],
        env=both, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert started.returncode != 0
    assert "EMAIL_USE_TLS and EMAIL_USE_SSL cannot both be 1" in started.stderr
