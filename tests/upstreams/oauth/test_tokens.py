"""The tokens of a sign-in: sent where they belong and nowhere else, renewed once for all, never seen by anyone."""

import asyncio
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import serializers
from django.test import Client
from pytest_django import Settings
from starlette.responses import JSONResponse, Response

from hitlchat.base.database import in_db
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.upstreams import endpoint, servers
from hitlchat.upstreams.client.http import NoToken
from hitlchat.upstreams.models import ServerState, SignIn, UpstreamServer
from hitlchat.upstreams.oauth.tokens import Holder
from hitlchat.upstreams.server_draft import ServerDraft
from tests.conftest import signed_in
from tests.gate.asking import fresh
from tests.upstreams.gated import asked, is_in, settled, yes
from tests.upstreams.oauth import journeys
from tests.upstreams.oauth.guarded import Guarded, guarded_server
from tests.upstreams.oauth.journeys import kept, sign_in
from tests.upstreams.shops import expose
from tests.waiting import found, soon, stored

pytestmark = pytest.mark.django_db(transaction=True)


async def exposed(person: User, browser: Client, server: UpstreamServer) -> Tool:
    await in_db(sign_in)(browser)
    await stored(server.tools.exists, "its tools are known")
    return await in_db(expose)(person, server, "note")


async def called(person: User, tool: Tool, text: str) -> ToolCall:
    call = await asked(person, tool, text=text)
    await yes(person, call)
    return await settled(call)


async def another(tokens: Holder, than: str) -> str:
    """Its token, once that is another one."""

    async def newer() -> str:
        return "" if (token := await tokens.current()) == than else token

    return str(await found(newer, "it is another one"))


async def test_a_call_carries_the_sign_in_which_is_renewed_and_its_result_does_not_show_it(
    alice: User, server: UpstreamServer, guarded: Guarded, browser: Client, serving: None, caplog: Any
) -> None:
    tool = await exposed(alice, browser, server)
    call = await called(alice, tool, "hello")
    assert (call.status, guarded.calls) == (Status.SUCCEEDED, ["hello"])
    assert call.result is not None
    assert call.result["result"].startswith("hello: •••")
    # The server does not take the token any more: it is renewed, and the call made once.
    identity = await in_db(endpoint.identity_of)(server)
    guarded.end_access()
    again = await called(alice, tool, "again")
    assert (again.status, guarded.calls, guarded.refreshes) == (Status.SUCCEEDED, ["hello", "again"], 1)
    assert await in_db(endpoint.identity_of)(server) == identity
    assert (await in_db(kept)(server)).generation == 2
    page = await in_db(browser.get)("/servers/s/guarded", headers={"host": journeys.HOST})
    rows = await in_db(_everything)()
    for secret in guarded.given:
        assert secret not in f"{rows}{caplog.text}{json.dumps([call.result, again.result])}{page.content.decode()}"


def _everything() -> str:
    """All that is kept, as it is kept."""
    tables = (SignIn, UpstreamServer, ToolCall, Tool)
    return "".join(serializers.serialize("json", table.objects.all()) for table in tables)


def test_a_test_of_the_connection_renews_it_too(server: UpstreamServer, guarded: Guarded, browser: Client) -> None:
    sign_in(browser)
    guarded.end_access()
    page = browser.post("/servers/test", {"saved": "1", "of": "guarded"}, headers={"host": journeys.HOST})
    assert "The connection works." in page.content.decode()
    assert guarded.refreshes == 1


