"""What hitlchat says of values, beside them on a card."""

import base64

import pytest
from playwright.sync_api import expect

from tests.browser.alone import Alone, asked
from tests.browser.chatting import settle
from tests.browser.looking import THOROUGHLY, check

pytestmark = pytest.mark.browser

CODE = base64.b64encode(b"rm -rf / --no-preserve-root && " + b"word " * 40).decode()
ARGUMENTS = {
    "endpoint": "https://shop.example%2Forders%2F4711@%65vil.example/a?then=%64elete",
    "script": CODE,
    "due": "04/03/2026",
    "amount": -12_500_000,
    "purge": True,
    "note": "as agreed",
}
PARTS = {
    "notGiven": ["purge"],
    "currencies": {"amount": "EUR"},
    "lastTime": {"changed": {"due": ["01/03/2026", 0]}, "added": ["note"], "missing": {"cc": ["finance@a.example", 0]}},
    "preview": {"text": "0 orders would be deleted.", "table": None, "cut": [], "error": None},
}


@pytest.mark.guarantee("SR-2")
def test_what_values_mean_is_below_each_and_fits_in_every_look(alone: Alone) -> None:
    card = alone.approval(asked(ARGUMENTS, tool="pay", risk=4, **PARTS))
    settle(alone.page)
    rows = card.locator(".args").first.locator("dd")
    for at, (value, lines) in enumerate(
        [
            (
                ARGUMENTS["endpoint"],
                [
                    "Goes to host evil.example",
                    "Before the @ is a user name, not the host: shop.example/orders/4711",
                    "In the value, that host is written as %65vil.example",
                    "Behind the host, with percent escapes decoded: /a?then=delete",
                ],
            ),
            (CODE, ["Base64, decoded: rm -rf / --no-preserve-root && word"]),
            (
                "04/03/2026",
                [
                    "Either 4 March, with the day first, or April 3, with the month first: 04/03/2026",
                    "In the last approved call: 01/03/2026",
                ],
            ),
            (
                "-12500000",
                ["By the tool's schema, an amount of -12 500 000 EUR", "A negative amount, below zero."],
            ),
            ("true", ["It is on by default: the call does not turn it on."]),
            ("as agreed", ["Not in the last approved call."]),
        ]
    ):
        expect(rows.nth(at).locator("> .value")).to_have_text(str(value))
        expect(rows.nth(at).locator("> .meant")).to_contain_text(lines)
        box, line = (
            rows.nth(at).locator("> .value").bounding_box(),
            rows.nth(at).locator("> .meant").first.bounding_box(),
        )
        assert box
        assert line
        assert box["y"] + box["height"] <= line["y"]
    expect(card.locator(".missing dd > .value")).to_have_text("finance@a.example")
    expect(card.locator(".effect h4")).to_contain_text("hitlchat has not checked this")
    check(alone.page, THOROUGHLY)
