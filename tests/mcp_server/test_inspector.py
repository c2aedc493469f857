"""The Inspector's pages: a client of our own server, which is asked like every other, and only its owner sees."""

import asyncio

import pytest
from django.contrib.auth.models import User

from hitlchat.accounts.models import Token
from hitlchat.gate import decide, tools
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Approval, AuditEvent, Decision, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.inspector import Session
from tests.conftest import signed_in
from tests.mcp_server.inspecting import BASE, MODERN, OLDER, Inspecting, each_era
from tests.processes import STEADY, Servers
from tests.waiting import until

pytestmark = [pytest.mark.embedded, pytest.mark.django_db(transaction=True)]


@pytest.mark.guarantee("gate:no-yes-no-run")
@each_era
def test_only_what_its_user_accepts_runs_and_every_message_is_shown_but_the_token(
    era: str, inspecting: Inspecting, tool: Tool, entered: list[ToolCall], bob: User
) -> None:
    session = inspecting.connect(era)
    assert inspecting.call("refund", **{"arg-text": "accept"}).status_code == 302
    page = inspecting.shows("The client asks its user")
    assert "[Risk L" in page
    assert "elicitation, form mode" in page
    assert "Decide it here" not in page
    assert entered == []
    assert inspecting.answer("accept").status_code == 302
    assert "The client asks its user" not in inspecting.shows("Result</span>")
    assert [(call.caller_kind, call.caller) for call in entered] == [("mcp", bob)]
    assert Decision.objects.get().means == "elicitation"
    inspecting.call("refund", **{"arg-text": "decline"})
    inspecting.answer("decline")
    assert f'href="/approvals/{Decision.objects.latest("pk").approval_id}"' in inspecting.shows("Error</span>")
    inspecting.call("refund", **{"arg-text": "cancel"})
    inspecting.answer("cancel")
    until(lambda: ToolCall.objects.filter(status=Status.WITHDRAWN).exists(), "it is withdrawn")
    outcomes = {call.arguments["text"]: call.status for call in ToolCall.objects.all()}
    assert outcomes == {"accept": Status.SUCCEEDED, "decline": Status.DECLINED, "cancel": Status.WITHDRAWN}
    assert len(entered) == 1

    page = inspecting.seen()
    assert "tools/list #" in page
    assert " ms</b>" in page
    assert session.secret not in page
    assert "hitl_mcp_" not in repr(session)


@pytest.mark.guarantee("gate:only-people")
def test_what_a_signed_in_person_must_decide_sends_its_user_to_the_page(
    inspecting: Inspecting, tool: Tool, entered: list[ToolCall]
) -> None:
    Tool.objects.update(risk_level=5)
    inspecting.connect(OLDER)
    inspecting.call("refund", **{"arg-text": "hello"})
    page = inspecting.shows("elicitation, URL mode")
    approval = Approval.objects.get()
    assert f'href="/approvals/{approval.pk}"' in page
    inspecting.answer("accept")
    until(lambda: not inspecting.session.questions, "it is answered")
    assert entered == []
    decide.approve(approval.pk, signed_in(approval.call.caller))
    inspecting.shows("Result</span>")
    assert (len(entered), Decision.objects.get().means) == (1, "session")


def test_a_client_that_cannot_ask_is_denied_or_waits_as_its_token_says(
    inspecting: Inspecting, tool: Tool, entered: list[ToolCall]
) -> None:
    inspecting.connect(OLDER, elicits="no")
    inspecting.call("refund", **{"arg-text": "denied"})
    inspecting.shows("Error</span>")
    session = inspecting.connect(MODERN, elicits="no", without_elicitation="inbox")
    inspecting.call("refund", **{"arg-text": "waits"})
    page = inspecting.shows("Decide it here, signed in")
    assert f'href="/approvals/{Approval.objects.get().pk}"' in page
    # Without the number that it comes with, which is of how much is not said.
    inspecting.shows('<p class="small">Waits for a person&#x27;s approval, at ')
    inspecting.post(inspecting.path, cancel="", number=session.calls[0].number)
    inspecting.shows("Cancelled</span>")
    until(lambda: ToolCall.objects.filter(status=Status.WITHDRAWN).exists(), "it is withdrawn")
    assert entered == []