@pytest.mark.slow("bets on time")
async def test_a_token_is_renewed_before_it_ends_and_again(
    server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    guarded.seconds = 2
    await in_db(sign_in)(browser)
    tokens = Holder(server)
    first = await tokens.current()
    # Signing in may have taken longer than the first of all was good for.
    before = guarded.refreshes
    second = await another(tokens, first)
    third = await another(tokens, second)
    assert len({first, second, third}) == 3
    assert guarded.refreshes - before == 2
    assert {first, second, third} <= set(tokens.hidden())


async def test_of_many_who_need_a_newer_token_one_asks_for_it(
    server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    await in_db(sign_in)(browser)
    one, other = Holder(server), Holder(server)
    old = await one.current()
    guarded.refresh_seconds = 0.5
    fresh_ones = await asyncio.gather(*(each.renewed(old) for each in (one, other, one, other)))
    assert len(set(fresh_ones)) == 1
    assert old not in fresh_ones
    assert guarded.refreshes == 1


async def test_somebody_who_gives_up_does_not_cut_the_renewal_short(
    server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    await in_db(sign_in)(browser)
    tokens = Holder(server)
    old = await tokens.current()
    guarded.refresh_seconds = 0.5
    impatient = asyncio.create_task(tokens.renewed(old))
    await soon(lambda: guarded.refreshes, "it is asked for")
    impatient.cancel()
    await asyncio.wait({impatient})
    assert await another(tokens, old)
    assert guarded.refreshes == 1


async def test_a_sign_in_that_was_revoked_waits_for_a_person_and_says_why(
    alice: User, server: UpstreamServer, guarded: Guarded, browser: Client, serving: None
) -> None:
    tool = await exposed(alice, browser, server)
    guarded.end_all()
    call = await called(alice, tool, "never")
    assert (call.status, guarded.calls) == (Status.FAILED, [])
    shown = await is_in(ServerState.SIGN_IN, server)
    assert "it no longer knows this sign-in" in shown.reason
    await stored(lambda: not Tool.objects.get(pk=tool.pk).published, "its tools have left the catalog")
    row = await in_db(kept)(server)
    assert (row.tokens, row.renews) == ("", False)
    refreshes = guarded.refreshes
    await in_db(sign_in)(browser)
    await stored(lambda: Tool.objects.get(pk=tool.pk).published, "they are back")
    assert guarded.refreshes == refreshes


async def test_an_authority_that_does_not_answer_does_not_end_the_sign_in(
    server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    await in_db(sign_in)(browser)
    tokens = Holder(server)
    old = await tokens.current()
    guarded.answers["/token"] = Response("busy", 503)
    # It is good for some time yet: the server may take it after all.
    assert await tokens.renewed(old) == old
    guarded.answers.clear()
    assert await Holder(server).renewed(old) != old
    assert (await in_db(kept)(server)).problem == ""


async def test_a_right_that_is_missing_is_named(
    alice: User, server: UpstreamServer, guarded: Guarded, browser: Client, serving: None
) -> None:
    tool = await exposed(alice, browser, server)
    says = 'Bearer error="insufficient_scope", scope="notes.read notes.write"'
    guarded.answers["/mcp"] = Response("no", 403, headers={"WWW-Authenticate": says})
    call = await called(alice, tool, "hello")
    assert call.status == Status.FAILED
    assert "it asks for notes.read notes.write" in str(call.error)
    assert (await in_db(kept)(server)).lacking == "notes.read notes.write"
    guarded.answers.clear()
    page = await in_db(journeys.begin)(browser)
    assert journeys.query(journeys.link(page))["scope"] == "notes.read offline_access notes.write"


async def test_whoever_signs_in_anew_may_be_somebody_else_and_signing_out_gives_the_tokens_back(
    alice: User, server: UpstreamServer, guarded: Guarded, browser: Client, serving: None
) -> None:
    tool = await exposed(alice, browser, server)
    call = await asked(alice, tool, text="hello")
    await in_db(sign_in)(browser)
    await stored(lambda: fresh(call).status == Status.WITHDRAWN, "it is withdrawn")
    await stored(lambda: Tool.objects.get(pk=tool.pk).published, "the tool itself is still accepted")
    before = len(guarded.asked("/revoke"))
    answer = await in_db(browser.post)("/servers/s/guarded/sign-in/forget", headers={"host": journeys.HOST})
    assert answer.status_code == 302
    assert len(guarded.asked("/revoke")) == before + 2
    assert not await in_db(lambda: Tool.objects.get(pk=tool.pk).published)()
    await is_in(ServerState.SIGN_IN, server)
    row = await in_db(kept)(server)
    assert (row.mark, row.tokens, row.scopes_granted) == ("", "", "")


async def test_after_a_change_of_the_key_it_says_what_to_do(
    server: UpstreamServer, browser: Client, settings: Settings
) -> None:
    await in_db(sign_in)(browser)
    settings.SECRET_KEY = "another key than before, long enough to be one"
    with pytest.raises(NoToken, match="SECRET_KEY_FALLBACKS"):
        await Holder(server).current()


async def test_tokens_are_of_no_use_in_another_row(
    alice: User, server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    await in_db(sign_in)(browser)
    thief = await in_db(servers.create)(ServerDraft("thief", url=guarded.mcp), signed_in(alice))
    row = await in_db(kept)(server)
    row.pk = thief.pk
    await in_db(row.save)(force_insert=True)
    with pytest.raises(NoToken, match="for another server"):
        await Holder(thief).current()


async def test_a_server_that_is_moved_does_not_get_them(
    alice: User, server: UpstreamServer, guarded: Guarded, browser: Client, serving: None
) -> None:
    await in_db(sign_in)(browser)
    await is_in(ServerState.UP, server)
    with guarded_server() as elsewhere:
        elsewhere.answers["/mcp"] = JSONResponse({}, 401)
        await in_db(servers.change)(server.pk, ServerDraft("guarded", url=elsewhere.mcp), signed_in(alice))
        moved = await is_in(ServerState.SIGN_IN, server)
        assert "address has changed" in moved.reason
        assert not any("authorization" in each.headers for each in elsewhere.heard)
        assert not any(secret in str(elsewhere.heard) for secret in guarded.given)


async def test_the_rights_count_for_the_risk(
    alice: User, server: UpstreamServer, guarded: Guarded, browser: Client
) -> None:
    page = await in_db(journeys.begin)(browser, changed="1", scopes="notes.read admin")
    assert "far-reaching" in page.content.decode()
    await in_db(journeys.back)(browser, journeys.there(journeys.link(page)))
    facts = await in_db(endpoint.facts_of)(server, writes=True)
    assert (facts.auth, facts.scopes) == ("oauth", ("notes.read", "admin"))
    assert await in_db(endpoint.secret_names)(server) == [f"the sign-in at 127.0.0.1:{guarded.port}"]
