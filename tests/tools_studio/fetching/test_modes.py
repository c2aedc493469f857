"""The modes `public` and `open`, and the methods that are granted."""

from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

import pytest

from tests.tables import each_row
from tests.tools_studio.fetching.shop import Server, url
from tools_studio.network import fetch
from tools_studio.network.request import FetchPolicy, parse, place_of

PUBLIC = FetchPolicy("public")
OPEN = FetchPolicy("open")

# One of each kind: tests/outbound/test_addresses.py has the table.
INNER = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "168.63.129.16", "::ffff:10.0.0.1", "fd00:ec2::254", "fe80::1"]


@each_row("address", INNER)
@each_row(
    "granted", [FetchPolicy("allowlist", ("api.example.com",)), PUBLIC, OPEN], ids=["allowlist", "public", "open"]
)
async def test_no_public_name_leads_inside(answers: Callable[..., None], granted: FetchPolicy, address: str) -> None:
    answers("api.example.com", "93.184.216.34", address)
    told = f"^api.example.com leads to {ip_address(address)}, an address that tools may not reach$"
    with pytest.raises(PermissionError, match=told):
        await fetch(granted, "https://api.example.com/")


@each_row("address", INNER)
@each_row("granted", [PUBLIC, OPEN], ids=["public", "open"])
async def test_no_address_inside_can_be_asked_by_its_number(granted: FetchPolicy, address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(PermissionError, match="may not reach"):
        await fetch(granted, f"https://{host}/")


@each_row("name", ["localhost", "intranet", "router", "x.localhost"])
@each_row("granted", [PUBLIC, OPEN], ids=["public", "open"])
async def test_a_local_name_leads_inside_only_if_it_was_named(
    answers: Callable[..., None], granted: FetchPolicy, name: str
) -> None:
    answers(name, "127.0.0.1")
    with pytest.raises(PermissionError, match=r"leads to 127\.0\.0\.1"):
        await fetch(granted, f"https://{name}/")


@each_row("name", ["metadata", "METADATA.goog"])
@each_row("granted", [PUBLIC, OPEN], ids=["public", "open"])
async def test_where_clouds_keep_their_keys_nobody_looks_up(
    answers: Callable[..., list[str]], granted: FetchPolicy, name: str
) -> None:
    looked_up = answers(name, "93.184.216.34")
    with pytest.raises(PermissionError, match="a cloud's credentials"):
        await fetch(granted, f"https://{name}/")
    assert looked_up == []


@each_row("address", ["169.254.169.254", "fd00:ec2::254", "fd20:ce::254", "168.63.129.16"])
async def test_a_named_local_name_does_not_lead_there_either(answers: Callable[..., None], address: str) -> None:
    answers("metadata", address)
    with pytest.raises(PermissionError, match="may not reach"):
        await fetch(FetchPolicy("open", ("http://metadata",)), "http://metadata/latest")


@each_row("mode", ["public", "open"])
async def test_a_host_named_exactly_is_reached_in_every_mode(shop: Server, mode: Any) -> None:
    named = FetchPolicy(mode, (f"http://127.0.0.1:{shop.server_port}",))
    assert (await fetch(named, url(shop)))["status"] == 200


async def test_naming_an_address_opens_it_to_no_other_name_and_no_other_port(
    shop: Server, answers: Callable[..., None]
) -> None:
    answers("evil.example.com", "127.0.0.1")
    named = FetchPolicy("open", (f"http://127.0.0.1:{shop.server_port}",))
    for address in (
        url(shop, host="evil.example.com"),
        "http://127.0.0.1:1/",
        f"https://127.0.0.1:{shop.server_port}/",
    ):
        with pytest.raises(PermissionError, match="may not reach"):
            await fetch(named, address)
    assert shop.asked == []


@each_row("address", ["http://example.com/", "https://example.com:8443/", "http://example.com:443/"])
async def test_public_means_https_on_its_own_port(address: str) -> None:
    with pytest.raises(PermissionError, match="over https on port 443"):
        await fetch(PUBLIC, address)


def test_public_allows_any_host_and_open_any_port() -> None:
    PUBLIC.require(place_of(parse("https://example.com/")))
    for address in ("https://example.com/", "http://example.com/", "http://example.com:8080/", "https://8.8.8.8:1/"):
        OPEN.require(place_of(parse(address)))
    assert PUBLIC.may_reach(place_of(parse("https://example.com/")), ip_address("93.184.216.34"))


@each_row("method", ["POST", "PUT", "PATCH", "DELETE", "post"])
async def test_a_method_that_is_not_granted_is_refused_and_the_granted_ones_named(shop: Server, method: str) -> None:
    granted = FetchPolicy("allowlist", (f"http://127.0.0.1:{shop.server_port}",), methods=("GET", "HEAD"))
    with pytest.raises(PermissionError, match=f"may use GET, HEAD: {method.upper()} is not granted"):
        await fetch(granted, url(shop), method)
    assert shop.asked == []
