"""The Inspector's pages: a client of our own server, which is asked like every other, and only its owner sees."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from hitlchat.gate import decide, tools
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Approval, Decision, Tool, ToolCall
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.mcp_server.inspecting import MODERN, Inspecting, each_era
from tests.waiting import until

pytestmark = [pytest.mark.embedded, pytest.mark.django_db(transaction=True)]


@pytest.mark.guarantee("gate:no-yes-no-run")
@each_era
def test_a_call_is_asked_about_and_runs_once_its_user_accepts(
    era: str, inspecting: Inspecting, tool: Tool, entered: list[ToolCall], bob: User
) -> None:
    inspecting.connect(era)
    assert inspecting.call("refund", **{"arg-text": "hello"}).status_code == 302
    page = inspecting.shows("The client asks its user")
    assert "[Risk L" in page
    assert "elicitation, form mode" in page
    assert entered == []
    assert inspecting.answer("accept").status_code == 302
    page = inspecting.shows("Result</span>")
    assert len(entered) == 1
    assert (entered[0].caller_kind, entered[0].caller) == ("mcp", bob)
    assert Decision.objects.get().means == "elicitation"
    assert "The client asks its user" not in page


@pytest.mark.guarantee("gate:no-yes-no-run")
@each_era
def test_what_its_user_does_not_accept_does_not_run_and_leads_to_its_record(
    era: str, inspecting: Inspecting, tool: Tool, entered: list[ToolCall]
) -> None:
    inspecting.connect(era)
    inspecting.call("refund", **{"arg-text": "first"})
    assert "Decide it here" not in inspecting.shows("The client asks its user")
    inspecting.answer("decline")
    assert "isError</span>" in (page := inspecting.shows("Its record"))
    assert f'href="/approvals/{Decision.objects.get().approval_id}"' in page
    inspecting.call("refund", **{"arg-text": "second"})
    inspecting.answer("cancel")
    until(lambda: ToolCall.objects.filter(status=Status.WITHDRAWN).exists(), "it is withdrawn")
    outcomes = {call.arguments["text"]: call.status for call in ToolCall.objects.all()}
    assert outcomes == {"first": Status.DECLINED, "second": Status.WITHDRAWN}
    assert entered == []


@each_era
def test_every_message_is_shown_with_its_time_and_never_the_token_and_at_last_that_the_session_is_over(
    era: str, inspecting: Inspecting, tool: Tool
) -> None:
    session = inspecting.connect(era)
    asked = "server/discover" if era == MODERN else "ping"

    def count() -> int:
        return len([line for line in list(session.recording.lines) if line.title.startswith(asked)])

    before = count()
    inspecting.post(f"{inspecting.path}/ping")
    until(lambda: count() == before + 2, "it is asked and answered")
    page = inspecting.shows(f"{asked} #")
    assert "tools/list #" in page
    assert " ms</b>" in page
    assert session.wish.secret not in page
    assert "hitl_mcp_" not in repr(session.wish)
    inspecting.post(f"{inspecting.path}/end")
    until(lambda: not session.is_open, "it is over")
    # It says so however much of it was seen.
    part = inspecting.web.get(f"{inspecting.path}/live?seen={session.recording.last}")
    assert "You ended it." in part.text
    # And nothing looks any more.
    assert "hx-get" not in part.text


def test_the_page_says_that_a_signed_in_person_must_decide_and_what_the_client_speaks(
    inspecting: Inspecting, tool: Tool
) -> None:
    inspecting.connect(MODERN)
    path = f"{inspecting.path}/tools/refund"
    # Its first list may be from before the token was marked.
    inspecting.post(f"{inspecting.path}/list")
    until(lambda: "a signed-in person must decide" not in inspecting.web.get(path).text, "its own word is enough")
    assert "Client, protocol 2026-07-28" in inspecting.seen()
    Tool.objects.update(signed_in_only=True)
    inspecting.post(f"{inspecting.path}/list")
    until(lambda: "a signed-in person must decide" in inspecting.web.get(path).text, "it is listed again")


@each_era
def test_a_client_that_cannot_ask_is_denied_as_its_token_says(
    era: str, inspecting: Inspecting, tool: Tool, entered: list[ToolCall]
) -> None:
    inspecting.connect(era, elicits="no")
    inspecting.call("refund", **{"arg-text": "hello"})
    inspecting.shows("isError</span>")
    assert entered == []


@each_era
def test_a_call_that_waits_elsewhere_leads_to_where_it_is_decided_and_once_cancelled_waits_for_nobody(
    era: str, inspecting: Inspecting, tool: Tool
) -> None:
    session = inspecting.connect(era, elicits="no", without_elicitation="inbox")
    inspecting.call("refund", **{"arg-text": "hello"})
    page = inspecting.shows("Decide it here, signed in")
    assert f'href="/approvals/{Approval.objects.get().pk}"' in page
    (number,) = session.calls
    inspecting.post(f"{inspecting.path}/calls/{number}/cancel")
    inspecting.shows("Cancelled</span>")
    until(lambda: ToolCall.objects.get().status == Status.WITHDRAWN, "it is withdrawn")


@each_era
def test_the_progress_of_a_call_is_shown(era: str, inspecting: Inspecting, tool: Tool) -> None:
    tools.change(tool.pk, {"source": "stepping", "hitl_mode": "DISABLED"}, SYSTEM)
    inspecting.connect(era)
    inspecting.call("refund", **{"arg-text": "hello"})
    page = inspecting.shows("Result</span>")
    assert "3 of 3: step 3" in page
    assert "notifications/progress" in page


def test_a_tool_that_comes_into_the_catalog_comes_into_the_list(inspecting: Inspecting, tool: Tool) -> None:
    session = inspecting.connect(MODERN)
    # The server looks once a second, from when somebody listens.
    until(
        lambda: (
            Tool.objects.update(title=f"Pay back {uuid4()}")
            and "notifications/tools/list_changed" in [line.title for line in session.recording.lines]
        ),
        "it is told",
    )
    Tool.objects.update(title="Pay it back")
    inspecting.shows("Pay it back")


def test_arguments_that_are_none_call_nothing(inspecting: Inspecting, tool: Tool) -> None:
    inspecting.connect("2026-07-28")
    for typed, said in {"[1]": "a JSON object", "{": "That is not JSON"}.items():
        answer = inspecting.call("refund", json=typed)
        assert (answer.status_code, said in answer.text) == (422, True)
    assert "not in the list any more" in inspecting.call("other", json="{}").text
    assert not ToolCall.objects.exists()


def test_arguments_that_the_tool_does_not_take_are_the_servers_to_reject(inspecting: Inspecting, tool: Tool) -> None:
    inspecting.connect("2026-07-28")
    inspecting.call("refund", json='{"nonsense": 1}')
    inspecting.shows("isError</span>")
    assert ToolCall.objects.get().status == Status.REJECTED


def test_only_what_changed_is_sent_again(inspecting: Inspecting, tool: Tool) -> None:
    session = inspecting.connect("2025-11-25")
    live = f"{inspecting.path}/live"
    assert "Connected" in inspecting.web.get(live, params={"seen": "0"}).text
    seen = str(session.recording.last)
    assert inspecting.web.get(live, params={"seen": seen}).status_code == 204
    inspecting.post(f"{inspecting.path}/ping")
    changed = until(lambda: inspecting.web.get(live, params={"seen": seen}).text, "the ping is shown")
    assert "ping #" in changed
    assert "inspector-tools" not in changed


def test_hidden_characters_of_a_tool_are_shown_as_escapes(inspecting: Inspecting, tool: Tool) -> None:
    Tool.objects.update(description="<b>harmless</b>\u202eevil")
    inspecting.connect("2026-07-28")
    page = inspecting.web.get(f"{inspecting.path}/tools/refund").text
    assert "&lt;b&gt;harmless" in page
    assert "U+202E" in page
    assert "\u202e" not in page


@pytest.mark.guarantee("gate:only-people")
@each_era
def test_what_a_signed_in_person_must_decide_sends_its_user_to_the_page(
    era: str, inspecting: Inspecting, tool: Tool, entered: list[ToolCall]
) -> None:
    Tool.objects.update(risk_level=5)
    inspecting.connect(era)
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
