"""Files of tools: what an export holds, what an import refuses, and what it does."""

import json
from copy import deepcopy
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from hitlchat.gate.actor import Actor
from hitlchat.gate.models import HitlMode, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from hitlchat.secrets.values import Value
from tests.conftest import ECHO, MakeTool, caller, signed_in
from tests.gate.racing import database_fails_at, together
from tests.tables import each_row
from tests.tools_studio.test_list import copy_row
from tools_studio import authoring, cases, exchange, importing, spec
from tools_studio.authoring import OnlyPeople
from tools_studio.cases import Case
from tools_studio.exchange import BadFile
from tools_studio.importing import Conflict, Outdated
from tools_studio.models import Script, ScriptVersion, TestCase

pytestmark = pytest.mark.django_db(transaction=True)

STORE = {"store": True}
SECRET = "sk-not-for-any-file"


def file(*tools: dict[str, Any], **frame: Any) -> str:
    """A file with these tools, each with whatever it needs to be sound."""
    whole = [{"name": f"tool_{n}", "code": ECHO} | each for n, each in enumerate(tools)]
    return json.dumps({"format": "hitlchat.tools", "version": 1, "tools": whole} | frame)


def imported(content: str | bytes, alice: User, on_conflict: Conflict = "leave") -> importing.Plan:
    return importing.carry_out(exchange.read(content), on_conflict, signed_in(alice), confirmed=True)


def refusal(content: str | bytes) -> list[str]:
    with pytest.raises(BadFile) as caught:
        exchange.read(content)
    return [str(each) for each in caught.value.problems]


# -- Export ----------------------------------------------------------------------------------------------------------


def test_an_export_holds_the_tool_with_its_policy_and_tests_but_no_secret(make_tool: MakeTool, alice: User) -> None:
    variables = (
        Value("SHOP_KEY", SECRET),
        Value("SHOP", "berlin", secret=False),
        Value("ENV", "${SHOP_ENV}"),
    )
    tool = make_tool(
        "echo", title="Echo", category="Text", tags=("a", "b"), capabilities=STORE,
        condition="True", hitl_mode="CONDITIONAL", prompt_template="Say {args.text}",
        deadline_seconds=60, signed_in_only=True, example={"text": "hi"}, variables=variables,
    )  # fmt: skip
    cases.add(tool, Case("says it", {"text": "hi"}, "equals", "hi"))
    text = exchange.text(Tool.objects.all())
    assert SECRET not in text
    document = json.loads(text)
    assert (document["format"], document["version"]) == ("hitlchat.tools", 1)
    assert document["tools"] == [
        {
            "name": "echo", "title": "Echo", "description": "", "group": "tools", "category": "Text", "code": ECHO,
            "capabilities": STORE, "hitlMode": "CONDITIONAL", "promptTemplate": "Say {args.text}", "condition": "True",
            "deadlineSeconds": 60, "signedInOnly": True, "example": {"text": "hi"}, "tags": ["a", "b"],
            "variables": [
                {"name": "ENV", "secret": True, "value": "${SHOP_ENV}"},
                {"name": "SHOP", "secret": False, "value": "berlin"},
                {"name": "SHOP_KEY", "secret": True, "value": None},
            ],
            "testCases": [{"name": "says it", "arguments": {"text": "hi"}, "expectation": "equals", "expected": "hi"}],
            "definitionHash": tool.definition_hash,
        }
    ]  # fmt: skip


