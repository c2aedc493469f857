"""Made-up calls against the rules, over REST; and what ran without anyone being asked."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.accounts.models import TokenKind
from hitlchat.gate import decide
from hitlchat.gate.models import AuditEvent, ToolCall
from tests.api.conftest import Program, ProgramOf, problem
from tests.api.described import described
from tests.conftest import MakeTool, signed_in
from tests.gate import earning, sources_for_tests
from tests.gate.asking import approval_of, ask

ALL = {"tools": ["*"]}


@pytest.fixture
def bobs(bob: User, program_of: ProgramOf) -> Program:
    return program_of(bob, TokenKind.API)


@pytest.fixture
def rules(settings: Settings) -> None:
    settings.HITL_POLICIES = [
        {"policy": "never_ask", **ALL},
        {"policy": "caller_kind", **ALL, "kinds": ["mcp"], "verdict": "refuse"},
    ]


def simulated(program: Program, **body: Any) -> Any:
    return program.post("/policies/simulate", {"toolName": "echo", "arguments": {}} | body)


def test_a_made_up_call_is_judged_and_nothing_is_left_of_it(bobs: Program, make_tool: MakeTool, rules: None) -> None:
    make_tool("echo", hitl_mode="CONDITIONAL", condition='args["text"] == "no"')
    before = AuditEvent.objects.count()
    assert simulated(bobs).json() == {
        "verdict": "allow",
        "reason": "Not asked because a rule lets calls to this tool run.",
        "rules": [
            {
                "policy": "never_ask",
                "verdict": "allow",
                "reason": "Not asked because a rule lets calls to this tool run.",
                "source": "settings",
                "metadata": {},
            },
            {
                "policy": "condition",
                "verdict": "allow",
                "reason": 'Not asked because the condition “args["text"] == "no"” is false.',
                "source": "tool",
                "metadata": {},
            },
        ],
    }
    assert simulated(bobs, arguments={"text": "no"}).json()["verdict"] == "ask"
    assert simulated(bobs, callerKind="mcp").json()["verdict"] == "refuse"
    assert (ToolCall.objects.count(), AuditEvent.objects.count()) == (0, before)


def test_a_simulation_has_what_a_rule_adds_for_programs(bobs: Program, make_tool: MakeTool, settings: Settings) -> None:
    make_tool("echo", hitl_mode="CONDITIONAL")
    settings.HITL_POLICIES = [{"policy": "tests.gate.own_policies.Tagged"}]
    (rule,) = [each for each in simulated(bobs).json()["rules"] if each["verdict"] == "refuse"]
    assert rule["metadata"] == {"rule": "H-7", "severity": 3, "tenant": "bob"}


def test_a_simulated_call_can_have_a_value_from_outside(bobs: Program, make_tool: MakeTool, settings: Settings) -> None:
    make_tool("echo", hitl_mode="CONDITIONAL", condition="args_from_outside")
    assert [simulated(bobs, argsFromOutside=each).json()["verdict"] for each in (False, True)] == ["allow", "ask"]
    assert simulated(bobs, callerKind="mcp").json()["verdict"] == "ask", "nobody can tell where its values come from"
    make_tool("other", hitl_mode="CONDITIONAL")
    settings.HITL_POLICIES = [{"policy": "tests.gate.own_policies.Inside"}]
    said = [simulated(bobs, toolName="other", argsFromOutside=each).json()["verdict"] for each in (False, True)]
    assert said == ["allow", "refuse"]


def test_what_cannot_be_simulated_says_why(bobs: Program, make_tool: MakeTool) -> None:
    make_tool("echo")
    make_tool("draft", published=False)
    assert "text" in problem(simulated(bobs, arguments={"text": 1}), 422)["detail"]
    assert "no published tool" in problem(simulated(bobs, toolName="draft"), 404)["detail"]
    problem(simulated(bobs, callerKind="web"), 422)
    problem(simulated(bobs, more=1), 422)


def test_only_administrators_simulate_for_others(
    alice: User, bob: User, charlie: User, bobs: Program, program_of: ProgramOf, make_tool: MakeTool
) -> None:
    make_tool("echo")
    assert simulated(bobs, user="bob").status_code == 200
    problem(simulated(bobs, user="charlie"), 403)
    problem(simulated(bobs, user="nobody"), 403)
    problem(simulated(bobs, callerKind="studio"), 403)
    alices = program_of(alice)
    assert simulated(alices, user="charlie", callerKind="studio").json()["verdict"] == "ask"
    problem(simulated(alices, user="nobody"), 404)


def test_recorded_calls_are_judged_by_a_draft(
    alice: User, bob: User, bobs: Program, make_tool: MakeTool, program_of: ProgramOf
) -> None:
    call = ask(bob, make_tool("echo"), {"text": "no"})
    decide.decline(approval_of(call).pk, signed_in(bob))
    draft = {"tools": {"echo": {"hitlMode": "DISABLED"}}}
    problem(bobs.post("/policies/replay", draft), 403)
    alices = program_of(alice, TokenKind.API)
    found = described(alices.post("/policies/replay", draft))
    assert {"calls": 1, "asked": 0, "refused": 0, "allowed": 1, "leftOut": 0}.items() <= found.items()
    assert found["wouldHaveRunThoughDeclined"] == [str(call.pk)]
    refused = alices.post("/policies/replay", draft | {"policies": [{"policy": "deny_list", **ALL, "reason": "No."}]})
    assert described(refused)["refused"] == 1
    assert described(alices.post("/policies/replay", {"days": 7}))["asked"] == 1


def test_a_bad_draft_is_answered_with_its_field(alice: User, program_of: ProgramOf) -> None:
    alices = program_of(alice, TokenKind.API)
    for body, field in [
        ({"tools": {"gone": {"hitlMode": "DISABLED"}}}, "tools.gone"),
        ({"tools": {"gone": {"hitlMode": "SOMETIMES"}}}, "tools.gone.hitlMode"),
        ({"policies": [{"policy": "os.abort"}]}, "policies"),
        ({"days": 0}, "days"),
        ({"rules": []}, "rules"),
    ]:
        assert [*problem(alices.post("/policies/replay", body), 422)["errors"]] == [field]


DRAFT: dict[str, Any] = {"tools": {"echo": {"hitlMode": "DISABLED"}}}


def keep(program: Program, name: str = "Never ask", **body: Any) -> Any:
    return described(program.post("/policies/drafts", DRAFT | {"name": name} | body))


def test_drafts_are_kept_listed_compared_published_and_deleted(
    alice: User, bob: User, alices: Program, make_tool: MakeTool
) -> None:
    tool = make_tool("echo")
    call = ask(bob, tool, {"text": "no"})
    decide.decline(approval_of(call).pk, signed_in(bob))
    found = keep(alices, purpose="Fewer questions.")
    assert (found["draft"], found["purpose"], found["author"], found["publishedAt"]) == (
        DRAFT,
        "Fewer questions.",
        "alice",
        None,
    )
    path = f"/policies/drafts/{found['id']}"
    assert described(alices.get("/policies/drafts")) == [described(alices.get(path))] == [found]
    compared = described(alices.post(f"{path}/compare", {}))
    assert [compared[side]["wouldHaveRunThoughDeclined"] for side in ("draft", "other")] == [[str(call.pk)], []]
    assert compared["differences"] == [{"callId": str(call.pk), "draft": "allow", "other": "ask"}]
    asking = keep(alices, "Ask", tools={"echo": {"hitlMode": "REQUIRED"}})
    assert described(alices.post(f"{path}/compare", {"other": asking["id"], "days": 7}))["differing"] == 1
    assert [*problem(alices.post(f"{path}/publish", {"why": "So."}), 409)["errors"]] == ["confirmLowering"]
    tool.refresh_from_db()
    assert tool.hitl_mode == "REQUIRED"
    published = described(alices.post(f"{path}/publish", {"why": "So.", "confirmLowering": True}))
    assert (published["publisher"], published["why"]) == ("alice", "So.")
    tool.refresh_from_db()
    assert tool.hitl_mode == "DISABLED"
    assert [*problem(alices.post(f"/policies/drafts/{asking['id']}/publish", {"why": "So."}), 409)["errors"]] == [
        "tools.echo.hitlMode"
    ]
    assert alices.delete(path).status_code == 204
    problem(alices.get(path), 404)


def test_no_program_keeps_deletes_or_publishes_a_draft(alices: Program, machine: Program, make_tool: MakeTool) -> None:
    tool = make_tool("echo")
    path = f"/policies/drafts/{keep(alices)['id']}"
    problem(machine.post("/policies/drafts", DRAFT | {"name": "Another"}), 403)
    problem(machine.post(f"{path}/publish", {"why": "So.", "confirmLowering": True}), 403)
    problem(machine.delete(path), 403)
    assert described(machine.get(path))["publishedAt"] is None
    tool.refresh_from_db()
    assert tool.hitl_mode == "REQUIRED"


def test_what_is_wrong_with_a_draft_to_keep_is_answered_by_field(alices: Program, make_tool: MakeTool) -> None:
    make_tool("echo")
    rules = {"echo": {"rules": {"decidedBy": "group", "group": "nobody"}}}
    for body, field in [
        (DRAFT | {"name": ""}, "name"),
        ({"name": "Empty"}, "draft"),
        ({"name": "A group", "tools": rules}, "tools.echo.rules.group"),
    ]:
        assert [*problem(alices.post("/policies/drafts", body), 422)["errors"]] == [field]
    with_policies = keep(alices, policies=[{"policy": "deny_list", **ALL, "reason": "No."}])
    refused = problem(alices.post(f"/policies/drafts/{with_policies['id']}/publish", {"why": "So."}), 409)
    assert "HITL_POLICIES='[{" in refused["errors"]["policies"]


def test_what_the_record_proposes_is_kept_published_listed_and_ended(
    alice: User, bob: User, program_of: ProgramOf, settings: Settings
) -> None:
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, **sources_for_tests.SOURCES}
    tool = earning.refund()
    earning.history(bob, tool)
    program = program_of(alice, TokenKind.APPROVER)
    problem(program_of(bob, TokenKind.APPROVER).get("/policies/earned"), 403)
    found = described(program.get("/policies/earned"))
    assert found["rules"] == []
    (proposal,) = found["proposals"]
    assert {name: proposal[name] for name in ("toolName", "approved", "people", "days", "perDay", "perPerson")} == {
        "toolName": "refund",
        "approved": 30,
        "people": 1,
        "days": 10,
        "perDay": 3,
        "perPerson": 3,
    }
    assert len(proposal["counterExamples"]) == 3
    kept = described(program.post("/policies/drafts", proposal["draft"] | {"name": "Earned"}))
    described(program.post(f"/policies/drafts/{kept['id']}/publish", {"why": "So.", "confirmLowering": True}))
    assert earning.small(bob, tool).status == "allowed"
    found = described(program.get("/policies/earned"))
    (rule,) = found["rules"]
    assert (found["proposals"], rule["state"], rule["used"], rule["publisher"]) == ([], "active", 1, "alice")
    ended = described(program.post(f"/grants/{rule['id']}/revoke"))
    assert (ended["state"], ended["approvalId"]) == ("revoked", None)
    assert described(program.get("/policies/earned"))["rules"][0]["state"] == "revoked"
    assert described(program.get("/grants?state=all")) == []
