from collections.abc import Callable
from typing import Any

import pytest

from tests.tables import each_row
from tests.tools_studio.fetching.shop import Server, policy, url
from tools_studio.network import fetch
from tools_studio.network.request import FetchPolicy, Place, parse, place_of


async def test_nothing_is_reached_without_being_listed(shop: Server) -> None:
    with pytest.raises(PermissionError, match="not among the hosts"):
        await fetch(FetchPolicy("allowlist"), url(shop))
    assert shop.asked == []


async def test_another_port_of_a_listed_host_is_another_place(shop: Server) -> None:
    with pytest.raises(PermissionError, match="not among the hosts"):
        await fetch(FetchPolicy("allowlist", ("127.0.0.1",)), url(shop, scheme="https"))


async def test_plain_http_must_be_listed_as_such(shop: Server) -> None:
    with pytest.raises(PermissionError, match=r"plain http to 127.0.0.1:.* is not allowed"):
        await fetch(policy(shop, scheme=""), url(shop))
    assert shop.asked == []


@each_row(
    "host",
    [
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "0x7f000001",
        "0x7f.0.0.1",
        "127.1",
        "127.0.1",
        "127.0.0.01",
        "127.0.0.1.",
        "①②⑦.0.0.1",
        "\uff11\uff12\uff17.0.0.1",
        "127\u30020\u30020\u30021",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[::127.0.0.1]",
        "[::1]",
        "0.0.0.0",
        "0",
        "localhost",
        "LOCALHOST.",
        "[::1%25lo]",
        "[::1%lo]",
        "[fe80::1%25eth0]",
        "localtest.localhost",
    ],
)
async def test_another_spelling_of_a_listed_address_is_not_that_address(shop: Server, host: str) -> None:
    with pytest.raises((PermissionError, ValueError)):
        await fetch(policy(shop), url(shop, host=host))
    assert shop.asked == []


@each_row("host", ["2130706433", "0177.0.0.1", "0x7f000001", "127.1", "0"])
async def test_a_number_that_the_resolver_would_unfold_can_be_neither_asked_nor_listed(shop: Server, host: str) -> None:
    with pytest.raises(ValueError, match=r"neither a host name nor a plain IP address|cannot be read"):
        await fetch(policy(shop), url(shop, host=host))
    with pytest.raises(ValueError, match="is not a host such as"):
        policy(shop, host)
    assert shop.asked == []


async def test_a_name_that_leads_inside_is_reached_if_the_address_is_listed_too(
    shop: Server, answers: Callable[..., None]
) -> None:
    answers("shop.example.com", "127.0.0.1")
    allowed = FetchPolicy("allowlist", (f"http://shop.example.com:{shop.server_port}", "127.0.0.1"))
    assert (await fetch(allowed, url(shop, host="shop.example.com")))["status"] == 200


@each_row(
    "address",
    [
        "https://user:secret@127.0.0.1/",
        "https://user@127.0.0.1/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "//127.0.0.1/",
        "/json",
        "https://",
        "https:///json",
        "",
        "https://a b/",
        "https://127.0.0.1\\@b/",
        "https://127.0.0.1/\r\nX: y",
        "https://127.0.0.1:99999999/",
        "https://127.0.0.1:0/",
        "https://127.0.0.1:-1/",
        "https://127.0.0.1:http/",
        "https://127.0.0.1#@b/x y",
        "https://api.example.com./",
        "https://a..b/",
        "https://-a.example.com/",
        "https://" + "a" * 64 + ".example.com/",
        "https://" + "a." * 130 + "com/",
        "https://[::1/",
        "https://[v1.x]/",
        "https://[fe80::1%25eth0]/",
        "https://ex\u00adample.com/",
        "https://\uff47oogle.com/",
        "https://a\u2024b/",
        "https://a\u2028b/",
        "https://exa%6dple.com/",
        "https://*.example.com/",
        "https://127.0.0.1/" + "x" * 9000,
        7,
        None,
    ],
)
async def test_a_url_that_is_none_is_refused(address: Any) -> None:
    with pytest.raises(ValueError, match=r"url|neither"):
        await fetch(FetchPolicy("allowlist", ("127.0.0.1", "b", "example.com")), address)


