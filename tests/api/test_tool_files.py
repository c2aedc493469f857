"""Tools as a file over REST."""

from typing import Any

from hitlchat.gate.models import Tool
from tests.api.conftest import Program, problem
from tests.conftest import ECHO, MakeTool


def document(*tools: dict[str, Any]) -> dict[str, Any]:
    return {"format": "hitlchat.tools", "version": 1, "tools": [{"code": ECHO} | each for each in tools]}


def test_tools_go_out_and_come_back(alices: Program, make_tool: MakeTool) -> None:
    make_tool("a", title="First")
    make_tool("b")
    exported = alices.get("/tools-export", name="a").json()
    assert [tool["name"] for tool in exported["tools"]] == ["a"]
    assert len(alices.get("/tools-export").json()["tools"]) == 2
    problem(alices.get("/tools-export", name="nope"), 404)
    alices.delete("/tools/a")
    done = alices.post("/tools-import", {"document": exported})
    assert done.status_code == 200
    (tool,) = done.json()["tools"]
    assert (tool["name"], tool["action"], tool["hitlMode"], tool["raisedFrom"]) == ("a", "new", "REQUIRED", None)
    again = alices.get("/tools/a").json()
    assert (again["title"], again["published"]) == ("First", False)


def test_a_dry_run_says_what_would_happen_and_does_nothing(alices: Program, make_tool: MakeTool) -> None:
    make_tool("a")
    body = {
        "document": document({"name": "a"}, {"name": "b", "capabilities": {"store": True}, "hitlMode": "DISABLED"}),
        "onConflict": "rename", "dryRun": True,
    }  # fmt: skip
    said = alices.post("/tools-import", body).json()
    assert said["dryRun"] is True
    assert [(tool["importedAs"], tool["action"], tool["hitlMode"]) for tool in said["tools"]] == [
        ("a_2", "rename", "DISABLED"), ("b", "new", "REQUIRED"),
    ]  # fmt: skip
    assert said["tools"][1]["raisedFrom"] == "DISABLED"
    assert said["tools"][1]["can"] == ["Can read and change its own stored data."]
    assert Tool.objects.count() == 1
    alices.post("/tools-import", body | {"dryRun": False})
    assert Tool.objects.count() == 3


def test_every_problem_has_its_place_and_nothing_is_imported(alices: Program) -> None:
    body = {"document": document({"name": "fine"}, {"name": "../x", "code": 1}, {"name": "a b"})}
    found = problem(alices.post("/tools-import", body), 422)
    assert found["errors"].keys() == {"document.tools[1].code", "document.tools[2].name"}
    assert found["detail"].startswith("Nothing was imported.")
    assert not Tool.objects.exists()


def test_a_body_that_is_none_is_refused(alices: Program) -> None:
    for body in [
        {},
        {"document": "{}"},
        {"document": document({"name": "a"}), "onConflict": "overwrite"},
        {"document": document({"name": "a"}), "dryRun": "yes"},
        {"document": document({"name": "a"}), "publish": True},
    ]:
        problem(alices.post("/tools-import", body), 422)
        assert not Tool.objects.exists()
