"""Arguments in notices, where an administrator allows them: without what looks like a secret."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.gate.models import ToolCall
from hitlchat.notices.models import Installation, Item, Kind, Notice, Receiver
from hitlchat.notices.wording import Burst, facts, masked, waiting
from hitlchat.secrets.masking import HIDDEN
from tests.gate.asking import approval_of, approved, ask, recording, run
from tests.notices.noticing import look, webhook
from tests.notices.receivers import Inbound

SECRET = "hunter2-Zq9"
SECRETS: list[dict[str, Any]] = [
    {"dbPassword": SECRET}, {"x": {"y": {"clientSecret": SECRET}}}, {"list": [{"token": [SECRET]}]},
    {"text": f"Authorization: Bearer {SECRET}"}, {"text": "x" * 190 + f" password={SECRET}"},
    # What is hidden in doubt only.
    {"key": SECRET}, {"session": SECRET}, {"url": f"https://{SECRET}@example.com/"}, {"text": f"key={SECRET}"},
    {"text": f"the password is {SECRET}"}, {"text": f"see {SECRET}abcdefghijklmnop"},
    {"text": f"ghp_{SECRET}aaaaaaaaaaaa"},
    {"text": f"sk-{SECRET}"}, {"text": f"hitl_{SECRET}"}, {"text": f"basic {SECRET[:7]}"}, {"auth": SECRET},
    {"script": f"cat > .env <<EOF\nHOST=db\nVALUE {SECRET}\nEOF\necho done"}, {"script": f"cat <<-'X'\n{SECRET}"},
]  # fmt: skip
PLAIN: list[dict[str, Any]] = [
    {"order": "A-1234", "amount": 12.5, "note": "author: Bob pinned it", "dry_run": True, "none": None},
    {"id": "01a203d5-e846-720c-8faa-f2a629b2bd7c", "url": "https://example.com/orders/7?page=2"},
    {"text": "Please send the keys to the office", "monkey": "banana", "author": "bob", "keyboard": "de"},
]


@pytest.mark.guarantee("SR-44")
def test_what_looks_like_a_secret_is_hidden_by_its_name_or_its_shape() -> None:
    for arguments in SECRETS:
        told = repr(masked(arguments))
        assert "hunter2" not in told, arguments
        assert "Zq9" not in told, arguments


def test_what_does_not_stays_as_it_is() -> None:
    for arguments in PLAIN:
        assert masked(arguments) == arguments


def test_long_and_many_values_are_cut_and_the_cut_is_counted() -> None:
    told = masked({"text": "a " * 500, **{f"n{number}": number for number in range(30)}})
    assert told["text"].endswith("… (800 more)")
    assert told["…"] == "11 more"
    assert masked({"a": {"b": {"c": {"d": {"e": 1}}}}}) == {"a": {"b": {"c": {"d": "…"}}}}


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("SR-44")
def test_the_tool_gets_what_a_notice_hides(alice: User, bob: User, inbound: Inbound, at_once: list[ToolCall]) -> None:
    Installation.objects.update_or_create(pk=1, defaults={"arguments": True})
    webhook(alice, inbound, person=bob)
    call = approved(bob, recording(input_schema={"type": "object"}), {"password": SECRET})
    look()
    assert run(call)
    look()
    assert ToolCall.objects.get(pk=call.pk).arguments == {"password": SECRET}
    assert [entered.arguments for entered in at_once] == [{"password": SECRET}]
    assert all(SECRET not in got.body.decode() for got in inbound.got)
    assert HIDDEN not in str(at_once[0].arguments)


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("SR-3")
def test_a_notice_points_out_what_may_deceive_in_what_it_says(alice: User, bob: User) -> None:
    call = approval_of(ask(bob, recording(input_schema={"type": "object"}), {"to": "\u0410\u0421\u041c\u0415"}))
    assert facts(call, arguments=False)["warnings"] == []
    for kind in Kind:
        receiver = Receiver(kind=kind)
        item = Item(approval=call)
        notice = Notice(receiver=receiver, made_at=timezone.now())
        _, body = waiting(notice, Burst((item,), 1, arguments=True))
        assert "look like “ACME”" in body, kind
