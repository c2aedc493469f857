"""Sessions of the Inspector: with which token they connect, to whom they belong, and how they end."""

import asyncio
import threading
from contextlib import suppress

import pytest
from asgiref.sync import SyncToAsync
from django.contrib.auth.models import User

from hitlchat.accounts.models import Token
from hitlchat.gate.models import AuditEvent, Tool
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.inspector.session import ENDING_SECONDS, IDLE_SECONDS, MOST_OPEN_EACH, sessions
from tests.mcp_server.inspecting import BASE, MODERN, OLDER, Inspecting
from tests.processes import STEADY, Servers
from tests.waiting import until

pytestmark = [pytest.mark.embedded, pytest.mark.django_db(transaction=True)]


def test_a_token_made_for_the_session_has_its_limits_and_ends_with_it(inspecting: Inspecting, tool: Tool) -> None:
    session = inspecting.connect("2026-07-28", ceiling="0")
    assert session.tools == ()
    made = Token.objects.get()
    assert (made.mcp.ceiling, made.expires_at is not None) == (0, True)
    inspecting.post(f"{inspecting.path}/end")
    assert "You ended it." in inspecting.shows("The session is over.")
    assert not Token.objects.exists()


def test_a_token_of_ones_own_stays(inspecting: Inspecting, tool: Tool, token: str) -> None:
    session = inspecting.connect("2025-11-25", token="given", secret=token)
    assert session.tools is not None
    assert [tool.name for tool in session.tools] == ["refund"]
    inspecting.post(f"{inspecting.path}/end")
    inspecting.shows("The session is over.")
    assert tokens.find(token) is not None


def test_a_token_that_is_none_here_is_told(inspecting: Inspecting) -> None:
    for era in (OLDER, MODERN):
        assert inspecting.begin(era, token="given", secret="hitl_mcp_" + "x" * 43).status_code == 302
        assert "The server answered HTTP 401" in inspecting.shows("It did not connect.")


def test_whoever_comes_by_get_to_where_something_is_done_is_led_to_the_page_for_it(
    inspecting: Inspecting, tool: Tool
) -> None:
    session = inspecting.connect(MODERN)
    within = [f"{inspecting.path}/{path}" for path in ("end", "ping", "tools/refund/call")]
    for asked, page in {f"{BASE}/connect": BASE, **dict.fromkeys(within, inspecting.path)}.items():
        answer = inspecting.web.get(asked)
        assert (answer.status_code, answer.headers["location"]) == (302, page)
        assert session.is_open


@pytest.mark.parametrize("by_person, means", [(True, "session"), (False, "system")])
def test_the_record_says_whether_a_person_ended_a_session(
    by_person: bool, means: str, inspecting: Inspecting, tool: Tool
) -> None:
    session = inspecting.connect(MODERN)
    if by_person:
        inspecting.post(f"{inspecting.path}/end")
    else:
        sessions.do(session.end)
    until(lambda: session.ended, "it has ended")
    made, revoked = AuditEvent.objects.filter(name__startswith="token.").order_by("pk")
    assert (made.name, made.means, made.actor_id) == ("token.made", "session", session.wish.owner_id)
    assert revoked.name == "token.revoked"
    assert (revoked.means, revoked.actor_id) == (means, session.wish.owner_id)


def test_a_form_that_does_not_fit_is_told_at_its_fields(inspecting: Inspecting, tool: Tool) -> None:
    answer = inspecting.begin("2026-07-28", token="given", secret="hitl_api_no")
    assert answer.status_code == 422
    assert "it begins with hitl_mcp_" in answer.text
    assert "hitl_api_no" not in answer.text
    answer = inspecting.begin("2026-07-28", tools="refund nothing")
    assert "There is no published tool “nothing”." in answer.text
    assert not Token.objects.exists()


def test_nobody_else_sees_a_session(inspecting: Inspecting, tool: Tool, charlie: User, url: str) -> None:
    inspecting.connect("2026-07-28")
    other = Inspecting(url, "charlie")
    for path in ("", "/live", "/tools/refund"):
        assert other.web.get(inspecting.path + path).status_code == 404
    for path in ("/end", "/ping", "/tools/refund/call"):
        assert other.post(inspecting.path + path, json="{}").status_code == 404
    assert inspecting.path not in other.web.get(BASE).text
    assert inspecting.session.is_open
    other.close()
    signed_out = other.web.__class__(base_url=url, trust_env=False, verify=False, timeout=60)
    assert signed_out.get(inspecting.path).headers["location"].startswith("/sign-in")
    assert signed_out.get(f"{inspecting.path}/live", headers={"HX-Request": "true"}).headers["hx-redirect"]
    signed_out.close()


def test_a_person_has_only_so_many_sessions(inspecting: Inspecting) -> None:
    for _ in range(MOST_OPEN_EACH):
        inspecting.connect("2025-11-25")
    answer = inspecting.begin("2025-11-25")
    assert answer.status_code == 409
    assert "which is the most" in answer.text
    assert Token.objects.count() == MOST_OPEN_EACH


def test_it_connects_to_this_process_whatever_the_request_says_of_itself(inspecting: Inspecting, tool: Tool) -> None:
    port = inspecting.web.base_url.port
    inspecting.web.headers.update({"X-Forwarded-Host": "other.example", "X-Forwarded-Port": "1", "Forwarded": "for=1"})
    assert inspecting.connect("2026-07-28").wish.url == f"http://127.0.0.1:{port}/mcp"


def test_a_session_that_nobody_uses_ends(inspecting: Inspecting) -> None:
    session = inspecting.connect("2026-07-28")
    session._used -= IDLE_SECONDS
    inspecting.shows(f"Nothing was done with it for {IDLE_SECONDS / 60:g} minutes.")
    assert not Token.objects.exists()


@pytest.mark.slow("starts processes")
def test_sessions_and_their_tokens_end_with_the_server(servers: Servers) -> None:
    server = servers.start(**STEADY)
    person, paths = Inspecting(server.url, "bob"), []
    for era in (OLDER, MODERN):
        assert person.begin(era).status_code == 302
        until(lambda: "Connected" in person.seen(), "it is connected")
        paths.append(person.path)
    assert server.stop() == 0
    person.close()
    assert "Traceback" not in server.log, server.log
    server.start()
    again = Inspecting(server.url, "bob")
    assert [again.web.get(path).status_code for path in paths] == [404, 404]
    assert "Inspector, for one session" not in again.web.get("/mcp-access/tokens").text
    again.close()


@pytest.mark.slow("waits until a session is given up")
def test_the_token_of_a_session_that_is_slow_to_leave_is_revoked_before_the_server_ends(inspecting: Inspecting) -> None:
    session = inspecting.connect("2026-07-28")
    slow = threading.Event()

    async def outlive(client: object) -> None:
        with suppress(asyncio.CancelledError):
            slow.set()
            await asyncio.Event().wait()
        await asyncio.sleep(2 * ENDING_SECONDS)

    sessions.do(lambda: session.start(outlive))
    assert slow.wait(10)

    async def end_while_the_database_thread_is_taken() -> None:
        SyncToAsync.deadlock_context.set(True)
        await sessions.close()

    asyncio.run(end_while_the_database_thread_is_taken())
    assert not Token.objects.exists()
