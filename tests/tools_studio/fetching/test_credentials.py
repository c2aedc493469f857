"""`auth=`: the server adds the secret, and the tool never sees it."""

import base64
from typing import Any
from urllib.parse import quote

import pytest

from tests.tables import each_row
from tests.tools_studio.fetching.shop import Server, policy, url
from tools_studio.network import fetch
from tools_studio.network.request import FetchPolicy

SECRETS = {"KEY": "k3y/with+strange=signs", "LOGIN": "shop:pass word", "ODD": "line\nbreak", "EMPTY": ""}
NO_SUCH = "this tool has no secret {!r}"


def secret(name: str) -> str:
    if name not in SECRETS:
        raise LookupError(NO_SUCH.format(name))
    return SECRETS[name]


def keyed(server: Server, **bounds: Any) -> FetchPolicy:
    return policy(server, secret=secret, **bounds)


@each_row(
    "auth, name, value",
    [
        ("KEY", "authorization", f"Bearer {SECRETS['KEY']}"),
        ({"basic": "LOGIN"}, "authorization", f"Basic {base64.b64encode(b'shop:pass word').decode()}"),
        ({"header": "X-Api-Key", "secret": "KEY"}, "x-api-key", SECRETS["KEY"]),
    ],
    ids=["bearer", "basic", "header"],
)
async def test_the_secret_goes_along_in_a_header(shop: Server, auth: Any, name: str, value: str) -> None:
    shop.asked.clear()
    await fetch(keyed(shop), url(shop), auth=auth)
    assert shop.asked[0][2][name] == value


async def test_the_secret_goes_along_in_the_query(shop: Server) -> None:
    await fetch(keyed(shop), url(shop, "/json?flag&a=%2f"), auth={"query": "api key", "secret": "KEY"})
    assert shop.asked[0][1] == f"/json?flag&a=%2f&api%20key={quote(SECRETS['KEY'], safe='')}"


@each_row("basic", [False, True])
async def test_a_server_that_tells_what_it_got_tells_the_tool_nothing(shop: Server, basic: bool) -> None:
    auth = {"basic": "LOGIN"} if basic else "KEY"
    answer = await fetch(keyed(shop), url(shop, "/echo"), auth=auth)
    assert answer["json"]["authorization"].endswith("•••")
    assert_silent(answer)


async def test_nor_does_one_that_names_the_url_it_got(shop: Server) -> None:
    auth = {"query": "api_key", "secret": "KEY"}
    assert_silent(await fetch(keyed(shop), url(shop, "/echo"), auth=auth))


async def test_nor_one_that_redirects_with_it(shop: Server) -> None:
    there = f"http://127.0.0.1:{shop.server_port}/json?k={SECRETS['KEY']}"
    answer = await fetch(keyed(shop), url(shop, f"/to/302?{quote(there, safe='')}"), auth="KEY")
    assert "•••" in answer["headers"]["location"]
    assert_silent(answer)


async def test_nor_does_an_error_about_a_host_that_the_server_chose(shop: Server) -> None:
    SECRETS["HOST"] = "0123456789abcdef"
    there = url(shop, f"/to/302?https://{SECRETS['HOST']}.example.com/")
    with pytest.raises(PermissionError, match="•••") as raised:
        await fetch(keyed(shop, redirects=1), there, auth="HOST")
    assert SECRETS["HOST"] not in str(raised.value)


async def test_within_the_origin_the_secret_follows_a_redirect(shop: Server) -> None:
    await fetch(keyed(shop, redirects=1), url(shop, "/to/302?/json"), auth={"query": "k", "secret": "KEY"})
    assert shop.asked[1][1] == f"/json?k={quote(SECRETS['KEY'], safe='')}"


@each_row("mode", ["public", "open"])
async def test_a_secret_goes_only_where_the_tool_may_ask_nobody_else(shop: Server, mode: Any) -> None:
    granted = FetchPolicy(mode, policy(shop).hosts, secret=secret)
    with pytest.raises(PermissionError, match='must be "allowlist"'):
        await fetch(granted, url(shop), auth="KEY")
    assert shop.asked == []


async def test_a_secret_does_not_go_over_plain_http_that_is_not_listed(shop: Server) -> None:
    with pytest.raises(PermissionError, match="plain http to"):
        await fetch(policy(shop, scheme="", secret=secret), url(shop), auth="KEY")
    assert shop.asked == []


@each_row(
    "auth, said",
    [
        ("MISSING", "auth: this tool has no secret 'MISSING'"),
        ({"basic": "KEY"}, "auth: KEY must be user:password"),
        ("ODD", "auth: ODD holds characters that a request cannot carry"),
        ("EMPTY", "auth: EMPTY is empty"),
        ("", "auth must be the name of a secret"),
        ("N" * 101, "auth must be the name of a secret"),
        (7, "auth must be the name of a secret"),
        ([], "auth must be the name of a secret"),
        ({}, "auth must be the name of a secret"),
        ({"secret": "KEY"}, "auth must be the name of a secret"),
        ({"basic": "LOGIN", "secret": "KEY"}, "auth must be the name of a secret"),
        ({"header": "X Y", "secret": "KEY"}, "auth must be the name of a secret"),
        ({"header": 1, "secret": "KEY"}, "auth must be the name of a secret"),
        ({"query": "", "secret": "KEY"}, "auth must be the name of a secret"),
        ({"header": "Host", "secret": "KEY"}, "the header 'Host' cannot be set by a tool"),
        ({"header": "Proxy-Authorization", "secret": "KEY"}, "cannot be set by a tool"),
    ],
    ids=range(16),
)
async def test_what_auth_cannot_be_is_said(shop: Server, auth: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        await fetch(keyed(shop), url(shop), auth=auth)
    assert shop.asked == []


async def test_a_tool_does_not_set_what_auth_sets(shop: Server) -> None:
    with pytest.raises(ValueError, match="the header 'authorization' is set by auth"):
        await fetch(keyed(shop), url(shop), auth="KEY", headers={"Authorization": "x"})
    with pytest.raises(ValueError, match="the parameter 'k' is set by auth"):
        await fetch(keyed(shop), url(shop, "/json?k=1"), auth={"query": "k", "secret": "KEY"})
    assert shop.asked == []


async def test_without_secrets_there_is_nothing_to_name(shop: Server) -> None:
    with pytest.raises(ValueError, match="auth: KEY is not a variable of this tool"):
        await fetch(policy(shop), url(shop), auth="KEY")


def test_a_policy_does_not_show_how_it_finds_secrets() -> None:
    assert "secret" not in repr(FetchPolicy("allowlist", secret=secret))


def assert_silent(answer: dict[str, Any]) -> None:
    said = repr(answer)
    packed = base64.b64encode(SECRETS["LOGIN"].encode()).decode()
    parts = (SECRETS["KEY"], SECRETS["KEY"].replace("/", "\\\\/"), quote(SECRETS["KEY"], safe=""), "pass word", packed)
    assert [part for part in parts if part in said] == []
