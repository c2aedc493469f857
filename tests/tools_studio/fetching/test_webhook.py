"""`webhook`: JSON to an address that the tool cannot see."""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.tables import each_row
from tests.tools_studio.fetching.shop import Server, url
from tools_studio import network
from tools_studio.network import webhook

TARGETS = frozenset({"ALERTS_URL", "OTHER_URL"})


async def send(address: object, data: Any = None, target: Any = "ALERTS_URL") -> dict[str, int]:
    values: dict[str, Any] = {"ALERTS_URL": address}
    return await webhook(TARGETS, values.__getitem__, target, data)


@each_row("data", [{"text": "héllo"}, [1, None], "text", None, 0])
async def test_any_json_arrives_and_the_status_comes_back(shop: Server, data: Any) -> None:
    shop.asked.clear()
    assert await send(url(shop, "/hook/s3cret?k=1#part"), data) == {"status": 200}
    [(method, path, headers, body)] = shop.asked
    assert (method, path, headers["content-type"]) == ("POST", "/hook/s3cret?k=1", "application/json")
    assert json.loads(body) == data


@each_row("path, status", [("/teapot", 418), ("/away", 302)])
async def test_an_error_tells_the_status_and_nothing_of_the_url(shop: Server, path: str, status: int) -> None:
    shop.asked.clear()
    with pytest.raises(ValueError, match="ALERTS_URL") as raised:
        await send(url(shop, path))
    assert str(raised.value) == f"webhook ALERTS_URL answered with status {status}: the data was not accepted"
    assert len(shop.asked) == 1


@each_row(
    "address",
    [
        "https://169.254.169.254/s3cret", "http://[fd00:ec2::254]/s3cret", "http://[::ffff:169.254.169.254]/s3cret",
        "http://metadata/s3cret", "https://hooks.example.com/s3cret",
    ],
)  # fmt: skip
async def test_no_webhook_leads_inside_unnamed_or_where_clouds_keep_their_keys(
    answers: Callable[..., None], address: str
) -> None:
    answers("metadata", "169.254.169.254")
    answers("hooks.example.com", "10.0.0.1")
    with pytest.raises(PermissionError) as raised:
        await send(address)
    assert str(raised.value) == "webhook ALERTS_URL leads to an address that tools may not reach"


@each_row(
    "address", ["", "ftp://s3cret/", "s3cret", "https://user:s3cret@example.com/", "https://2130706433/s3cret", 7, None]
)
async def test_a_variable_without_a_url_is_named_and_not_shown(address: object) -> None:
    with pytest.raises(ValueError, match="webhook ALERTS_URL: its value is not a URL") as raised:
        await send(address)
    assert "s3cret" not in str(raised.value)


@each_row("address", ["https://nothing.invalid/s3cret", "http://127.0.0.1:1/s3cret"])
async def test_what_cannot_be_reached_is_called_by_its_variable(answers: Callable[..., None], address: str) -> None:
    answers("elsewhere", "127.0.0.1")
    with pytest.raises(ValueError, match=r"^webhook ALERTS_URL (was not found|could not be reached: [a-z ]+)$"):
        await send(address)


async def test_only_declared_targets_are_known(shop: Server) -> None:
    with pytest.raises(PermissionError, match=r"'SECRET_URL' is not among the targets .*\(ALERTS_URL, OTHER_URL\)"):
        await send(url(shop), target="SECRET_URL")
    with pytest.raises(PermissionError, match="not among the targets"):
        await send(url(shop), target=["ALERTS_URL"])
    assert shop.asked == []


async def test_a_target_without_a_value_is_an_error_in_the_words_of_whoever_keeps_it() -> None:
    def value(name: str) -> str:
        raise ValueError(f"this tool has no variable {name!r}")

    with pytest.raises(ValueError, match="webhook: this tool has no variable 'OTHER_URL'"):
        await webhook(TARGETS, value, "OTHER_URL", {})


@each_row("data", [float("nan"), {1, 2}, object()])
async def test_what_is_no_json_is_not_sent(shop: Server, data: object) -> None:
    with pytest.raises(ValueError, match="webhook: data must be a JSON value"):
        await send(url(shop), data)
    assert shop.asked == []


async def test_a_webhook_that_does_not_answer_is_given_up(shop: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "WEBHOOK_SECONDS", 0.2)
    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError, match=r"^webhook ALERTS_URL gave no answer within 0\.2 s$"):
            await send(url(shop, "/slow"))


async def test_no_log_holds_the_url(shop: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await send(url(shop, "/hook/s3cret"))
    assert "s3cret" not in caplog.text