def test_the_progress_of_a_call_is_shown(inspecting: Inspecting, tool: Tool) -> None:
    tools.change(tool.pk, {"source": "stepping", "hitl_mode": "DISABLED"}, SYSTEM)
    inspecting.connect(MODERN)
    inspecting.call("refund", **{"arg-text": "hello"})
    page = inspecting.shows("Result</span>")
    assert "3 of 3: step 3" in page
    assert "notifications/progress" in page


def test_a_call_that_its_client_is_told_to_come_back_for_is_no_error_and_shows_what_became_of_it(
    inspecting: Inspecting, tool: Tool, entered: list[ToolCall], bob: User
) -> None:
    inspecting.connect(OLDER, elicits="no", without_elicitation="url")
    inspecting.call("refund", **{"arg-text": "hello"})
    page = inspecting.shows("Decide it here, signed in")
    assert ('data-status="waiting"' in page, "Error</span>" in page) == (True, False)
    decide.decline(Approval.objects.get().pk, signed_in(bob))
    assert 'data-status="declined"' in inspecting.seen()
    assert entered == []


def test_a_tool_is_shown_as_its_token_sees_it_without_what_hides(inspecting: Inspecting, tool: Tool) -> None:
    inspecting.connect(MODERN)
    path = f"{inspecting.path}/tools/refund"
    assert "signedInOnly&quot;: true" not in inspecting.web.get(path).text
    Tool.objects.update(signed_in_only=True, description="<b>harmless</b>\u202eevil")
    inspecting.post(inspecting.path, list="")
    until(lambda: "signedInOnly&quot;: true" in inspecting.web.get(path).text, "it is listed again")
    page = inspecting.web.get(path).text
    assert "U+202E" in page
    assert "&lt;b&gt;harmless" in page
    assert "\u202e" not in page


def test_arguments_that_are_none_call_nothing_and_those_that_do_not_fit_are_the_servers_to_reject(
    inspecting: Inspecting, tool: Tool
) -> None:
    inspecting.connect(MODERN)
    for typed, said in {"[1]": "a JSON object", "{": "That is not JSON"}.items():
        answer = inspecting.call("refund", json=typed)
        assert (answer.status_code, said in answer.text) == (422, True)
    assert "no longer in the list" in inspecting.call("other", json="{}").text
    assert inspecting.post(inspecting.path, answer="yes", number=1).status_code == 422
    assert inspecting.post(inspecting.path, answer="accept", number="9" * 5000).status_code == 302
    assert not ToolCall.objects.exists()
    inspecting.call("refund", json='{"nonsense": 1}')
    inspecting.shows("Error</span>")
    assert ToolCall.objects.get().status == Status.REJECTED


def test_only_what_changed_is_sent_again(inspecting: Inspecting, tool: Tool) -> None:
    session = inspecting.connect(OLDER)
    live = f"{inspecting.path}/live"
    assert "inspector-tools" in inspecting.web.get(live, params={"seen": "0"}).text
    # Its connection may still be on its way out.
    seen = until(lambda: inspecting.web.get(live, params={"seen": (at := str(session.last))}).status_code == 204 and at)
    inspecting.call("refund", json="{}")
    changed = until(lambda: inspecting.web.get(live, params={"seen": seen}).text, "the call is shown")
    assert "inspector-calls" in changed
    assert "inspector-tools" not in changed


