"""Redirects that are followed: each one is a new request, and takes along nothing that belongs to the first."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.tables import each_row
from tests.tools_studio.fetching.conftest import serving
from tests.tools_studio.fetching.shop import Server, policy, url
from tools_studio.network import fetch
from tools_studio.network.request import FetchPolicy


@pytest.fixture
def other() -> Iterator[Server]:
    with serving() as server:
        yield server


def to(server: Server, target: str, status: int = 302) -> str:
    return url(server, f"/to/{status}?{quote(target, safe='')}")


def both(shop: Server, other: Server, **bounds: Any) -> FetchPolicy:
    return FetchPolicy("allowlist", policy(shop).hosts + policy(other).hosts, redirects=5, **bounds)


@each_row("target", ["/json", "../json", "//127.0.0.1:{port}/json", "http://127.0.0.1:{port}/json#part"])
async def test_a_redirect_is_followed_as_far_as_granted(shop: Server, target: str) -> None:
    answer = await fetch(policy(shop, redirects=1), to(shop, target.format(port=shop.server_port)))
    assert (answer["json"], shop.asked[1][1]) == ({"price": 12.5}, "/json")


async def test_more_redirects_than_granted_are_an_error(shop: Server) -> None:
    twice = to(shop, to(shop, "/json"))
    assert (await fetch(policy(shop, redirects=2), twice))["status"] == 200
    with pytest.raises(ValueError, match="redirects more often than the 1 times"):
        await fetch(policy(shop, redirects=1), twice)


async def test_a_circle_ends(shop: Server) -> None:
    circle = url(shop, "/to/302?/to/302?")  # an empty target is the page itself
    with pytest.raises(ValueError, match="redirects more often than the 5 times"):
        await fetch(policy(shop, redirects=5), circle)
    assert len(shop.asked) == 6


@each_row(
    "method, status, then",
    [
        ("GET", 301, "GET"), ("HEAD", 303, "HEAD"), ("POST", 301, "GET"), ("POST", 302, "GET"), ("POST", 303, "GET"),
        ("PUT", 303, "GET"), ("POST", 307, "POST"), ("POST", 308, "POST"), ("PUT", 302, "PUT"),
        ("DELETE", 308, "DELETE"),
    ],
)  # fmt: skip
async def test_the_method_after_a_redirect_is_the_one_http_says(
    shop: Server, method: str, status: int, then: str
) -> None:
    shop.asked.clear()
    sent: dict[str, Any] = (
        {"json": [1], "headers": {"Content-Language": "de", "X-Key": "k"}} if method not in ("GET", "HEAD") else {}
    )
    await fetch(policy(shop, redirects=1), to(shop, "/json", status), method, **sent)
    [_, (verb, _, headers, body)] = shop.asked
    assert verb == then
    assert (body, "content-type" in headers) == ((b"[1]", True) if then not in ("GET", "HEAD") else (b"", False))
    assert ("content-language" in headers) is (then not in ("GET", "HEAD"))
    assert headers.get("x-key") == sent.get("headers", {}).get("X-Key")


async def test_the_method_after_a_redirect_must_be_granted_too(shop: Server) -> None:
    with pytest.raises(PermissionError, match="may use POST: GET is not granted"):
        await fetch(policy(shop, redirects=1, methods=("POST",)), to(shop, "/json", 303), "POST")
    assert len(shop.asked) == 1


@each_row(
    "target",
    [
        "http://127.0.0.1:1/", "http://10.0.0.1/", "http://169.254.169.254/latest", "https://example.com/",
        "http://[::1]/", "http://localhost:{port}/json", "https://127.0.0.1:{port}/json", "//evil.example.com/",
    ],
)  # fmt: skip
async def test_a_redirect_leads_to_no_place_that_could_not_be_asked_first(shop: Server, target: str) -> None:
    shop.asked.clear()
    with pytest.raises(PermissionError):
        await fetch(policy(shop, redirects=5), to(shop, target.format(port=shop.server_port)))
    assert len(shop.asked) == 1


@each_row(
    "target",
    [
        "file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "http://user:pass@127.0.0.1/",
        "http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/", "http://[::1%25lo]/",
        "data:text/plain,x", "http://a b/", "http://127.0.0.1:99999/", "javascript:1",
    ],
)  # fmt: skip
async def test_a_redirect_to_what_is_no_proper_url_is_an_error(shop: Server, target: str) -> None:
    shop.asked.clear()
    with pytest.raises(ValueError, match=r"redirects to an invalid url") as raised:
        await fetch(FetchPolicy("open", policy(shop).hosts, redirects=5), to(shop, target))
    assert target not in str(raised.value)
    assert len(shop.asked) == 1


@each_row("target", ["http://10.0.0.1/", "http://169.254.169.254/", "http://localhost/", "http://[::1]/"])
async def test_in_the_mode_open_a_redirect_does_not_lead_inside(
    shop: Server, answers: Callable[..., None], target: str
) -> None:
    answers("localhost", "127.0.0.1")
    with pytest.raises(PermissionError, match="may not reach"):
        await fetch(FetchPolicy("open", policy(shop).hosts, redirects=5), to(shop, target))


async def test_a_name_is_looked_up_and_checked_anew_for_each_redirect(
    shop: Server, answers: Callable[..., list[str]]
) -> None:
    looked_up = answers("intranet", ("127.0.0.1",), ("169.254.169.254",))
    with pytest.raises(PermissionError, match=r"leads to 169\.254\.169\.254"):
        await fetch(policy(shop, "intranet", redirects=1), to(shop, "/json").replace("127.0.0.1", "intranet", 1))
    assert looked_up == ["intranet", "intranet"]
    assert len(shop.asked) == 1


async def test_from_https_to_plain_http_a_redirect_is_followed_only_if_that_is_listed(
    tls_shop: Server, other: Server
) -> None:
    secure = policy(tls_shop, "localhost", "").hosts
    start = to(tls_shop, url(other)).replace("http://127.0.0.1", "https://localhost", 1)
    with pytest.raises(
        PermissionError, match="redirects to plain http, which is followed only to hosts listed as http"
    ):
        await fetch(FetchPolicy("open", secure, redirects=1), start)
    assert other.asked == []
    assert (await fetch(FetchPolicy("allowlist", secure + policy(other).hosts, redirects=1), start))["status"] == 200


async def test_to_another_origin_no_header_goes_along_that_may_be_a_key(shop: Server, other: Server) -> None:
    sent = {"Authorization": "Bearer t", "Cookie": "c=1", "X-Api-Key": "k", "Accept": "text/plain"}
    await fetch(both(shop, other), to(shop, url(other)), headers=sent)
    [(_, _, headers, _)] = other.asked
    assert headers["accept"] == "text/plain"
    assert {"authorization", "cookie", "x-api-key"} & headers.keys() == set()
    assert shop.asked[0][2]["x-api-key"] == "k"


@each_row("method, status", [("POST", 307), ("POST", 308), ("PUT", 302), ("DELETE", 307)])
async def test_what_changes_something_is_not_sent_on_to_another_origin(
    shop: Server, other: Server, method: str, status: int
) -> None:
    with pytest.raises(PermissionError, match="only GET and HEAD are followed there"):
        await fetch(both(shop, other), to(shop, url(other), status), method, json={"card": 1})
    assert other.asked == []


async def test_after_another_origin_the_first_gets_its_keys_back_no_more(shop: Server, other: Server) -> None:
    there_and_back = to(shop, to(other, url(shop)))
    await fetch(both(shop, other, secret=lambda _: "s3cr3t-value"), there_and_back, auth="KEY")
    assert "authorization" in shop.asked[0][2]
    assert "authorization" not in other.asked[0][2]
    assert "authorization" not in shop.asked[1][2]


@each_row("status", [300, 304, 305])
async def test_only_redirects_are_followed(shop: Server, status: int) -> None:
    assert (await fetch(policy(shop, redirects=1), to(shop, "/json", status)))["status"] == status


async def test_a_redirect_that_names_no_place_is_an_answer(shop: Server) -> None:
    assert (await fetch(policy(shop, redirects=1), url(shop, "/nowhere")))["status"] == 302
