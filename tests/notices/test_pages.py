"""The page of notices: each person's own, and what only administrators set."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.gate.models import AuditEvent
from hitlchat.notices.models import Installation, Kind, Receiver, Wishes
from tests.gate.asking import ask, recording
from tests.notices.noticing import look, of_group, webhook
from tests.notices.receivers import Inbound

pytestmark = pytest.mark.django_db
# Where notices are sent, by threads of their own.
SENT = pytest.mark.django_db(transaction=True)

FORM = {
    "name": "On call",
    "kind": "webhook",
    "whose": "me",
    "least_risk": "0",
    "url": "https://hooks.example.com/s3cr3t-path",
}


def signed_in(person: User) -> Client:
    browser = Client()
    browser.force_login(person)
    return browser


def test_a_webhook_is_added_with_a_key_that_is_shown_once_and_an_address_that_never_is(bob: User) -> None:
    browser = signed_in(bob)
    made = browser.post("/notices/webhooks/new", FORM).content.decode()
    assert re.search(r"whsec_[A-Za-z0-9+/]{43}=", made)
    receiver = Receiver.objects.get()
    assert (receiver.person, receiver.place, receiver.allow_private) == (bob, "hooks.example.com", False)
    page = browser.get("/notices/").content.decode()
    assert "hooks.example.com" in page
    assert "s3cr3t-path" not in page + made
    assert "whsec_" not in page
    assert AuditEvent.objects.get(name="notice.webhook_added").data["place"] == "hooks.example.com"


@SENT
def test_a_test_stands_in_the_log_with_what_came_back(alice: User, inbound: Inbound) -> None:
    receiver, _ = webhook(alice, inbound, person=alice)
    inbound.status, inbound.said = 200, b"<b>ok</b>"
    browser = signed_in(alice)
    assert browser.post(f"/notices/webhooks/{receiver.pk}/test").status_code == 302
    assert 'hx-trigger="every 2s"' in browser.get("/notices/log").content.decode()
    assert browser.post(f"/notices/webhooks/{receiver.pk}/test").status_code == 422
    look()
    log = browser.get("/notices/log").content.decode()
    assert "Delivered" in log
    assert "&lt;b&gt;ok&lt;/b&gt;" in log
    assert "hx-trigger" not in log


@SENT
def test_webhooks_are_switched_off_and_on_get_another_key_and_are_removed(
    alice: User, bob: User, inbound: Inbound
) -> None:
    receiver, key = webhook(alice, inbound, person=bob)
    browser, path = signed_in(bob), f"/notices/webhooks/{receiver.pk}"
    browser.post(f"{path}/switch", {"on": "no"})
    ask(bob, recording())
    look()
    browser.post(f"{path}/switch", {"on": "yes"})
    look()
    assert inbound.got == []
    anew = browser.post(f"{path}/key").content.decode()
    assert "whsec_" in anew
    assert key not in anew
    assert browser.get(f"{path}/remove").status_code == 200
    assert Receiver.objects.exists()
    browser.post(f"{path}/remove")
    assert not Receiver.objects.exists()
    assert set(AuditEvent.objects.filter(name__startswith="notice.").values_list("name", flat=True)) == {
        *("notice.webhook_added", "notice.webhook_off", "notice.webhook_on", "notice.webhook_key_changed"),
        "notice.webhook_removed",
    }


def test_nobody_sees_or_changes_the_webhooks_of_others(alice: User, bob: User, charlie: User, inbound: Inbound) -> None:
    theirs, _ = webhook(alice, inbound, person=bob, name="of bob")
    common, _ = webhook(alice, inbound, name="of all")
    for person, seen in ((bob, {"of bob"}), (charlie, set()), (alice, {"of all"})):
        page = signed_in(person).get("/notices/").content.decode()
        assert {name for name in ("of bob", "of all") if name in page} == seen
    for act in ("test", "switch", "key", "remove"):
        assert signed_in(charlie).post(f"/notices/webhooks/{theirs.pk}/{act}").status_code == 404
        assert signed_in(bob).post(f"/notices/webhooks/{common.pk}/{act}").status_code == 404
        assert Client().post(f"/notices/webhooks/{theirs.pk}/{act}").status_code == 302
        assert signed_in(alice).get(f"/notices/webhooks/{common.pk}/{act}").status_code == (
            200 if act == "remove" else 405
        )
    assert Receiver.objects.count() == 2


def test_only_administrators_add_for_others_or_to_private_addresses(alice: User, bob: User) -> None:
    for number, changed in enumerate((
        {"whose": "installation"},
        {"whose": f"group-{of_group('ops').pk}"},
        {"allow_private": "on", "url": "http://127.0.0.1/x"},
    )):  # fmt: skip
        assert signed_in(bob).post("/notices/webhooks/new", FORM | changed).status_code == 422
        assert Receiver.objects.count() == number
        assert signed_in(alice).post("/notices/webhooks/new", FORM | changed).status_code == 200
    assert Receiver.objects.count() == 3


@SENT
def test_every_button_of_the_page_is_taken_from_a_browser(alice: User, inbound: Inbound) -> None:
    own, _ = webhook(alice, inbound, person=alice)
    webhook(alice, inbound, name="of all")
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    page = browser.get("/notices/").content.decode().partition("<main")[2]
    forms = re.findall(r'<form[^>]*method="post".*?</form>', page, re.DOTALL)
    assert len(forms) == 9
    for form in forms:
        (path,) = re.findall(r'action="([^"]+)"', form)
        (token,) = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
        assert browser.post(path, {"csrfmiddlewaretoken": token, "on": "no"}).status_code != 403
    own.refresh_from_db()
    assert not own.enabled


def test_a_form_that_does_not_come_from_the_page_says_what_to_do(alice: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    answer = browser.post("/notices/wishes", {})
    assert answer.status_code == 403
    assert "reload the page and try again" in answer.content.decode()


def test_no_more_than_ten_webhooks_of_one(alice: User, bob: User) -> None:
    browser = signed_in(bob)
    answers = [browser.post("/notices/webhooks/new", FORM).status_code for _ in range(11)]
    assert answers == [200] * 10 + [422]


def test_whether_notices_carry_arguments_is_for_administrators_to_say(alice: User, bob: User) -> None:
    assert signed_in(bob).post("/notices/arguments", {"arguments": "yes"}).status_code == 403
    assert not Installation.row().arguments
    signed_in(alice).post("/notices/arguments", {"arguments": "yes"})
    assert Installation.row().arguments
    signed_in(alice).post("/notices/arguments", {"arguments": "no"})
    assert not Installation.row().arguments
    names = AuditEvent.objects.filter(name__startswith="notice.arguments").values_list("name", flat=True)
    assert list(names) == ["notice.arguments_allowed", "notice.arguments_withheld"]


def test_wishes_are_kept_and_what_does_not_fit_is_named(bob: User) -> None:
    browser = signed_in(bob)
    wishes = {
        "least_risk": "3", "tools": "refund, send_email,", "quiet_from": "22:00", "quiet_until": "07:00",
        "time_zone": "Europe/Berlin",
    }  # fmt: skip
    assert browser.post("/notices/wishes", wishes).status_code == 302
    kept = Wishes.objects.get()
    assert (kept.least_risk, kept.tools, f"{kept.quiet_from:%H:%M}") == (3, ["refund", "send_email"], "22:00")
    for changed in (
        {"quiet_until": ""},
        {"quiet_until": "22:00"},
        {"tools": "a b"},
        {"time_zone": "Mars"},
        {"least_risk": "6"},
    ):
        answer = browser.post("/notices/wishes", wishes | changed)
        assert answer.status_code == 422
        assert 'class="problem"' in answer.content.decode()
    assert Wishes.objects.get().least_risk == 3


def test_without_an_address_for_links_the_page_says_what_to_set(alice: User, settings: Any) -> None:
    settings.HITL_PUBLIC_URL, settings.ALLOWED_HOSTS = "", ["hitl.example.com", "testserver"]
    page = signed_in(alice).get("/notices/").content.decode()
    assert "Notices have no links yet" in page
    assert "Set HITL_PUBLIC_URL" in page


@SENT
def test_slack_gets_text_in_which_names_are_nothing_but_text(alice: User, inbound: Inbound) -> None:
    webhook(alice, inbound, kind=Kind.SLACK)
    User.objects.filter(pk=alice.pk).update(username="<!channel> <https://evil.example|x> `@here` *b*")
    alice.refresh_from_db()
    ask(alice, recording(origin="a & b"))
    look()
    (got,) = inbound.got
    assert set(got.json) == {"text"}
    text = got.json["text"]
    assert "`&lt;!channel&gt; &lt;https://evil.example|x&gt; \u02bc@here\u02bc *b*`" in text
    assert "`a &amp; b`" in text
    assert text.count("<http") == 1
