"""Notices by e-mail, over the wire to a real mail server."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from hitlchat.gate import decide
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.notices.delivery import message_to, sent
from hitlchat.notices.models import Notice, Receiver, State, Wishes
from tests import clock
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, recording
from tests.notices.noticing import look, mail_to
from tests.tools_studio.mailbox import Mailbox

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.guarantee("SR-44")
def test_one_mail_says_what_waits_where_to_look_and_no_arguments(bob: User, mailbox: Mailbox) -> None:
    mail_to(bob, "bob@example.com")
    Wishes.objects.create(person=bob, time_zone="Asia/Tokyo")
    tool = recording(prompt_template="Say {args.text}?")
    calls = [ask(bob, tool, {"text": f"value-{number}"}) for number in range(2)]
    look()
    (message,) = mailbox.messages
    text = message.get_content()
    assert mailbox.recipients == [["bob@example.com"]]
    assert message["Subject"] == "hitlchat: 2 calls wait for your answer"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message.get_content_type() == "text/plain"
    links = {f"https://hitl.example.com/approvals/{approval_of(call).pk}" for call in calls}
    pages = {f"https://hitl.example.com/{page}/" for page in ("approvals", "notices")}
    assert {*re.findall(r"https://\S+", text)} == links | pages
    assert "JST" in text
    assert "value-" not in text
    assert "Opening a link decides nothing" in text


def test_what_became_of_it_is_mailed_only_to_who_wants_that(bob: User, mailbox: Mailbox) -> None:
    mail_to(bob, "bob@example.com")
    decide.decline(approval_of(asked_and_told(bob, "one")).pk, signed_in(bob))
    look()
    assert len(mailbox.messages) == 1
    Receiver.objects.update(tells_decided=True)
    decide.decline(approval_of(asked_and_told(bob, "two")).pk, signed_in(bob))
    look()
    assert [str(each["Subject"]) for each in mailbox.messages[1:]] == [
        "hitlchat: A call waits for your answer: two",
        "hitlchat: two: declined",
    ]
    assert "two for bob: declined by bob" in mailbox.messages[2].get_content()


def asked_and_told(bob: User, name: str) -> ToolCall:
    call = ask(bob, recording(name))
    look()
    return call


@pytest.mark.parametrize(
    "answers, trouble, state",
    [
        ({"RCPT": "550 no such user at 10.0.0.7"}, "The mail server refused the address.", State.GIVEN_UP),
        ({"RCPT": "450 later"}, "The mail server refused the address.", State.DUE),
        ({"DATA": "554 relay 10.0.0.7 says no"}, "The mail server did not accept the e-mail (code 554).", State.DUE),
        ({"EHLO": ""}, "The mail server could not be reached or did not answer in time.", State.DUE),
    ],
)
def test_a_mail_server_that_refuses_is_told_in_words_and_tried_again(
    bob: User, mailbox: Mailbox, settings: Any, answers: dict[str, str], trouble: str, state: State
) -> None:
    settings.EMAIL_TIMEOUT = 1
    mailbox.answers |= answers
    mail_to(bob, "bob@example.com")
    ask(bob, recording(deadline_seconds=86400))
    look()
    notice = Notice.objects.get()
    assert (notice.trouble, notice.state) == (trouble, state)
    mailbox.answers.clear()
    with clock.travel(timezone.now() + timedelta(minutes=5)):
        look()
    assert len(mailbox.messages) == (1 if state == State.DUE else 0)


def test_no_header_comes_from_a_tool_or_a_person(bob: User, mailbox: Mailbox) -> None:
    """Neither names nor addresses end a line of the head."""
    User.objects.filter(pk=bob.pk).update(username="bob\r\nBcc: eve@example.com")
    mail_to(bob, "bob@example.com")
    tool = recording()
    Tool.objects.filter(pk=tool.pk).update(origin="Shop\r\n\r\nApprove: https://evil.example")
    tool.refresh_from_db()
    bob.refresh_from_db()
    ask(bob, tool)
    look()
    (message,) = mailbox.messages
    assert set(message.keys()) == {
        *("Content-Type", "MIME-Version", "Content-Transfer-Encoding", "Subject", "From", "To", "Date", "Message-ID"),
        "Auto-Submitted",
    }
    assert "\nApprove:" not in message.get_content()
    assert sent(message_to("a@example.com\nBcc: eve@example.com", "x", "y", "msg_1")).final
    assert sent(message_to("a@example.com", "x\nBcc: eve@example.com", "y", "msg_1")).trouble == ""
    assert mailbox.recipients == [["bob@example.com"], ["a@example.com"]]


def test_an_address_counts_once_the_code_that_was_sent_there_came_back(
    bob: User, client: Client, mailbox: Mailbox
) -> None:
    client.force_login(bob)
    answer = client.post("/notices/email", {"address": "bob@example.com"}, follow=True)
    assert "A code was sent to" in answer.content.decode()
    code = re.search(r"The code is (\w{10})", mailbox.messages[0].get_content())
    assert code is not None
    ask(bob, recording())
    look()
    assert len(mailbox.messages) == 1
    assert client.post("/notices/email/confirm", {"code": "AAAAAAAAAA"}).status_code == 422
    assert client.post("/notices/email", {"address": "eve@example.com"}).status_code == 422
    assert client.post("/notices/email/confirm", {"code": f" {code[1].lower()} "}).status_code == 302
    bob.refresh_from_db()
    receiver = Receiver.objects.get()
    assert (bob.email, receiver.place, receiver.enabled) == ("bob@example.com", "bob@example.com", True)
    ask(bob, recording("later"))
    look()
    assert [str(each["Subject"]) for each in mailbox.messages[1:]] == ["hitlchat: A call waits for your answer: later"]
    client.post("/notices/email/off")
    ask(bob, recording("even-later"))
    look()
    assert len(mailbox.messages) == 2


def test_a_code_that_could_not_be_sent_is_not_waited_for(bob: User, client: Client, mailbox: Mailbox) -> None:
    mailbox.answers["RCPT"] = "550 no such user at 10.0.0.7"
    client.force_login(bob)
    page = client.post("/notices/email", {"address": "nobody@example.com"})
    assert page.status_code == 422
    assert "The mail server refused the address." in page.content.decode()
    assert "Code from the e-mail" not in page.content.decode()
    assert client.post("/notices/email/confirm", {"code": ""}).status_code == 422


def test_a_code_is_good_for_one_person_one_address_and_a_day(
    bob: User, charlie: User, client: Client, mailbox: Mailbox
) -> None:
    client.force_login(bob)
    with clock.travel(timezone.now()) as time:
        client.post("/notices/email", {"address": "bob@example.com"})
        code = re.search(r"The code is (\w{10})", mailbox.messages[0].get_content())
        assert code is not None
        time.shift(60)
        client.force_login(charlie)
        client.post("/notices/email", {"address": "bob@example.com"})
        assert client.post("/notices/email/confirm", {"code": code[1]}).status_code == 422
        time.shift(2 * 86400)
        client.force_login(bob)
        assert client.post("/notices/email/confirm", {"code": code[1]}).status_code == 422
    assert not Receiver.objects.exists()


def test_without_a_mail_server_the_page_says_so_and_nothing_is_kept_for_later(
    alice: User, client: Client, settings: Any
) -> None:
    settings.EMAIL_BACKEND, settings.EMAIL_HOST = "django.core.mail.backends.smtp.EmailBackend", ""
    mail_to(alice, "alice@example.com")
    client.force_login(alice)
    page = client.get("/notices/").content.decode()
    assert "E-mail is off for everyone" in page
    assert "Set EMAIL_HOST" in page
    ask(alice, recording())
    look()
    assert not Notice.objects.exists()