async def test_the_end_of_a_session_ends_what_its_server_does_not_answer() -> None:
    connected, left = asyncio.Event(), asyncio.Event()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.set()
        await reader.read()
        writer.close()
        left.set()

    async with await asyncio.start_server(hear, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        session = Session(1, OLDER, elicits=False, url=f"http://127.0.0.1:{port}/mcp", host="hitlchat", secret="none")
        listing = asyncio.create_task(session.list_tools())
        await connected.wait()
        await session.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listing
        assert not session.tasks
        await left.wait()


def test_a_session_takes_the_place_of_the_one_before_and_ends_with_its_token_and_calls(
    inspecting: Inspecting, tool: Tool, token: str
) -> None:
    inspecting.connect(MODERN)
    inspecting.call("refund", **{"arg-text": "hello"})
    inspecting.shows("The client asks its user")
    former, made = inspecting.path, Token.objects.get(mcp__isnull=False, name__startswith="Inspector")
    assert made.expires_at is not None
    session = inspecting.connect(OLDER, secret=token)
    assert [tool.name for tool in session.tools or ()] == ["refund"]
    assert inspecting.web.get(former).status_code == 404
    until(lambda: ToolCall.objects.get().status == Status.WITHDRAWN, "its call is withdrawn")
    assert inspecting.post(inspecting.path, end="").headers["location"] == BASE
    ended = inspecting.web.get(inspecting.path)
    assert (ended.status_code, f'<a href="{BASE}">Begin another one</a>' in ended.text) == (404, True)
    assert BASE not in inspecting.web.get("/no-such-page").text
    assert not Token.objects.filter(pk=made.pk).exists()
    assert tokens.find(token) is not None
    events = AuditEvent.objects.filter(name__startswith="token.").order_by("pk")
    assert [(event.name, event.means) for event in events] == [("token.made", "session"), ("token.revoked", "session")]


def test_a_token_that_does_not_fit_is_told_at_its_field_and_one_that_is_none_here_where_tools_are_listed(
    inspecting: Inspecting,
) -> None:
    answer = inspecting.begin(MODERN, secret="hitl_api_no")
    assert answer.status_code == 422
    assert "it begins with hitl_mcp_" in answer.text
    assert "hitl_api_no" not in answer.text
    for cut in ("hitl_mcp_", "hitl_mcp_" + "x" * 19, "hitl_mcp_" + "x" * 43 + " y"):
        answer = inspecting.begin(MODERN, secret=cut)
        assert (answer.status_code, "This is not all of a token" in answer.text) == (422, True)
        assert "it begins with hitl_mcp_" not in answer.text
    assert not Token.objects.exists()
    for era in (OLDER, MODERN):
        session = inspecting.connect(era, secret="hitl_mcp_" + "x" * 43)
        assert session.tools is None
        assert "HTTP 401" in inspecting.shows("The tools could not be listed")


def test_nobody_else_sees_a_session(inspecting: Inspecting, tool: Tool, charlie: User, url: str) -> None:
    session = inspecting.connect(MODERN)
    other = Inspecting(url, "charlie")
    for path in ("", "/live", "/tools/refund"):
        assert other.web.get(inspecting.path + path).status_code == 404
    # A page whose session has ended says so, and looks no more.
    over = other.web.get(f"{inspecting.path}/live", headers={"HX-Request": "true"})
    assert over.status_code == 286
    assert f'<a href="{BASE}">Begin another one</a>' in over.text
    for path in ("", "/tools/refund"):
        assert other.post(inspecting.path + path, end="", json="{}").status_code == 404
    assert inspecting.path not in other.web.get(BASE).text
    assert inspecting.session is session
    signed_out = other.web.__class__(base_url=url, trust_env=False, verify=False, timeout=60)
    assert signed_out.get(inspecting.path).headers["location"].startswith("/sign-in")
    assert signed_out.get(f"{inspecting.path}/live", headers={"HX-Request": "true"}).headers["hx-redirect"]
    signed_out.close()
    other.close()


def test_it_connects_to_this_process_whatever_the_request_says_of_itself(inspecting: Inspecting, tool: Tool) -> None:
    port = inspecting.web.base_url.port
    inspecting.web.headers.update({"X-Forwarded-Host": "other.example", "X-Forwarded-Port": "1", "Forwarded": "for=1"})
    assert inspecting.connect(MODERN).url == f"http://127.0.0.1:{port}/mcp"


@pytest.mark.slow("starts processes")
def test_sessions_and_their_questions_end_with_the_server(servers: Servers) -> None:
    server = servers.start(**STEADY)
    person = Inspecting(server.url, "bob")
    assert person.begin(MODERN).status_code == 302
    until(lambda: "Not listed yet." not in person.seen(), "its tools are listed")
    assert server.stop() == 0
    person.web.close()
    assert "Traceback" not in server.log, server.log
    server.start()
    again = Inspecting(server.url, "bob")
    assert again.web.get(person.path).status_code == 404
    again.web.close()
