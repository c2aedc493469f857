"""What an answer may cost: bytes on the wire, bytes unpacked, time; and what of it a tool gets to see."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.tables import each_row
from tests.tools_studio.fetching.shop import RESPONSE_BYTES, Server, policy, url
from tools_studio.network import fetch


@each_row("path", ["/large", "/bomb", "/packed-large"])
async def test_the_limit_is_the_granted_one_packed_and_unpacked(shop: Server, path: str) -> None:
    with pytest.raises(ValueError, match=r"the answer of 127.0.0.1 is larger than the limit of 1 MiB"):
        await fetch(policy(shop), url(shop, path))
    if path == "/large":
        whole = await fetch(policy(shop, max_bytes=RESPONSE_BYTES + 1), url(shop, path))
        assert len(whole["text"]) == RESPONSE_BYTES + 1


async def test_an_answer_that_would_fill_the_memory_is_not_read(shop: Server) -> None:
    told = r"the answer of 127.0.0.1 has more than the 65,536 lists and objects that are read from JSON of up to 1 MiB"
    with pytest.raises(ValueError, match=told):
        await fetch(policy(shop), url(shop, "/nested"))


async def test_a_small_answer_may_be_nothing_but_lists(shop: Server) -> None:
    assert (await fetch(policy(shop, max_bytes=20), url(shop, "/lists")))["json"] == [[], [], [], []]


async def test_a_small_limit_is_named(shop: Server) -> None:
    with pytest.raises(ValueError, match="larger than the limit of 4 bytes"):
        await fetch(policy(shop, max_bytes=4), url(shop))


async def test_an_answer_that_is_mostly_framing_is_too_large(shop: Server) -> None:
    with pytest.raises(ValueError, match="larger than the limit of 64 KiB"):
        await fetch(policy(shop, max_bytes=64 * 1024), url(shop, "/framed"))


async def test_an_answer_that_is_mostly_headers_cannot_be_used(shop: Server) -> None:
    with pytest.raises(ValueError, match=r"larger than the limit|the connection broke off"):
        await fetch(policy(shop), url(shop, "/many-headers"))


async def test_interim_answers_without_end_are_too_large(shop: Server) -> None:
    async with asyncio.timeout(40):
        with pytest.raises(ValueError, match="larger than the limit"):
            await fetch(policy(shop, max_bytes=1024), url(shop, "/interim"))


async def test_an_answer_that_drips_ends_in_time(shop: Server) -> None:
    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError, match=r"127\.0\.0\.1 gave no complete answer within 0\.3 s"):
            await fetch(policy(shop), url(shop, "/drip"), timeout=0.3)


async def test_a_slow_resolver_counts_against_the_time_limit(
    shop: Server, answers: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers("intranet", "127.0.0.1")
    answered = socket.getaddrinfo

    def late(*args: Any, **settings: Any) -> Any:
        shop.release.wait(20)
        return answered(*args, **settings)

    monkeypatch.setattr(socket, "getaddrinfo", late)
    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError, match=r"within 0\.2 s"):
            await fetch(policy(shop, "intranet"), url(shop, host="intranet"), timeout=0.2)
    assert shop.asked == []


async def test_redirects_and_answer_share_one_time_limit(shop: Server) -> None:
    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError, match=r"within 0\.3 s"):
            await fetch(policy(shop, redirects=5), url(shop, "/to/302?/to/302?/to/302?/slow"), timeout=0.3)


async def test_unless_said_a_request_takes_no_longer_than_granted(shop: Server) -> None:
    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError, match=r"within 0\.2 s"):
            await fetch(policy(shop, timeout_seconds=0.2), url(shop, "/slow"))


@each_row("asked", [0.3, 30])
async def test_a_tool_cannot_take_more_time_than_granted(shop: Server, asked: Any) -> None:
    with pytest.raises(ValueError, match=r"the timeout must be a number of seconds up to 0\.2"):
        await fetch(policy(shop, timeout_seconds=0.2), url(shop), timeout=asked)
    assert shop.asked == []


@each_row("path", ["/cut", "/twice"])
async def test_a_packed_answer_is_whole_or_none(shop: Server, path: str) -> None:
    with pytest.raises(ValueError, match="is not compressed in the way it declares"):
        await fetch(policy(shop), url(shop, path))


async def test_an_unpacked_answer_does_not_claim_to_be_packed(shop: Server) -> None:
    headers = (await fetch(policy(shop), url(shop, "/gzip")))["headers"]
    assert {"content-encoding", "content-length"} & headers.keys() == set()


@each_row(
    "path, hidden, shown",
    [("/cookie", {"set-cookie", "keep-alive"}, {"etag"}), ("/hop", {"connection", "x-private"}, {"x-public"})],
)
async def test_cookies_and_headers_of_the_connection_are_kept_back(
    shop: Server, path: str, hidden: set[str], shown: set[str]
) -> None:
    headers = (await fetch(policy(shop), url(shop, path)))["headers"]
    assert not hidden & headers.keys()
    assert shown <= headers.keys()


async def test_params_cannot_make_a_url_too_long(shop: Server) -> None:
    with pytest.raises(ValueError, match="with its params must have at most 8192"):
        await fetch(policy(shop), url(shop), params={"a": "x" * 9000})