def test_what_was_exported_comes_back_the_same_as_a_draft(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo", title="Echo", tags=("a",), capabilities=STORE, example={"text": "hi"})
    cases.add(tool, Case("says it", {"text": "hi"}, "contains", "h"))
    before, text = spec.draft_of(tool), exchange.text(Tool.objects.all())
    authoring.delete(tool, signed_in(alice))
    assert [step.action for step in imported(text, alice).steps] == ["new"]
    again = Tool.objects.select_related("script").get()
    assert (spec.draft_of(again), again.published) == (before, False)
    assert again.definition_hash == tool.definition_hash
    assert cases.of(TestCase.objects.get()) == Case("says it", {"text": "hi"}, "contains", "h")
    assert ScriptVersion.objects.get().author == alice


def test_an_export_that_no_import_would_take_is_refused(make_tool: MakeTool) -> None:
    big = make_tool("big", code=ECHO + "#" * 60_000 + "\n", published=False)
    for n in range(29):
        copy_row(big, f"big_{n}")
    with pytest.raises(exchange.TooMuch, match=r"1\.5 MiB"):
        exchange.text(Tool.objects.all())


# -- Hostile files -----------------------------------------------------------------------------------------------------

DEEP = "[" * 100_000 + "]" * 100_000
FILES: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", "The file is not JSON"),
    "not JSON": ("{", "The file is not JSON"),
    "a picture": (b"\x89PNG\r\n\x1a\n\x00", "The file is not JSON: not UTF-8"),
    "UTF-16": ("{}".encode("utf-16"), "The file is not JSON"),
    "ten megabytes": (b" " * (10 * 2**20), "The file is larger than 1.5 MiB, the most that is accepted"),
    "nested without end": (DEEP, "nested too deeply"),
    "nested below a tool": (file({"example": {"a": None}}).replace("null", "[" * 197 + "]" * 197), "nested too deeply"),
    "NaN": (file({}).replace('"version": 1', '"version": NaN'), "NaN is not JSON"),
    "a number without end": (file({}).replace('"version": 1', '"version": 1e999'), "too large"),
    "a number of many digits": (file({}).replace('"version": 1', f'"version": {"9" * 5000}'), "too many digits"),
    "a key twice": (file({}).replace('"version": 1', '"version": 1, "version": 1'), "the key 'version' occurs twice"),
    "a list": ("[]", "Expected an object"),
    "null": ("null", "Expected an object"),
    "another format": (file({}, format="other"), "format: Expected"),
    "another version": (file({}, version=2), "version: Expected 1"),
    "a version as text": (file({}, version="1"), "version: Expected 1"),
    "true for a version": (file({}, version=True), "version: Expected 1"),
    "no tools": (json.dumps({"format": "hitlchat.tools", "version": 1}), "tools: It is missing"),
    "an empty list": (file(), "tools: It is empty"),
    "tools as an object": (file(tools={}), "tools: Expected a list"),
    "too many tools": (file(*[{}] * 201), "tools: At most 200, not 201"),
    "an unknown key": (file({}, evil=1), "evil: Unknown."),
    "a tool that is none": (file(tools=[1]), "tools[0]: Expected an object"),
    "a tool with nothing": (file(tools=[{}]), "tools[0].name: It is missing"),
}  # fmt: skip


@each_row("content, said", FILES.values(), ids=FILES)
def test_a_file_that_is_none_is_refused_with_the_reason(content: str | bytes, said: str, db: None) -> None:
    assert any(said in each for each in refusal(content))


