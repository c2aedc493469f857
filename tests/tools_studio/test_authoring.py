"""Saving, publishing and deleting tools."""

from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from hitlchat.gate import loosening
from hitlchat.gate.actor import Actor
from hitlchat.gate.loosening import Guard, NotConfirmed, guard_of
from hitlchat.gate.models import AuditEvent, HitlMode, Tool, ToolCall
from hitlchat.gate.settling import settled
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from hitlchat.gate.tools import watched
from hitlchat.secrets.values import Value
from tests.conftest import ECHO, MakeTool, caller, signed_in, tried
from tests.tables import each_row
from tools_studio import authoring, versions
from tools_studio.authoring import OnlyPeople
from tools_studio.models import Script, ScriptVersion
from tools_studio.spec import AuthoringError, Draft, check

pytestmark = pytest.mark.django_db(transaction=True)

FETCHES = {"fetch": {"mode": "allowlist", "hosts": ["api.example.com"]}}


def waiting_call(user: User, tool: Tool, arguments: dict[str, Any] | None = None) -> ToolCall:
    call = async_to_sync(submit)(CallRequest(tool.name, arguments or {}, caller(user)))
    assert call.status == Status.WAITING
    return call


def problems(draft: Draft) -> dict[str, str]:
    with pytest.raises(AuthoringError) as caught:
        check(draft)
    return caught.value.errors


def test_a_tool_without_capabilities_never_asks_by_default() -> None:
    assert check(Draft("t", ECHO)).hitl_mode == HitlMode.DISABLED


@each_row("capabilities", [{"store": True}, FETCHES, {"destructive": True}], ids=["store", "fetch", "L5"])
def test_a_tool_with_a_power_asks_by_default(capabilities: dict[str, Any]) -> None:
    assert check(Draft("t", ECHO, capabilities=capabilities)).hitl_mode == HitlMode.REQUIRED


def test_every_wrong_field_is_named_at_once() -> None:
    draft = Draft("bad name", "x = 1", capabilities={"fly": True}, hitl_mode="SOMETIMES", deadline_seconds=0)
    assert set(problems(draft)) == {"name", "code", "capabilities", "hitl_mode", "deadline_seconds"}


def test_a_placeholder_that_names_no_argument_is_refused() -> None:
    assert "{args.nothing}" in problems(Draft("t", ECHO, prompt_template="Say {args.nothing}"))["prompt_template"]


def test_an_example_must_fit_the_schema() -> None:
    assert "text" in problems(Draft("t", ECHO, example={"text": 5}))["example"]


def test_a_pattern_that_takes_too_long_to_compile_is_named_with_its_parameter() -> None:
    code = 'def run(code: Annotated[str, {"pattern": "^[A-Za-z_-]{1,64}$"}]) -> str:\n    return code\n'
    check(Draft("t", code))
    costly = code.replace("[A-Za-z_-]", "[^\\\\w]")
    assert "properties.code: its pattern is too costly" in problems(Draft("t", costly.replace("64", "100")))["code"]


def test_an_error_in_the_signature_names_its_line() -> None:
    assert problems(Draft("t", "\n\ndef run(x):\n    return x\n"))["code"].startswith("Line 3")


def test_a_name_that_is_taken_is_refused_and_nothing_is_changed(make_tool: MakeTool, alice: User) -> None:
    make_tool("echo")
    with pytest.raises(AuthoringError, match="name"):
        authoring.create(Draft("echo", ECHO), signed_in(alice))
    assert Script.objects.count() == 1


def test_a_name_that_looks_like_another_tools_is_refused_and_the_other_is_named(
    make_tool: MakeTool, alice: User
) -> None:
    make_tool("refund_order")
    other = make_tool("echo")
    for name in ("refund_0rder", "refund__order", "refund-order"):
        draft = Draft(name, ECHO, hitl_mode="REQUIRED")
        for save in (authoring.create, partial(authoring.change, other)):
            with pytest.raises(AuthoringError) as caught:
                save(draft, signed_in(alice))
            assert caught.value.errors == {"name": f"“{name}” looks like “refund_order”, the name of another tool."}


