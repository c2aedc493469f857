"""The receiver of docs/notices.md, as it stands there, takes what we send and nothing else."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.notices import delivery
from tests import clock
from tests.architecture.source import read
from tests.gate.asking import ask, recording, say_yes
from tests.notices.noticing import look, webhook
from tests.notices.receivers import Delivery, Inbound

pytestmark = pytest.mark.django_db(transaction=True)

Verified = Callable[..., bool]


@pytest.fixture
def verified() -> Verified:
    found = re.search(r"```python\n(.*?)```", read("docs/notices.md"), re.DOTALL)
    assert found is not None
    there: dict[str, Any] = {}
    exec(found[1], there)
    checked: Verified = there["verified"]
    return checked


@pytest.mark.guarantee("SR-23")
def test_it_takes_each_message_once_and_refuses_what_was_replayed_changed_or_is_old(
    alice: User, bob: User, inbound: Inbound, verified: Verified
) -> None:
    _, key = webhook(alice, inbound)
    call = ask(bob, recording())
    look()
    say_yes(bob, call)
    look()
    seen: set[str] = set()
    first, second = inbound.got
    assert verified(key, first.headers, first.body, seen)
    assert verified(key, second.headers, second.body, seen)
    assert not verified(key, first.headers, first.body, seen)
    assert not verified(key, first.headers, first.body + b" ", set())
    assert not verified(delivery.new_secret(), first.headers, first.body, set())
    for name in ("webhook-id", "webhook-timestamp"):
        assert not verified(key, first.headers | {name: first.headers[name][:-1] + "x"}, first.body, set())
    assert not verified(key, first.headers | {"webhook-signature": "v1,"}, first.body, set())
    with clock.travel(timezone.now() + timedelta(minutes=6)):
        assert not verified(key, first.headers, first.body, set())
        renewed = first.headers | {"webhook-timestamp": str(int(timezone.now().timestamp()))}
        assert not verified(key, renewed, first.body, set())


@pytest.mark.guarantee("SR-23")
def test_the_example_of_the_specification_is_signed_as_it_says() -> None:
    """From its reference implementations."""
    key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    at = datetime.fromtimestamp(1614265330, tz=UTC)
    signed = delivery.signature_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", at, b'{"test": 2432232314}', [key])
    assert signed["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_fields_that_are_documented_are_those_that_are_sent(alice: User, bob: User, inbound: Inbound) -> None:
    webhook(alice, inbound)
    call = ask(bob, recording())
    look()
    say_yes(bob, call)
    look()
    waiting, decided = inbound.got
    text = read("docs/notices.md")
    assert all(f'"{name}"' in text for name in names(waiting) | names(decided) - {"count"})


def names(got: Delivery) -> set[str]:
    told = got.json
    return {*told, *told["data"], *told["data"]["approvals"][0]}