TOOLS: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown key": ({"published": True}, "tools[0].published: Unknown."),
    "a number for code": ({"code": 1}, "tools[0].code: Expected a text."),
    "a text for capabilities": ({"capabilities": "all"}, "tools[0].capabilities: Expected an object."),
    "an unknown capability": ({"capabilities": {"root": True}}, "tools[0].capabilities: root: unknown capability"),
    "an unknown mode": ({"hitlMode": "NEVER"}, "tools[0].hitlMode: Expected one of"),
    "true for a deadline": ({"deadlineSeconds": True}, "tools[0].deadlineSeconds: Expected a whole number or null."),
    "a deadline without end": ({"deadlineSeconds": 10**400}, "tools[0].deadlineSeconds: Expected 1 second to 30 days."),
    "a negative deadline": ({"deadlineSeconds": -1}, "tools[0].deadlineSeconds: Expected 1 second to 30 days."),
    "an example as a list": ({"example": []}, "tools[0].example: Expected an object or null."),
    "an example that does not fit": ({"example": {"text": 1}}, "tools[0].example: text"),
    "tags that are none": ({"tags": ["<b>"]}, "tools[0].tags: Expected at most"),
    "a tag of another type": ({"tags": [1]}, "tools[0].tags[0]: Expected a text."),
    "an unknown category": ({"category": "Evil"}, "tools[0].category: Expected one of"),
    "a path for a name": ({"name": "../../etc/passwd"}, "tools[0].name: Use 1 to 64 letters"),
    "a name with NUL": ({"name": "a\x00b"}, "tools[0].name: Contains a character that cannot be stored"),
    "an empty name": ({"name": ""}, "tools[0].name: Use 1 to 64 letters"),
    "a name without end": ({"name": "a" * 100_000}, "tools[0].name: Use 1 to 64 letters"),
    "a name with a line end": ({"name": "echo\n"}, "tools[0].name: Use 1 to 64 letters"),
    "a group with a path": ({"group": "../tools"}, "tools[0].group: Use 1 to 64 letters"),
    "a lone surrogate": ({"code": "\ud800"}, "tools[0].code: Contains a character that cannot be stored"),
    "a lone surrogate in a key": ({"example": {"\udfff": 1}}, "tools[0].example: A key contains a character"),
    "code that does not parse": ({"code": "def run(:"}, "tools[0].code: Line 2: expected complete Python"),
    "code without run": ({"code": "x = 1"}, "tools[0].code"),
    "a prompt with a wrong field": ({"promptTemplate": "{args.nope}"}, "tools[0].promptTemplate"),
    "a secret that is told": (
        {"variables": [{"name": "KEY", "secret": True, "value": "abcdefgh"}]},
        "tools[0].variables[0].value: A file must not contain secrets",
    ),
    "a variable of hitlchat itself": (
        {"variables": [{"name": "KEY", "secret": True, "value": "${SECRET_KEY}"}]},
        "tools[0].variables: KEY: SECRET_KEY belongs to hitlchat itself",
    ),
    "a variable twice": ({"variables": [{"name": "A"}, {"name": "A"}]}, "tools[0].variables: A is listed twice."),
    "a variable of another type": ({"variables": ["A"]}, "tools[0].variables[0]: Expected an object."),
    "too many variables": ({"variables": [{"name": "A"}] * 21}, "tools[0].variables: At most 20, not 21."),
    "a test without a name": ({"testCases": [{"name": ""}]}, "tools[0].testCases[0].name: It is empty."),
    "a test twice": (
        {"testCases": [{"name": "a"}] * 2}, "tools[0].testCases[1].name: There is already a test named 'a'.",
    ),
    "a test that expects nothing known": (
        {"testCases": [{"name": "a", "expectation": "works"}]}, "tools[0].testCases[0].expectation: Expected one of",
    ),
    "a test with a list of arguments": (
        {"testCases": [{"name": "a", "arguments": []}]}, "tools[0].testCases[0].arguments: Expected an object.",
    ),
    "too many tests": ({"testCases": [{"name": "a"}] * 51}, "tools[0].testCases: At most 50, not 51."),
    "a hash that is none": ({"definitionHash": "../x"}, "tools[0].definitionHash: Expected 64 hexadecimal digits."),
}  # fmt: skip


@each_row("wrong, said", TOOLS.values(), ids=TOOLS)
def test_a_tool_that_is_wrong_is_refused_at_its_place(wrong: dict[str, Any], said: str, db: None) -> None:
    assert [each for each in refusal(file(wrong)) if each.startswith(said)]


def test_every_problem_is_listed_at_once(db: None) -> None:
    found = refusal(file({"code": 1}, {"hitlMode": "NEVER", "evil": 1}, {"name": "a b"}, {"name": "x"}, {"name": "x"}))
    places = [each.partition(":")[0] for each in found]
    assert places == [
        "tools[0].code", "tools[1].evil", "tools[1].hitlMode", "tools[2].name", "tools[4].name",
    ]  # fmt: skip


