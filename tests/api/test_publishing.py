"""Publishing over REST: a tool that nobody has tried is tried first."""

from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from tests.api.conftest import Program, ProgramOf, performed, problem
from tests.conftest import ECHO, MakeTool

NEEDS = 'def run(text: str) -> str:\n    """Say it back."""\n    return text\n'


def tried() -> list[dict[str, Any]]:
    return list(ToolCall.objects.order_by("created_at").values_list("arguments", flat=True))


def test_a_tool_is_published_and_taken_back(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo", published=False, hitl_mode="DISABLED")
    assert alices.get("/tools/echo").json()["tested"] is False
    published = alices.post("/tools/echo/publish")
    assert (published.status_code, published.json()["published"], published.json()["tested"]) == (200, True, True)
    back = alices.post("/tools/echo/unpublish")
    assert (back.status_code, back.json()["published"]) == (200, False)


def test_what_passed_a_test_is_not_tried_again(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo", published=False, hitl_mode="DISABLED")
    alices.post("/tools/echo/test", {"arguments": {"text": "hi"}})
    assert alices.post("/tools/echo/publish", {"arguments": {"text": "ho"}}).json()["published"]
    assert tried() == [{"text": "hi"}]


def test_it_is_tried_with_what_is_given_or_with_its_example(alices: Program, make_tool: MakeTool) -> None:
    for name, body in (("a", None), ("b", {}), ("c", {"arguments": {"text": "given"}})):
        make_tool(name, code=NEEDS, published=False, hitl_mode="DISABLED", example={"text": "example"})
        assert alices.post(f"/tools/{name}/publish", body).status_code == 200
    assert tried() == [{"text": "example"}, {"text": "example"}, {"text": "given"}]


def test_without_anything_to_try_it_with_a_test_is_asked_for(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo", code=NEEDS, published=False, hitl_mode="DISABLED")
    found = problem(alices.post("/tools/echo/publish"), 409)
    assert found["detail"].startswith("Run a test first")
    assert (tried(), Tool.objects.get().published) == ([], False)


def test_a_test_that_fails_keeps_it_a_draft(alices: Program, make_tool: MakeTool) -> None:
    code = 'def run(n: int = 0) -> float:\n    """One by n."""\n    return 1 / n\n'
    make_tool("div", code=code, published=False, hitl_mode="DISABLED")
    found = problem(alices.post("/tools/div/publish"), 422)
    assert "Line 3" in found["errors"]["test"]
    assert "ZeroDivisionError" in found["errors"]["test"]
    assert "n:" in problem(alices.post("/tools/div/publish", {"arguments": {"n": "x"}}), 422)["errors"]["test"]
    assert not Tool.objects.get().published
    assert alices.post("/tools/div/publish", {"arguments": {"n": 2}}).json()["published"]


@pytest.mark.guarantee("gate:one-funnel")
@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_gated_tool_asks_before_it_is_published(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo", published=False)
    response = alices.post("/tools/echo/publish")
    assert response.status_code == 202
    asked = response.json()
    assert (asked["ok"], asked["error"]["kind"]) == (False, "waiting")
    assert "approve the call, then publish again" in asked["error"]["message"]
    assert ToolCall.objects.get().status == Status.WAITING
    assert alices.post(f"/approvals/{asked['approvalId']}/approve").status_code == 200
    performed(UUID(asked["callId"]))
    assert alices.post("/tools/echo/publish").json()["published"]
    assert ToolCall.objects.count() == 1


def test_code_that_fails_the_check_is_not_even_tried(alices: Program, make_tool: MakeTool) -> None:
    make_tool("wrong", published=False, hitl_mode="DISABLED", code="def run(a: int = 1) -> int:\n    return a + 'x'\n")
    assert problem(alices.post("/tools/wrong/publish"), 422)["errors"].keys() == {"code"}
    assert tried() == []


def test_the_body_is_strict(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo", published=False, hitl_mode="DISABLED")
    bodies: list[Any] = [{"arguments": []}, {"args": {}}, []]
    for body in bodies:
        problem(alices.post("/tools/echo/publish", body), 422)
    assert tried() == []


# -- Variables -------------------------------------------------------------------------------------------------------


def test_a_secret_is_written_and_never_read(alices: Program, bob: User, program_of: ProgramOf) -> None:
    variables = [
        {"name": "KEY", "secret": True, "value": "sk-live-1234567"},
        {"name": "SHOP", "value": "berlin"},
        {"name": "TOKEN", "secret": True, "value": "${SHOP_TOKEN}"},
    ]
    made = alices.post("/tools", {"name": "echo", "code": ECHO, "variables": variables})
    assert made.status_code == 201
    assert "sk-live" not in made.content.decode()
    assert made.json()["variables"] == [
        {"name": "KEY", "secret": True, "value": None},
        {"name": "SHOP", "secret": False, "value": "berlin"},
        {"name": "TOKEN", "secret": True, "value": "${SHOP_TOKEN}"},
    ]
    assert made.json()["missingVariables"] == ["TOKEN"]
    Tool.objects.update(published=True)
    seen = program_of(bob).get("/tools/echo").json()["variables"]
    assert [each["value"] for each in seen] == [None, None, None]


def test_a_variable_without_a_value_stays_as_it_is(alices: Program) -> None:
    variables = [{"name": "KEY", "secret": True, "value": "sk-live-1234567"}, {"name": "SHOP", "value": "berlin"}]
    made = alices.post("/tools", {"name": "echo", "code": ECHO, "variables": variables}).json()
    kept = alices.patch("/tools/echo", {"variables": [{"name": "KEY", "secret": True}, {"name": "SHOP"}]}).json()
    assert kept == made
    gone = alices.patch("/tools/echo", {"variables": [{"name": "KEY"}]}).json()
    assert (gone["variables"], gone["missingVariables"]) == ([{"name": "KEY", "secret": False, "value": ""}], ["KEY"])


def test_words_about_a_tool_are_checked_and_kept(alices: Program) -> None:
    made = alices.post("/tools", {"name": "echo", "code": ECHO, "category": "Text", "tags": ["a", "b"]}).json()
    assert (made["category"], made["tags"], made["revoked"]) == ("Text", ["a", "b"], "")
    found = problem(
        alices.patch("/tools/echo", {"category": "Evil", "tags": ["<b>"], "variables": [{"name": "a b"}]}), 422
    )
    assert found["errors"].keys() == {"category", "tags", "variables"}
    problem(alices.patch("/tools/echo", {"variables": [{"name": "A", "secret": "yes"}]}), 422)