def test_a_reserved_word_is_no_name_of_a_tool(alice: User) -> None:
    with pytest.raises(AuthoringError, match="is, or looks like, a reserved word"):
        authoring.create(Draft("appr0ve", ECHO), signed_in(alice))


def test_a_tool_whose_name_looks_like_another_can_still_be_saved(make_tool: MakeTool, alice: User) -> None:
    make_tool("refund_order")
    other = make_tool("echo")
    Tool.objects.filter(pk=other.pk).update(name="refund_0rder")
    other.refresh_from_db()
    draft = Draft("refund_0rder", ECHO.replace("return text", "return text * 2"), hitl_mode="REQUIRED")
    assert authoring.change(other, draft, signed_in(alice)).definition_hash != other.definition_hash


def test_saving_other_code_is_a_new_version_with_another_definition(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo")
    draft = Draft("echo", ECHO.replace("return text", "return text * 2"), hitl_mode="REQUIRED")
    changed = authoring.change(tool, draft, signed_in(alice))
    assert changed.definition_hash != tool.definition_hash
    assert changed.origin == "Tool Studio, version 2"


def test_every_save_that_changes_something_is_a_version_with_its_author(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo")
    authoring.amend(tool, {"title": "Echo"}, signed_in(alice), confirmed=True)
    authoring.amend(tool, {"title": "Echo"}, signed_in(alice), confirmed=True)
    kept = ScriptVersion.objects.order_by("number")
    assert [(row.number, row.draft["title"], row.author) for row in kept] == [(1, "", alice), (2, "Echo", alice)]


def test_saving_the_same_definition_keeps_what_waits(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo")
    call = waiting_call(alice, tool)
    authoring.change(tool, Draft("echo", ECHO, title="Echo", hitl_mode="REQUIRED"), signed_in(alice), confirmed=True)
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
        authoring.publish(tool, signed_in(User.objects.get(username="alice")))
    assert "Line " in caught.value.errors["code"]
    assert not Tool.objects.get(pk=tool.pk).published


def test_a_tool_that_uses_a_capability_it_was_not_granted_is_not_published(make_tool: MakeTool) -> None:
    tool = make_tool("echo", published=False, code="from hitl import store\n" + ECHO)
    with pytest.raises(AuthoringError, match="store"):
        authoring.publish(tool, signed_in(User.objects.get(username="alice")))


def test_a_tool_is_published_once_a_test_has_passed(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo", published=False)
    with pytest.raises(authoring.NotTested):
        authoring.publish(tool, signed_in(User.objects.get(username="alice")))
    tried(tool, alice)
    assert authoring.publish(tool, signed_in(User.objects.get(username="alice"))).published


def test_a_test_of_an_earlier_edit_or_one_that_failed_does_not_count(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo", published=False)
    tried(tool, alice)
    broken = authoring.amend(tool, {"code": ECHO.replace("return text", 'raise ValueError("no")')}, signed_in(alice))
    assert tried(broken, alice).status == Status.FAILED
    with pytest.raises(authoring.NotTested):
        authoring.publish(broken, signed_in(User.objects.get(username="alice")))


def test_a_call_that_is_no_test_does_not_count(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo", hitl_mode="DISABLED")
    call = async_to_sync(submit)(CallRequest("echo", {}, caller(alice)))
    assert async_to_sync(settled)(call.pk, 30.0).status == Status.SUCCEEDED
    with pytest.raises(authoring.NotTested):
        authoring.publish(tool, signed_in(User.objects.get(username="alice")))


def test_a_revoked_tool_is_not_published(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo", published=False)
    tried(tool, alice)
    Script.objects.update(revoked="its content is not what was recorded")
    with pytest.raises(AuthoringError, match="revoked"):
        authoring.publish(Tool.objects.select_related("script").get(), signed_in(User.objects.get(username="alice")))


DESTROYS: dict[str, Any] = {"capabilities": {"destructive": True}, "hitl_mode": "DISABLED"}


def test_only_an_administrator_lets_a_critical_tool_run_unasked(make_tool: MakeTool, alice: User, bob: User) -> None:
    with pytest.raises(AuthoringError) as caught:
        authoring.create(Draft("drop", ECHO, **DESTROYS), signed_in(bob))
    assert "administrator" in caught.value.errors["hitl_mode"]
    tool = authoring.create(Draft("drop", ECHO, **DESTROYS), signed_in(alice), confirmed=True)
    assert authoring.amend(tool, {"title": "Drop"}, signed_in(bob), confirmed=True).title == "Drop"
    with pytest.raises(AuthoringError, match="administrator"):
        authoring.amend(tool, {"code": ECHO + "# other\n"}, signed_in(bob))
    asks_never = DESTROYS | {"hitl_mode": "CONDITIONAL", "condition": "False"}
    with pytest.raises(AuthoringError, match="administrator"):
        authoring.create(Draft("wipe", ECHO, **asks_never), signed_in(bob))


def test_whoever_edits_a_tool_that_shipped_makes_it_their_own(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo")
    Script.objects.update(shipped="0" * 64)
    given = {"title": "Echo", "variables": (Value("NOTE", "theirs", secret=False),)}
    authoring.amend(tool, given, signed_in(alice), confirmed=True)
    assert Script.objects.get().shipped == "0" * 64
    authoring.amend(tool, {"code": ECHO + "# mine\n"}, signed_in(alice))
    assert Script.objects.get().shipped == ""


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
    make_tool("echo", hitl_mode=before)
    assert loosening.lowers(guard_of(Tool.objects.get()), Guard(after)) is lowers


LESS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "never ask": ({"hitl_mode": "REQUIRED"}, {"hitl_mode": "DISABLED"}),
    "policies decide": ({"hitl_mode": "REQUIRED"}, {"hitl_mode": "CONDITIONAL", "condition": "False"}),
    "the usual mode, which never asks": ({"hitl_mode": "REQUIRED"}, {"hitl_mode": None}),
    "another condition": ({"hitl_mode": "CONDITIONAL", "condition": "True"}, {"condition": "False"}),
    "a client's word": ({"hitl_mode": "REQUIRED", "signed_in_only": True}, {"signed_in_only": False}),
    "another title": ({"hitl_mode": "REQUIRED", "title": "Delete all"}, {"title": "Tidy up"}),
    "another sentence": ({"hitl_mode": "REQUIRED"}, {"prompt_template": "Say hello?"}),
    "more time": ({"hitl_mode": "REQUIRED", "deadline_seconds": 60}, {"deadline_seconds": 3600}),
    "the usual time, which is more": ({"hitl_mode": "REQUIRED", "deadline_seconds": 60}, {"deadline_seconds": None}),
    "more powers, unasked": ({"hitl_mode": "DISABLED"}, {"capabilities": {"fetch": {"mode": "open"}}}),
    "capital letters": ({"hitl_mode": "REQUIRED", "name": "echo"}, {"name": "KEEP"}),
}


@pytest.mark.guarantee("gate:only-people", "SR-27")
@pytest.mark.parametrize("standing, change", LESS.values(), ids=LESS)
def test_a_tool_asks_less_or_differently_only_when_a_person_confirms_it(
    make_tool: MakeTool, alice: User, standing: dict[str, Any], change: dict[str, Any]
) -> None:
    make_tool("keep")
    tool = make_tool(**{"name": "echo"} | standing)
    before = watched(tool)
    with pytest.raises(NotConfirmed):
        authoring.amend(tool, change, signed_in(alice))
    with pytest.raises(OnlyPeople):
        authoring.amend(tool, change, Actor(alice.pk, "system"), confirmed=True)
    assert watched(Tool.objects.get(name="echo")) == before
    authoring.amend(tool, change, signed_in(alice), confirmed=True)
    event = AuditEvent.objects.get(name="tool.changed")
    assert event.data["weaker"]
    assert event.data["before"] == {name: before[name] for name in event.data["before"]}


PEEKS = ECHO + '\n\ndef preview(text: str = "hello") -> str:\n    return text\n'
NEW: dict[str, dict[str, Any]] = {
    "never asks": {"capabilities": {"store": True}, "hitl_mode": "DISABLED"},
    "asks when a condition says so": {
        "capabilities": {"store": True},
        "hitl_mode": "CONDITIONAL",
        "condition": "False",
    },
    "looks ahead with powers": {"capabilities": FETCHES, "code": PEEKS},
}


@pytest.mark.guarantee("gate:only-people")
@pytest.mark.parametrize("fields", NEW.values(), ids=NEW)
def test_no_programs_credential_makes_a_tool_with_powers_that_acts_unasked(alice: User, fields: dict[str, Any]) -> None:
    program, draft = Actor(alice.pk, "system"), {"code": ECHO, **fields}
    with pytest.raises(OnlyPeople):
        authoring.create(Draft("twin", **draft), program)
    assert not Tool.objects.exists()
    authoring.create(Draft("twin", **draft), signed_in(alice))
    authoring.create(Draft("harmless", ECHO, hitl_mode="DISABLED"), program)


def test_no_programs_credential_gives_a_tool_a_preview_that_could_tell_its_secret(
    make_tool: MakeTool, alice: User
) -> None:
    tool = make_tool("pay", capabilities=FETCHES, variables=(Value("BANK_KEY", "sk-live-0815"),))
    with pytest.raises(OnlyPeople):
        authoring.amend(tool, {"code": PEEKS}, Actor(alice.pk, "system"))


def test_only_a_person_brings_a_revoked_tool_back(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo")
    Script.objects.update(revoked="its content is not what was recorded")
    authoring.amend(tool, {"code": ECHO + "# x\n"}, Actor(alice.pk, "system"))
    assert Script.objects.get().revoked != ""
    authoring.amend(tool, {"code": ECHO + "# mine\n"}, signed_in(alice))
    assert Script.objects.get().revoked == ""


def test_a_value_that_becomes_secret_is_blanked_in_earlier_versions(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool(
        "shop", variables=(Value("KEY", "sk-live-0815", secret=False), Value("NOTE", "stays", secret=False))
    )
    given = (Value("KEY", "sk-live-0815"), Value("NOTE", "stays", secret=False))
    authoring.amend(tool, {"variables": given}, signed_in(alice))
    kept = str(list(ScriptVersion.objects.values_list("draft", flat=True)))
    assert "sk-live-0815" not in kept
    assert kept.count("stays") == 2


def test_the_oldest_versions_go_when_there_are_very_many(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo")
    Script.objects.update(version=versions.MOST)
    authoring.amend(tool, {"title": "Newest"}, signed_in(alice), confirmed=True)
    assert list(ScriptVersion.objects.values_list("number", flat=True)) == [versions.MOST + 1]


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
    with pytest.raises(OnlyPeople):
        authoring.amend(tool, {"code": ECHO + "# other\n"}, Actor(alice.pk, "system"))


def test_changing_one_field_keeps_what_a_person_has_set_meanwhile(make_tool: MakeTool, alice: User) -> None:
    stale = make_tool("echo", hitl_mode="DISABLED")
    authoring.amend(Tool.objects.get(), {"hitl_mode": "REQUIRED"}, signed_in(alice))
    authoring.amend(stale, {"tags": ("echo",)}, Actor(alice.pk, "system"))
    changed = Tool.objects.get()
    assert (changed.hitl_mode, changed.script.tags) == ("REQUIRED", ["echo"])