def test_what_a_stranger_wrote_is_not_repeated_without_end(db: None) -> None:
    found = refusal(file(*[{"x" * 1000: 1, "y": 2} for _ in range(150)]))
    assert len(found) == 100
    assert max(map(len, found)) < 1000


def test_one_wrong_tool_keeps_all_of_them_out(alice: User) -> None:
    with pytest.raises(BadFile):
        imported(file({}, {}, {"code": "x = 1"}), alice)
    assert not Tool.objects.exists()


@pytest.mark.parametrize("statement", ['INSERT INTO "tools_studio_testcase', 'INSERT INTO "tools_studio_scriptversion'])
def test_nothing_is_half_written_when_the_database_fails(alice: User, make_tool: MakeTool, statement: str) -> None:
    make_tool("tool_1")
    content = file({}, {"code": ECHO + "# other\n", "testCases": [{"name": "a"}]})
    entries = exchange.read(content)
    with database_fails_at(statement), pytest.raises(Exception, match="went away"):
        importing.carry_out(entries, "replace", signed_in(alice))
    tool = Tool.objects.get()
    assert (tool.name, tool.published, tool.origin) == ("tool_1", True, "Tool Studio, version 1")
    assert (Script.objects.count(), ScriptVersion.objects.count(), TestCase.objects.count()) == (1, 1, 0)


# -- What an import does ---------------------------------------------------------------------------------------------


def test_a_new_tool_is_a_draft_whatever_the_file_would_like(alice: User) -> None:
    imported(file({}), alice)
    assert not Tool.objects.get().published


@each_row(
    "fields, mode, raised",
    [
        ({"capabilities": STORE, "hitlMode": "DISABLED"}, "REQUIRED", "DISABLED"),
        ({"capabilities": STORE, "hitlMode": "CONDITIONAL", "condition": "False"}, "REQUIRED", "CONDITIONAL"),
        ({"capabilities": STORE}, "REQUIRED", None),
        ({"hitlMode": "DISABLED"}, "DISABLED", None),
        ({"hitlMode": "REQUIRED"}, "REQUIRED", None),
        ({"capabilities": {"destructive": True}, "hitlMode": "DISABLED"}, "REQUIRED", "DISABLED"),
    ],
)
def test_a_new_tool_asks_as_often_as_its_risk_calls_for(
    alice: User, fields: dict[str, Any], mode: str, raised: str | None
) -> None:
    Tool.objects.all().delete()
    (step,) = imported(file(fields), alice).steps
    assert (Tool.objects.get().hitl_mode, step.raised_from) == (mode, raised and HitlMode(raised))


@each_row(
    "here, fields, mode",
    [
        ({"hitl_mode": "REQUIRED"}, {"hitlMode": "DISABLED"}, "REQUIRED"),
        ({"hitl_mode": "REQUIRED"}, {"hitlMode": "CONDITIONAL", "condition": "False"}, "REQUIRED"),
        ({"hitl_mode": "DISABLED"}, {"hitlMode": "REQUIRED"}, "REQUIRED"),
        ({"hitl_mode": "DISABLED"}, {}, "DISABLED"),
        ({"hitl_mode": "DISABLED"}, {"capabilities": {"destructive": True}, "hitlMode": "DISABLED"}, "REQUIRED"),
        ({"hitl_mode": "DISABLED", "capabilities": STORE}, {"capabilities": STORE, "code": ECHO + "#\n"}, "REQUIRED"),
        ({"hitl_mode": "CONDITIONAL", "condition": "True"}, {"condition": "False"}, "REQUIRED"),
        (
            {"hitl_mode": "CONDITIONAL", "condition": "True"},
            {"condition": "True", "hitlMode": "DISABLED"}, "CONDITIONAL",
        ),
    ],
)  # fmt: skip
def test_a_replaced_tool_never_asks_less_often(
    alice: User, make_tool: MakeTool, here: dict[str, Any], fields: dict[str, Any], mode: str
) -> None:
    Tool.objects.all().delete()
    make_tool("tool_0", **here)
    imported(file(fields | {"title": "New"}), alice, "replace")
    tool = Tool.objects.get()
    assert (tool.title, tool.hitl_mode) == ("New", mode)


