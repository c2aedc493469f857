"""Test cases of a tool: keeping them, running them, and what the last run says."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.gate import decide
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.settling import settled
from hitlchat.gate.status import Status
from tests.conftest import ECHO, MakeTool, caller, signed_in, tried
from tests.tables import each_row
from tests.tools_studio.conftest import text
from tools_studio import authoring, cases
from tools_studio.cases import Case
from tools_studio.models import TestCase
from tools_studio.spec import AuthoringError

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "/studio/tools/echo/cases"
HALF = '''def run(n: int) -> float:
    """Half of it."""
    if n < 0:
        raise ValueError("n is negative")
    return n / 2
'''


@pytest.fixture
def half(make_tool: MakeTool) -> Tool:
    return make_tool("half", code=HALF, hitl_mode="DISABLED", published=False)


def run(tool: Tool, alice: User, case: Case) -> cases.Outcome:
    row = cases.add(tool, case)
    async_to_sync(cases.run)(row, tool, caller(alice, "studio"), 20.0)
    return cases.outcome_of(cases.rows(tool).get(pk=row.pk), tool)


@each_row(
    "case, state",
    [
        (Case("anything", {"n": 4}), "passed"),
        (Case("anything fails", {"n": -1}), "failed"),
        (Case("equals", {"n": 4}, "equals", 2.0), "passed"),
        (Case("equals another", {"n": 4}, "equals", 3.0), "failed"),
        (Case("equals another type", {"n": 4}, "equals", "2.0"), "failed"),
        (Case("contains", {"n": 3}, "contains", "1.5"), "passed"),
        (Case("contains not", {"n": 3}, "contains", "7"), "failed"),
        (Case("fails", {"n": -1}, "fails", "negative"), "passed"),
        (Case("fails somehow", {"n": -1}, "fails", ""), "passed"),
        (Case("fails otherwise", {"n": -1}, "fails", "too large"), "failed"),
        (Case("does not fail", {"n": 1}, "fails", "negative"), "failed"),
        (Case("is rejected", {"n": "x"}, "fails", "n:"), "passed"),
        (Case("is rejected unexpectedly", {"n": "x"}), "failed"),
    ],
    ids=lambda value: value.name if isinstance(value, Case) else "",
)
def test_a_run_is_judged_by_what_was_expected(half: Tool, alice: User, case: Case, state: str) -> None:
    assert run(half, alice, case).state == state


def test_what_differs_from_the_expected_result_is_shown(half: Tool, alice: User) -> None:
    found = run(half, alice, Case("equals", {"n": 4}, "equals", "2.0"))
    assert [(line.kind, line.text) for line in found.lines] == [("gone", '"2.0"'), ("come", "2.0")]


@pytest.mark.servers("the databases keep JSON each in its own way")
def test_keys_in_another_order_are_the_same_result(make_tool: MakeTool, alice: User) -> None:
    code = 'def run() -> dict[str, int]:\n    """Two."""\n    return {"b": 2, "a": 1}\n'
    tool = make_tool("two", code=code, hitl_mode="DISABLED")
    assert run(tool, alice, Case("equals", {}, "equals", {"a": 1, "b": 2})).state == "passed"


def test_a_passing_case_is_the_test_that_publishing_needs(half: Tool, alice: User) -> None:
    assert cases.passed(half) is None
    run(half, alice, Case("equals", {"n": 4}, "equals", 2.0))
    assert authoring.publish(half, SYSTEM).published


def test_an_edit_makes_every_outcome_stale(half: Tool, alice: User) -> None:
    run(half, alice, Case("a", {"n": 1}))
    changed = authoring.amend(half, {"code": HALF + "# other\n"}, signed_in(alice))
    assert cases.outcome_of(cases.rows(changed).get(), changed).state == "stale"


@each_row(
    "case, field",
    [
        (Case("", {}), "name"),
        (Case(" a", {}), "name"),
        (Case("a" * 121, {}), "name"),
        (Case("a\x00", {}), "name"),
        (Case("a", {}, "works"), "expectation"),
        (Case("a", {}, "anything", 1), "expected"),
        (Case("a", {}, "contains", ""), "expected"),
        (Case("a", {}, "contains", 1), "expected"),
        (Case("a", {}, "fails", None), "expected"),
        (Case("a", {}, "equals", "x" * 70_000), "expected"),
        (Case("a", {"n": "x" * 300_000}), "arguments"),
    ],
    ids=range(11),
)
def test_a_case_that_is_unsound_is_refused_by_field(half: Tool, case: Case, field: str) -> None:
    with pytest.raises(AuthoringError) as caught:
        cases.add(half, case)
    assert caught.value.errors.keys() == {field}
    assert not TestCase.objects.exists()


@pytest.mark.servers("row locks tell two at a time apart")
def test_a_name_is_given_once_and_a_tool_has_fifty_at_most(half: Tool) -> None:
    for n in range(50):
        cases.add(half, Case(f"case {n}", {}))
    with pytest.raises(AuthoringError, match="at most 50"):
        cases.add(half, Case("one more", {}))
    TestCase.objects.filter(name="case 49").delete()
    with pytest.raises(AuthoringError, match="already a test named 'case 1'"):
        cases.add(half, Case("case 1", {}))


# -- The page ----------------------------------------------------------------------------------------------------------


def test_the_page_adds_runs_and_deletes(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", hitl_mode="DISABLED")
    assert "No tests yet" in text(author.get(PAGE))
    for name, expected in (("right", "hi"), ("wrong", "ho")):
        form = {"name": name, "arguments": '{"text": "hi"}', "expectation": "equals", "expected": expected}
        assert author.post(f"{PAGE}/add", form).status_code == 302
    assert "0 of 2 passed" in text(author.get(PAGE))
    assert author.post(f"{PAGE}/run")["Location"] == PAGE
    page = text(author.get(PAGE))
    assert "1 of 2 passed" in page
    assert "The result differs." in page
    wrong = TestCase.objects.get(name="wrong")
    assert author.post(f"{PAGE}/{wrong.pk}/delete")["Location"] == PAGE
    assert "1 of 1 passed" in text(author.get(PAGE))


def test_one_case_can_be_run_alone(author: Client, make_tool: MakeTool) -> None:
    tool = make_tool("echo", hitl_mode="DISABLED")
    one = cases.add(tool, Case("one", {}))
    cases.add(tool, Case("other", {}))
    author.post(f"{PAGE}/run", {"case": str(one.pk)})
    assert ToolCall.objects.count() == 1
    for wrong in ("0", "x", "9" * 40):
        author.post(f"{PAGE}/run", {"case": wrong})
    assert ToolCall.objects.count() == 1


@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:one-funnel")
@pytest.mark.guarantee("gate:no-yes-no-run")
def test_the_cases_of_a_gated_tool_ask_and_count_as_waiting(author: Client, alice: User, make_tool: MakeTool) -> None:
    tool = make_tool("echo", hitl_mode="REQUIRED")
    cases.add(tool, Case("asks", {"text": "hi"}, "equals", "hi"))
    author.post(f"{PAGE}/run")
    call = ToolCall.objects.get()
    assert (call.status, call.caller_kind) == (Status.WAITING, "studio")
    page = text(author.get(PAGE))
    assert "0 of 1 passed, 1 waits for an answer" in page
    assert f'id="ask-{call.approval.pk}"' in page
    author.post(f"{PAGE}/run")
    assert ToolCall.objects.count() == 1
    decide.approve(call.approval.pk, signed_in(alice))
    async_to_sync(settled)(call.pk, 20.0)
    assert "1 of 1 passed" in text(author.get(PAGE))


def test_a_declined_case_is_neither_passed_nor_failed(author: Client, alice: User, make_tool: MakeTool) -> None:
    tool = make_tool("echo", hitl_mode="REQUIRED")
    cases.add(tool, Case("asks", {}))
    author.post(f"{PAGE}/run")
    decide.decline(ToolCall.objects.get().approval.pk, signed_in(alice))
    assert cases.outcome_of(cases.rows(tool).get(), tool).state == "unsettled"


def test_a_test_run_is_kept_as_a_case_with_what_it_came_to(author: Client, alice: User, half: Tool) -> None:
    page = "/studio/tools/half/cases/add"
    good, bad = tried(half, alice, n=4), tried(half, alice, n=-1)
    author.post(page, {"name": "half of 4", "call": str(good.pk), "expectation": "equals", "expected": ""})
    author.post(page, {"name": "negative", "call": str(bad.pk), "expectation": "fails", "expected": ""})
    first, second = TestCase.objects.order_by("name")
    assert cases.of(first) == Case("half of 4", {"n": 4}, "equals", 2.0)
    assert cases.of(second).expected == "ValueError: n is negative"
    rows = {row.name: cases.outcome_of(row, half).state for row in cases.rows(half)}
    assert rows == {"half of 4": "passed", "negative": "passed"}


def test_only_ones_own_test_runs_of_this_tool_are_kept(
    author: Client, bob: User, alice: User, half: Tool, make_tool: MakeTool
) -> None:
    other = make_tool("echo", code=ECHO, hitl_mode="DISABLED")
    for call_id in (tried(half, bob, n=1).pk, tried(other, alice).pk, "x", "0" * 32):
        page = author.post("/studio/tools/half/cases/add", {"name": "a", "call": str(call_id), "expectation": "equals"})
        assert page.status_code == 422
        assert "no such test run of yours" in text(page)
    assert not TestCase.objects.exists()


@each_row(
    "typed, said",
    [
        ({"arguments": "{"}, "It is not JSON"),
        ({"arguments": "[]"}, "Expected a JSON object"),
        ({"expectation": "works"}, "Expected one of"),
        ({"name": ""}, "Expected a name"),
        ({"expectation": "contains", "expected": ""}, "Expected a text"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_typed_case_is_said_and_stays_typed(
    author: Client, half: Tool, typed: dict[str, str], said: str
) -> None:
    form = {"name": "mine", "arguments": '{"n": 7}', "expectation": "anything", "expected": ""} | typed
    page = author.post("/studio/tools/half/cases/add", form)
    assert page.status_code == 422
    assert said in text(page)
    assert form["arguments"].replace('"', "&quot;") in text(page)


@each_row("typed, expected", [("2", 2), ('"2"', "2"), ("two", "two"), ('{"a": 1}', {"a": 1})])
def test_an_expected_result_is_json_or_else_a_text(author: Client, half: Tool, typed: str, expected: Any) -> None:
    form = {"name": f"it is {typed}", "arguments": "{}", "expectation": "equals", "expected": typed}
    author.post("/studio/tools/half/cases/add", form)
    assert TestCase.objects.get(name=form["name"]).expected == expected


def test_a_waiting_case_shows_what_became_of_it_without_a_reload(
    author: Client, alice: User, make_tool: MakeTool
) -> None:
    tool = make_tool("echo", hitl_mode="REQUIRED")
    row = cases.add(tool, Case("asks", {"text": "hi"}, "equals", "hi"))
    author.post(f"{PAGE}/run")
    assert author.get(f"{PAGE}/{row.pk}").status_code == 204
    call = ToolCall.objects.get()
    decide.approve(call.approval.pk, signed_in(alice))
    async_to_sync(settled)(call.pk, 20.0)
    fragment = text(author.get(f"{PAGE}/{row.pk}"))
    assert fragment.count(f'id="case-{row.pk}"') == 1
    assert "1 of 1 passed" in fragment
    assert author.get(f"{PAGE}/{row.pk + 1}").status_code == 404


def test_the_page_of_tests_says_where_the_tool_stands_and_publishes_it(
    author: Client, make_tool: MakeTool, alice: User
) -> None:
    tool = make_tool("echo", published=False)
    assert "Version 1, a draft" in text(author.get(PAGE))
    tried(tool, alice, text="hi")
    shown = text(author.get(PAGE))
    assert "Version 1, tested, not published" in shown
    assert "/studio/tools/echo/publish" in shown
