"""Saving, publishing and deleting tools."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from hitlchat.gate.actor import Actor
from hitlchat.gate.models import HitlMode, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tests.conftest import ECHO, MakeTool, caller, signed_in
from tools_studio import authoring
from tools_studio.authoring import AuthoringError, Draft
from tools_studio.models import Script

pytestmark = pytest.mark.django_db(transaction=True)

FETCHES = {"fetch": {"mode": "allowlist", "hosts": ["api.example.com"]}}


def waiting_call(user: User, tool: Tool, arguments: dict[str, Any] | None = None) -> ToolCall:
    call = async_to_sync(submit)(CallRequest(tool.name, arguments or {}, caller(user)))
    assert call.status == Status.WAITING
    return call


def problems(draft: Draft) -> dict[str, str]:
    with pytest.raises(AuthoringError) as caught:
        authoring.check(draft)
    return caught.value.problems


def test_a_tool_without_capabilities_never_asks_by_default() -> None:
    assert authoring.check(Draft("t", ECHO)).hitl_mode == HitlMode.DISABLED


@pytest.mark.parametrize(
    "capabilities", [{"store": True}, FETCHES, {"destructive": True}], ids=["store", "fetch", "L5"]
)
def test_a_tool_with_a_power_asks_by_default(capabilities: dict[str, Any]) -> None:
    assert authoring.check(Draft("t", ECHO, capabilities=capabilities)).hitl_mode == HitlMode.REQUIRED


def test_every_wrong_field_is_named_at_once() -> None:
    draft = Draft("bad name", "x = 1", capabilities={"fly": True}, hitl_mode="SOMETIMES", deadline_seconds=0)
    assert set(problems(draft)) == {"name", "code", "capabilities", "hitl_mode", "deadline_seconds"}


def test_a_placeholder_that_names_no_argument_is_refused() -> None:
    assert "{args.nothing}" in problems(Draft("t", ECHO, prompt_template="Say {args.nothing}"))["prompt_template"]


def test_an_example_must_fit_the_schema() -> None:
    assert "text" in problems(Draft("t", ECHO, example={"text": 5}))["example"]


def test_an_error_in_the_signature_names_its_line() -> None:
    assert problems(Draft("t", "\n\ndef run(x):\n    return x\n"))["code"].startswith("Line 3")


def test_a_name_that_is_taken_is_refused_and_nothing_is_changed(make_tool: MakeTool, alice: User) -> None:
    make_tool("echo")
    with pytest.raises(AuthoringError, match="name"):
        authoring.create(Draft("echo", ECHO), alice.pk)
    assert Script.objects.count() == 1


def test_saving_other_code_is_a_new_version_with_another_definition(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo")
    changed = authoring.change(tool, Draft("echo", ECHO.replace("return text", "return text * 2")), signed_in(alice))
    assert changed.definition_hash != tool.definition_hash
    assert changed.origin == "Tool Studio, version 2"


def test_saving_the_same_definition_keeps_its_version_and_what_waits(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo")
    call = waiting_call(alice, tool)
    authoring.change(tool, Draft("echo", ECHO, title="Echo", hitl_mode="REQUIRED"), signed_in(alice))
    assert ToolCall.objects.get(pk=call.pk).status == Status.WAITING


@pytest.mark.guarantee("gate:same-call")
def test_changing_a_tool_withdraws_what_waits_for_an_answer(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo")
    call = waiting_call(alice, tool)
    authoring.change(tool, Draft("echo", ECHO + "# other\n", hitl_mode="REQUIRED"), signed_in(alice))
    call.refresh_from_db()
    assert (call.status, call.reason) == (Status.WITHDRAWN, "Not run: the tool was changed.")


@pytest.mark.parametrize("end", [authoring.unpublish, authoring.delete], ids=["unpublish", "delete"])
def test_a_tool_that_goes_away_withdraws_what_waits(make_tool: MakeTool, alice: User, end: Any) -> None:
    tool = make_tool("echo")
    call = waiting_call(alice, tool)
    end(tool, signed_in(alice))
    assert ToolCall.objects.get(pk=call.pk).status == Status.WITHDRAWN


def test_a_tool_whose_code_fails_the_check_is_not_published(make_tool: MakeTool) -> None:
    tool = make_tool("echo", published=False, code=ECHO + "\n\nclass Broken(Exception):\n    pass\n")
    with pytest.raises(AuthoringError) as caught:
        authoring.publish(tool)
    assert "Line " in caught.value.problems["code"]
    assert not Tool.objects.get(pk=tool.pk).published


def test_a_tool_that_uses_a_capability_it_was_not_granted_is_not_published(make_tool: MakeTool) -> None:
    tool = make_tool("echo", published=False, code="from hitl import store\n" + ECHO)
    with pytest.raises(AuthoringError, match="store"):
        authoring.publish(tool)


def test_a_sound_tool_is_published(make_tool: MakeTool) -> None:
    assert authoring.publish(make_tool("echo", published=False)).published


@pytest.mark.parametrize(
    "before, after, lowers",
    [
        ("REQUIRED", "CONDITIONAL", True),
        ("REQUIRED", "DISABLED", True),
        ("CONDITIONAL", "DISABLED", True),
        ("DISABLED", "REQUIRED", False),
        ("REQUIRED", "REQUIRED", False),
    ],
)
def test_lowering_is_told_from_raising(make_tool: MakeTool, before: str, after: str, lowers: bool) -> None:
    assert authoring.lowers(make_tool("echo", hitl_mode=before), after) is lowers


WEAKER: dict[str, dict[str, Any]] = {
    "never ask": {"hitl_mode": "DISABLED"},
    "policies decide": {"hitl_mode": "CONDITIONAL", "condition": "False"},
}


@pytest.mark.guarantee("gate:only-people")
@pytest.mark.parametrize("weaker", WEAKER.values(), ids=WEAKER)
def test_no_programs_credential_can_make_a_tool_ask_less(
    make_tool: MakeTool, alice: User, weaker: dict[str, Any]
) -> None:
    tool = make_tool("echo")
    with pytest.raises(authoring.OnlyPeople):
        authoring.change(tool, Draft("echo", ECHO, **weaker), Actor(alice.pk, "system"))
    assert Tool.objects.get(pk=tool.pk).hitl_mode == "REQUIRED"


LOOSER: dict[str, dict[str, Any]] = {
    "another condition": {"condition": "False"},
    "more power": {"capabilities": FETCHES},
}


@pytest.mark.parametrize("looser", LOOSER.values(), ids=LOOSER)
def test_no_programs_credential_can_widen_what_runs_unasked(
    make_tool: MakeTool, alice: User, looser: dict[str, Any]
) -> None:
    tool = make_tool("echo", hitl_mode="CONDITIONAL", condition="True")
    draft = {"hitl_mode": "CONDITIONAL", "condition": "True"} | looser
    with pytest.raises(authoring.OnlyPeople):
        authoring.change(tool, Draft("echo", ECHO, **draft), Actor(alice.pk, "system"))


def test_a_program_may_make_a_tool_ask_more(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo", hitl_mode="DISABLED")
    assert (
        authoring.change(tool, Draft("echo", ECHO, hitl_mode="REQUIRED"), Actor(alice.pk, "system")).hitl_mode
        == "REQUIRED"
    )


def test_a_program_cannot_give_a_tool_with_powers_other_code_while_it_runs_unasked(
    make_tool: MakeTool, alice: User
) -> None:
    tool = make_tool("keeps", capabilities={"store": True}, hitl_mode="DISABLED")
    with pytest.raises(authoring.OnlyPeople):
        authoring.amend(tool, {"code": ECHO + "# other\n"}, Actor(alice.pk, "system"))


def test_changing_one_field_keeps_what_a_person_has_set_meanwhile(make_tool: MakeTool, alice: User) -> None:
    stale = make_tool("echo", hitl_mode="DISABLED")
    authoring.amend(Tool.objects.get(), {"hitl_mode": "REQUIRED"}, signed_in(alice))
    authoring.amend(stale, {"title": "Echo"}, Actor(alice.pk, "system"))
    changed = Tool.objects.get()
    assert (changed.hitl_mode, changed.title) == ("REQUIRED", "Echo")