def test_a_tool_of_the_same_name_is_left_alone_unless_one_says_otherwise(alice: User, make_tool: MakeTool) -> None:
    tool = make_tool("tool_0")
    plan = imported(file({"code": ECHO + "# other\n", "testCases": [{"name": "a"}]}), alice)
    assert [step.action for step in plan.steps] == ["leave"]
    assert Tool.objects.get().definition_hash == tool.definition_hash
    assert not TestCase.objects.exists()


def test_a_replaced_tool_is_a_new_version_and_a_draft_and_what_waits_is_withdrawn(
    alice: User, make_tool: MakeTool
) -> None:
    tool = make_tool("tool_0")
    call = async_to_sync(submit)(CallRequest("tool_0", {}, caller(alice)))
    imported(file({"code": ECHO + "# other\n"}), alice, "replace")
    replaced = Tool.objects.get()
    assert (replaced.pk, replaced.published, replaced.origin) == (tool.pk, False, "Tool Studio, version 2")
    assert ToolCall.objects.get(pk=call.pk).status == Status.WITHDRAWN


def test_a_tool_whose_definition_stays_stays_published(alice: User, make_tool: MakeTool) -> None:
    make_tool("tool_0", hitl_mode="REQUIRED")
    call = async_to_sync(submit)(CallRequest("tool_0", {}, caller(alice)))
    imported(file({"title": "Better"}), alice, "replace")
    tool = Tool.objects.get()
    assert (tool.title, tool.published) == ("Better", True)
    assert ToolCall.objects.get(pk=call.pk).status == Status.WAITING


def test_what_is_here_already_is_not_written_again(alice: User, make_tool: MakeTool) -> None:
    tool = make_tool("tool_0")
    cases.add(tool, Case("a", {}))
    text = exchange.text(Tool.objects.all())
    assert [step.action for step in imported(text, alice, "replace").steps] == ["same"]
    assert (ScriptVersion.objects.count(), Tool.objects.get().published) == (1, True)


def test_a_replaced_tool_keeps_its_secrets_and_its_tests(alice: User, make_tool: MakeTool) -> None:
    tool = make_tool("tool_0", variables=(Value("KEY", SECRET),))
    cases.add(tool, Case("mine", {}))
    fields = {"code": ECHO + "#\n", "variables": [{"name": "KEY", "secret": True}], "testCases": [{"name": "theirs"}]}
    (step,) = importing.plan(exchange.read(file(fields)), "replace").steps
    assert any("keeps the stored secrets KEY" in note for note in step.notes)
    imported(file(fields), alice, "replace")
    kept = spec.stored_variables(Script.objects.get())
    assert kept["KEY"].fingerprint
    assert sorted(TestCase.objects.values_list("name", flat=True)) == ["mine", "theirs"]


def test_a_new_tool_says_which_variables_have_no_value_yet(alice: User) -> None:
    fields = {"variables": [{"name": "KEY", "secret": True}, {"name": "REGION", "value": "${SHOP_REGION}"}]}
    (step,) = imported(file(fields), alice).steps
    assert step.missing.keys() == {"KEY", "REGION"}
    assert any("REGION from ${SHOP_REGION}" in note for note in step.notes)


def test_a_tool_can_be_added_beside_the_one_of_its_name(alice: User, make_tool: MakeTool) -> None:
    long = "n" * 64
    for name in ("echo", "echo_2", long):
        make_tool(name)
    plan = imported(file({"name": "echo"}, {"name": "echo_3"}, {"name": long}), alice, "rename")
    assert [step.name for step in plan.steps] == ["echo_4", "echo_3", "n" * 62 + "_2"]
    assert Tool.objects.count() == 6