async def test_a_host_that_does_not_exist_is_named(answers: Callable[..., None], shop: Server) -> None:
    with pytest.raises(ValueError, match=r"nothing\.invalid was not found"):
        await fetch(FetchPolicy("allowlist", ("nothing.invalid",)), "https://nothing.invalid/")


async def test_a_host_in_other_letters_is_compared_in_the_form_that_is_looked_up(
    shop: Server, answers: Callable[..., list[str]]
) -> None:
    looked_up = answers("xn--mnchen-3ya.example", "127.0.0.1")
    allowed = FetchPolicy("allowlist", (f"http://xn--mnchen-3ya.example:{shop.server_port}", "127.0.0.1"))
    assert (await fetch(allowed, url(shop, host="m\u00fcnchen.EXAMPLE")))["status"] == 200
    assert looked_up == ["xn--mnchen-3ya.example"]
    with pytest.raises(PermissionError, match="not among the hosts"):
        await fetch(allowed, url(shop, host="munchen.example"))


async def test_a_name_that_leads_elsewhere_at_the_second_look_is_judged_by_the_one_look_there_is(
    shop: Server, answers: Callable[..., list[str]]
) -> None:
    looked_up = answers("intranet", ("127.0.0.1",), ("169.254.169.254",))
    assert (await fetch(policy(shop, "intranet"), url(shop, host="intranet")))["status"] == 200
    assert looked_up == ["intranet"]
    with pytest.raises(PermissionError, match="169"):
        await fetch(policy(shop, "intranet"), url(shop, host="intranet"))


async def test_an_address_counts_as_listed_in_any_spelling_of_ipv6() -> None:
    allowed = FetchPolicy("allowlist", ("[0:0::1]:8080", "::1"))
    assert allowed.names(Place("https", "::1", 8080))
    assert allowed.names(place_of(parse("https://[0:0:0:0:0:0:0:1]/")))


async def test_a_name_is_not_reached_through_an_address_listed_for_another_name(answers: Callable[..., None]) -> None:
    answers("evil.example.com", "10.0.0.5")
    named = FetchPolicy("allowlist", ("http://intranet", "10.0.0.5", "*.example.com"))
    with pytest.raises(PermissionError, match=r"leads to 10\.0\.0\.5"):
        await fetch(named, "https://evil.example.com/")


@each_row("host", ["api.example.com", "a.b.c.example.com", "API.Example.com", "x_y.example.com"])
def test_a_wildcard_covers_every_host_below_its_suffix(host: str) -> None:
    FetchPolicy("allowlist", ("*.example.com",)).require(place_of(parse(f"https://{host}/")))


@each_row(
    "address",
    [
        "https://example.com/",
        "https://badexample.com/",
        "https://example.com.evil.org/",
        "https://api.example.com.evil.org/",
        "https://api.example.org/",
        "https://api.example.com:8443/",
        "http://api.example.com/",
    ],
)
def test_a_wildcard_covers_nothing_else(address: str) -> None:
    with pytest.raises(PermissionError):
        FetchPolicy("allowlist", ("*.example.com",)).require(place_of(parse(address)))


@each_row("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
async def test_a_wildcard_opens_no_inner_address(answers: Callable[..., None], address: str) -> None:
    answers("api.example.com", address)
    with pytest.raises(PermissionError, match="may not reach"):
        await fetch(FetchPolicy("allowlist", ("*.example.com", "127.0.0.1", "10.0.0.1")), "https://api.example.com/")


@each_row(
    "host",
    [
        "*", "*.com", "*.", "*.*.example.com", "a*.example.com", "api.*.com", "*.127.0.0.1", "*.0.0.1", "*.[::1]", "",
        "https://", "ftp://example.com", "example.com/path", "example.com?x", "example.com#x", "user@example.com",
        "a b", "example.com:0", "example.com:70000", "0x7f.1", "2130706433", "[::1%lo]", "a..b", "x" * 300,
    ],
)  # fmt: skip
def test_a_host_that_is_none_cannot_be_listed(host: str) -> None:
    with pytest.raises(ValueError, match="is not a host such as"):
        FetchPolicy("allowlist", (host,))
