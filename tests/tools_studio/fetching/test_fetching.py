import asyncio
import json
import socket
from typing import Any

import pytest

from tests.tables import each_row
from tests.tools_studio.fetching.shop import RESPONSE_BYTES, Server, policy, url
from tools_studio.network import fetch
from tools_studio.network.request import FetchPolicy


async def test_a_listed_host_answers_with_status_headers_text_and_json(shop: Server) -> None:
    answer = await fetch(policy(shop), url(shop))
    assert answer["status"] == 200
    assert answer["headers"]["content-type"] == "application/json; charset=utf-8"
    assert answer["text"] == '{"price": 12.5}'
    assert answer["json"] == {"price": 12.5}


async def test_what_is_sent_arrives(shop: Server) -> None:
    given: dict[str, Any] = {"params": {"b": "ü", "c": [1, 2]}, "headers": {"X-Key": "k"}, "json": {"n": 1}}
    await fetch(policy(shop), url(shop, "/order?a=1"), "post", **given)
    [(method, path, headers, body)] = shop.asked
    assert (method, path) == ("POST", "/order?a=1&b=%C3%BC&c=1&c=2")
    assert headers["x-key"] == "k"
    assert headers["host"] == f"127.0.0.1:{shop.server_port}"
    assert headers["content-type"] == "application/json"
    assert json.loads(body) == {"n": 1}


@each_row("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
async def test_the_usual_methods_are_sent(shop: Server, method: str) -> None:
    shop.asked.clear()
    assert (await fetch(policy(shop), url(shop), method))["status"] == 200
    assert shop.asked[0][0] == method


@each_row("method", ["OPTIONS", "CONNECT", "TRACE", "GET / HTTP/1.1\r\nX: y", "", 3])
async def test_other_methods_are_refused(shop: Server, method: Any) -> None:
    with pytest.raises(ValueError, match="the method must be one of"):
        await fetch(policy(shop), url(shop), method)
    assert shop.asked == []


async def test_a_name_is_connected_to_by_its_address_and_asked_by_its_name(shop: Server) -> None:
    await fetch(policy(shop, "localhost"), url(shop, host="localhost"))
    assert shop.asked[0][2]["host"] == f"localhost:{shop.server_port}"


@each_row(
    "path, text, value",
    [("/nan", '{"price": NaN}', None), ("/latin", "Zürich", None), ("/odd", "�odd", None), ("/gzip", "packed", None)],
)
async def test_an_answer_is_read_as_what_it_is(shop: Server, path: str, text: str, value: object) -> None:
    answer = await fetch(policy(shop), url(shop, path))
    assert (answer["text"], answer["json"]) == (text, value)


@each_row(
    "charset, body, text",
    [
        ("UTF-8", "Z%C3%BCrich", "Zürich"),
        ("us-ascii", "Z%FCrich", "Z\ufffdrich"),
        ("iso-8859-1", "Z%FCrich", "Zürich"),
        ("windows-1252", "5%80", "5€"),
        ("utf-16", "%FF%FEZ%00%FC%00", "Zü"),
        ("utf-16", "%FF%FEZ", "\ufffd"),
        ("punycode", "Z%C3%BCrich", "Zürich"),
        ("idna", "Z%C3%BCrich", "Zürich"),
        ("utf-7", "+AFo-", "+AFo-"),
        ("unicode_escape", "%5Cx41", "\\x41"),
        ("hex", "4142", "4142"),
    ],
)
async def test_only_the_usual_charsets_are_believed(shop: Server, charset: str, body: str, text: str) -> None:
    assert (await fetch(policy(shop), url(shop, f"/charset?{charset}&{body}")))["text"] == text


async def test_the_server_that_answers_cannot_choose_a_slow_codec(shop: Server) -> None:
    assert len((await fetch(policy(shop), url(shop, "/slow-charset")))["text"]) == RESPONSE_BYTES


async def test_an_error_status_is_an_answer_like_any_other(shop: Server) -> None:
    assert (await fetch(policy(shop), url(shop, "/teapot")))["status"] == 418


async def test_a_redirect_is_handed_back_and_not_followed(shop: Server) -> None:
    answer = await fetch(policy(shop), url(shop, "/away"))
    assert (answer["status"], answer["headers"]["location"]) == (302, "http://127.0.0.1:1/secret")
    assert len(shop.asked) == 1


async def test_the_largest_allowed_answer_is_whole(shop: Server) -> None:
    assert len((await fetch(policy(shop), url(shop, "/full")))["text"]) == RESPONSE_BYTES


@each_row("path", ["/liar", "/brotli"])
async def test_an_answer_that_cannot_be_unpacked_is_an_error(shop: Server, path: str) -> None:
    with pytest.raises(ValueError, match="compressed"):
        await fetch(policy(shop), url(shop, path))


async def test_a_slow_answer_ends_in_time(shop: Server) -> None:
    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError, match=r"127.0.0.1 gave no complete answer within 0.2 s"):
            await fetch(policy(shop), url(shop, "/slow"), timeout=0.2)


@each_row("seconds", [0, -1, 31, float("nan"), float("inf"), True, "1"])
async def test_a_time_that_is_no_time_is_refused(shop: Server, seconds: Any) -> None:
    with pytest.raises(ValueError, match="the timeout must be"):
        await fetch(policy(shop), url(shop), timeout=seconds)


@each_row(
    "headers",
    [
        {"Host": "other"},
        {"Connection": "close"},
        {"Transfer-Encoding": "chunked"},
        {"Content-Length": "3"},
        {"Proxy-Authorization": "x"},
        {"TE": "trailers"},
        {"Upgrade": "websocket"},
        {"Expect": "100-continue"},
        {"X-A": "b\r\nHost: other"},
        {"X A": "b"},
        {"": "b"},
        {"X-A": 3},
        {"X-A": "€"},
        ["X-A"],
    ],
)
async def test_headers_of_the_connection_and_broken_ones_are_refused(shop: Server, headers: Any) -> None:
    with pytest.raises(ValueError, match="header"):
        await fetch(policy(shop), url(shop), headers=headers)
    assert shop.asked == []


@each_row("value", [float("nan"), {1, 2}, object(), "\ud800"])
async def test_a_body_that_is_no_json_is_refused(shop: Server, value: object) -> None:
    with pytest.raises(ValueError, match="json must be a JSON value"):
        await fetch(policy(shop), url(shop), "POST", json=value)
    assert shop.asked == []


async def test_a_closed_port_says_that_the_connection_failed() -> None:
    # Bound and not listening: nobody answers there, and nobody else can take it meanwhile.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ValueError, match="the connection failed"):
            await fetch(FetchPolicy("allowlist", (address,)), address)


async def test_cancelling_ends_the_request(shop: Server) -> None:
    task = asyncio.ensure_future(fetch(policy(shop), url(shop, "/slow")))
    async with asyncio.timeout(30):
        assert await asyncio.to_thread(shop.arrived.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_certificate_for_another_name_is_refused(tls_shop: Server) -> None:
    with pytest.raises(ValueError, match="TLS certificate is not valid for this name"):
        await fetch(policy(tls_shop, scheme=""), url(tls_shop, scheme="https"))
    assert tls_shop.asked == []