def test_a_tool_whose_name_looks_like_another_keeps_all_of_it_out(alice: User, make_tool: MakeTool) -> None:
    make_tool("refund_order")
    with pytest.raises(BadFile, match=r"tools\[1\]\.name: “refund_0rder” looks like “refund_order”"):
        imported(file({"name": "other"}, {"name": "refund_0rder"}), alice, "replace")
    with pytest.raises(BadFile, match=r"tools\[1\]\.name: “to_be” looks like “t0_be”"):
        imported(file({"name": "t0_be"}, {"name": "to_be"}), alice)
    assert Tool.objects.count() == 1


def test_a_tool_of_another_source_is_never_replaced(alice: User) -> None:
    Tool.objects.create(name="tool_0", source="project", origin="this project", definition_hash="0" * 64)
    (step,) = imported(file({}), alice, "replace").steps
    assert step.action == "leave"
    assert Tool.objects.get().source == "project"


def test_tests_that_would_be_too_many_together_keep_all_of_it_out(alice: User, make_tool: MakeTool) -> None:
    tool = make_tool("tool_0")
    for n in range(30):
        cases.add(tool, Case(f"mine {n}", {}))
    wanted = [{"name": f"theirs {n}"} for n in range(30)]
    with pytest.raises(BadFile, match=r"tools\[1\].*more than 50 tests"):
        imported(file({"name": "other"}, {"name": "tool_0", "title": "New", "testCases": wanted}), alice, "replace")
    assert (Tool.objects.count(), TestCase.objects.count(), Tool.objects.get().title) == (1, 30, "")


def test_a_file_that_was_changed_after_its_export_is_told_apart(alice: User, make_tool: MakeTool) -> None:
    make_tool("echo", published=False)
    document = exchange.document(Tool.objects.all())
    changed = deepcopy(document)
    changed["tools"][0]["code"] += "# slipped in\n"
    notes = [importing.plan(exchange.read_document(each), "rename").steps[0].notes for each in (document, changed)]
    assert notes[0] == ()
    assert any("Changed after its export" in note for note in notes[1])


def test_an_import_that_is_no_longer_what_was_shown_does_nothing(alice: User, make_tool: MakeTool) -> None:
    entries = exchange.read(file({}))
    shown = importing.plan(entries, "replace")
    make_tool("tool_0", code=ECHO + "# mine\n")
    with pytest.raises(Outdated) as caught:
        importing.carry_out(entries, "replace", signed_in(alice), shown.digest)
    assert [step.action for step in caught.value.plan.steps] == ["replace"]
    assert Tool.objects.get().origin == "Tool Studio, version 1"


def test_of_two_imports_at_once_each_is_done_whole_or_not_at_all(alice: User) -> None:
    ones = exchange.read(file(*({"name": f"t{n}", "title": "one"} for n in range(10))))
    others = exchange.read(file(*({"name": f"t{n}", "title": "other"} for n in reversed(range(10)))))
    outcomes = together(*(lambda e=e: importing.carry_out(e, "leave", signed_in(alice)) for e in (ones, others)))
    assert any(isinstance(each, importing.Plan) for each in outcomes)
    assert all(isinstance(each, importing.Plan | BadFile) for each in outcomes), outcomes
    assert len({*Tool.objects.values_list("title", flat=True)}) == 1
    assert Tool.objects.count() == Script.objects.count() == 10


@pytest.mark.guarantee("gate:only-people", "SR-27")
def test_no_programs_credential_can_give_a_tool_other_rules_by_an_import(alice: User, make_tool: MakeTool) -> None:
    make_tool("tool_0", hitl_mode="DISABLED")
    entries = exchange.read(file({"condition": "False"}, {"name": "new"}))
    with pytest.raises(OnlyPeople):
        importing.carry_out(entries, "replace", Actor(alice.pk, "system"))
    assert (Tool.objects.get().condition, Tool.objects.count()) == ("", 1)
