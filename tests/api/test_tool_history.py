"""A tool's versions and test cases over REST."""

import pytest

from hitlchat.gate.models import Tool, ToolCall
from tests.api.conftest import Program, problem
from tests.conftest import ECHO, MakeTool


def test_every_save_is_listed_and_can_be_read(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo")
    alices.patch("/tools/echo", {"title": "Echo", "tags": ["a"], "confirmLowering": True})
    listed = alices.get("/tools/echo/versions").json()
    assert [(each["number"], each["author"], each["changed"]) for each in listed] == [
        (2, "alice", ["title", "tags"]), (1, "alice", None),
    ]  # fmt: skip
    assert [each["number"] for each in alices.get("/tools/echo/versions", limit=1, offset=1).json()] == [1]
    assert alices.get("/tools/echo/versions", limit=1).json() == listed[:1]
    read = alices.get("/tools/echo/versions/2").json()
    assert (read["changed"], read["tool"]["title"], read["tool"]["code"]) == (["title", "tags"], "Echo", ECHO)
    problem(alices.get("/tools/echo/versions/3"), 404)


@pytest.mark.guarantee("gate:only-people", "SR-27")
def test_a_version_that_asked_less_often_is_restored_only_when_a_person_says_that(
    alices: Program, machine: Program, make_tool: MakeTool
) -> None:
    make_tool("echo", hitl_mode="DISABLED")
    alices.patch("/tools/echo", {"hitlMode": "REQUIRED"})
    assert "confirmLowering" in problem(alices.post("/tools/echo/versions/1/restore"), 409)["detail"]
    problem(machine.post("/tools/echo/versions/1/restore", {"confirmLowering": True}), 403)
    assert Tool.objects.get().hitl_mode == "REQUIRED"
    restored = alices.post("/tools/echo/versions/1/restore", {"confirmLowering": True}).json()
    assert (restored["hitlMode"], restored["version"]) == ("DISABLED", 3)


def test_cases_are_kept_run_and_deleted(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo", hitl_mode="DISABLED")
    right = alices.post(
        "/tools/echo/cases", {"name": "right", "arguments": {"text": "a"}, "expectation": "equals", "expected": "a"}
    )
    wrong = alices.post("/tools/echo/cases", {"name": "wrong", "expectation": "contains", "expected": "x"})
    assert (right.status_code, right.json()["outcome"], wrong.status_code) == (201, "new", 201)
    ran = alices.post("/tools/echo/cases/run").json()
    assert (ran["passed"], ran["total"], ran["notRun"]) == (1, 2, 0)
    assert [(each["name"], each["outcome"]) for each in ran["cases"]] == [("right", "passed"), ("wrong", "failed")]
    assert alices.get("/tools/echo/cases").json() == ran["cases"]
    alices.post("/tools/echo/cases/run", {"ids": [right.json()["id"]]})
    assert ToolCall.objects.count() == 3
    assert alices.delete(f"/tools/echo/cases/{wrong.json()['id']}").status_code == 204
    problem(alices.delete(f"/tools/echo/cases/{wrong.json()['id']}"), 404)


@pytest.mark.guarantee("gate:one-funnel")
def test_the_cases_of_a_gated_tool_wait_for_an_answer(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo")
    alices.post("/tools/echo/cases", {"name": "asks"})
    (case,) = alices.post("/tools/echo/cases/run").json()["cases"]
    assert case["outcome"] == "waiting"
    assert alices.get(f"/approvals/{case['approvalId']}").json()["callId"] == case["callId"]
    alices.post("/tools/echo/cases/run")
    assert ToolCall.objects.count() == 1


def test_a_case_that_is_unsound_is_refused(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo")
    for body in [
        {},
        {"name": "a", "arguments": []},
        {"name": "a", "expectation": "works"},
        {"name": "a", "expected": 1},
        {"name": "a", "evil": 1},
    ]:
        problem(alices.post("/tools/echo/cases", body), 422)
        assert alices.get("/tools/echo/cases").json() == []
