"""A token that goes with every request: renewed when it is refused, sent to one place only, and masked."""

import asyncio
from dataclasses import dataclass, field

import httpx2
import pytest

from hitlchat.upstreams.client.connection import try_connect
from hitlchat.upstreams.client.http import Bearer, NoToken
from hitlchat.upstreams.client.results import Answer, NeverRan
from tests.upstreams.client.upstreams import Pool, StartServer, at
from tests.upstreams.hostile_http import hostile_http
from tests.waiting import soon

GOOD = "a-token-that-is-good"
OLD = "a-token-of-yesterday"


@dataclass
class Purse:
    """`fresh`: what renewing gives, one after the other."""

    token: str = OLD
    fresh: list[str] = field(default_factory=lambda: [GOOD])
    renewals: int = 0
    lacking: list[str] = field(default_factory=list)
    seen: tuple[str, ...] = (OLD,)

    def hidden(self) -> tuple[str, ...]:
        return self.seen

    async def current(self) -> str:
        return self.token

    async def renewed(self, refused: str) -> str:
        self.renewals += 1
        if not self.fresh:
            raise NoToken("nothing is left to renew it with", 401)
        self.token = self.fresh.pop(0)
        self.seen = (*self.seen, self.token)
        return self.token

    async def lacks(self, scopes: str) -> None:
        self.lacking.append(scopes)


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_token_that_is_refused_is_renewed_once(pool: Pool, start_server: StartServer, transport: str) -> None:
    server = start_server(transport, "--authorization", f"Bearer {GOOD}")
    purse = Purse()
    await pool.put(at(server.url), auth=Bearer(purse, server.url))
    answer = await pool.answer("honest", "echo", {"text": f"{OLD} and {GOOD}"})
    assert answer.text == "••• and •••"
    assert purse.renewals == 1


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_without_a_token_that_is_taken_someone_has_to_sign_in(
    pool: Pool, start_server: StartServer, transport: str
) -> None:
    server = start_server(transport, "--authorization", "Bearer another one")
    await pool.put(at(server.url), auth=Bearer(Purse(fresh=[]), server.url))
    assert isinstance(await pool.call_tool("honest", "echo", {"text": "x"}), NeverRan)
    status = pool.status("honest")
    assert (status.http_status, status.last_error) == (401, "nothing is left to renew it with")


async def test_a_new_token_that_is_not_taken_either_is_not_tried_for_ever(
    pool: Pool, start_server: StartServer
) -> None:
    server = start_server("http", "--authorization", "Bearer another one")
    purse = Purse()
    tried = await try_connect(at(server.url), auth=Bearer(purse, server.url))
    assert (tried.http_status, purse.renewals) == (401, 1)
    assert tried.error == "the server rejects the sign-in, although it is new"


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_without_a_sign_in_the_server_is_asked_as_anyone_would(
    pool: Pool, start_server: StartServer, transport: str
) -> None:
    server = start_server(transport, "--authorization", f"Bearer {GOOD}")
    await pool.put(at(server.url), auth=Bearer(Purse(token=""), server.url))
    pool.connect("honest")
    await soon(lambda: pool.status("honest").http_status == 401, "it asks for a sign-in")


async def test_a_call_that_is_refused_after_it_was_repeated_has_not_run(pool: Pool, start_server: StartServer) -> None:
    server = start_server("http", "--authorization", f"Bearer {GOOD}")
    purse = Purse(token=GOOD, fresh=["bad-one", "bad-two", "bad-three"])
    await pool.put(at(server.url), auth=Bearer(purse, server.url))
    assert isinstance(await pool.call_tool("honest", "echo", {"text": "x"}), Answer)
    purse.token = OLD
    assert isinstance(await pool.call_tool("honest", "echo", {"text": "x"}), NeverRan)


async def test_a_token_goes_to_no_other_place() -> None:
    bearer = Bearer(Purse(token=GOOD), "https://one.example/mcp")
    for url in ("https://two.example/", "http://one.example/mcp", "https://one.example:8443/mcp"):
        sent = await anext(bearer.async_auth_flow(httpx2.Request("POST", url)))
        assert "authorization" not in sent.headers
    sent = await anext(bearer.async_auth_flow(httpx2.Request("POST", "https://ONE.example:443/other")))
    assert sent.headers["authorization"] == f"Bearer {GOOD}"


async def test_a_redirect_gets_no_token(pool: Pool) -> None:
    async with hostile_http() as hostile:
        url = hostile.url("/redirect-elsewhere")
        await pool.put(at(url, "hostile"), auth=Bearer(Purse(token=GOOD), url))
        await asyncio.wait_for(pool.call_tool("hostile", "fine", {}), 30)
        assert not [path for _, path, _ in hostile.seen if path == "/stolen"]
        await pool.remove("hostile")
