"""The one entrance: what becomes of a request."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.base import canonical
from hitlchat.gate.models import Approval, AuditEvent, Tool, ToolCall
from hitlchat.gate.status import Status
from tests.gate.asking import approval_of, ask, events, fresh, recording, run
from tests.tables import each_row

pytestmark = pytest.mark.django_db

DEEP = "[" * 500 + "]" * 500
ODD = {
    "too many digits": '{"text": "a", "amount": ' + "9" * 5000 + "}",
    "infinite": '{"text": "a", "amount": 1e999}',
    "a key twice": '{"text": "a", "text": "b"}',
    "no object": '["a"]',
    "no JSON": "text=a",
    "nested deeply": '{"text": ' + DEEP + "}",
    "NUL in a key": '{"text": "a", "\\u0000": 1}',
    "half a character in a key": '{"text": "a", "\\ud800": 1}',
    "too long": '{"text": "' + "x" * 300_000 + '"}',
    "NaN": {"text": float("nan")},
    "no value of JSON": {"text": object()},
}


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_gated_call_waits_and_is_not_run(bob: User, tool: Tool, entered: list[ToolCall]) -> None:
    call = ask(bob, tool)
    assert call.status == Status.WAITING
    assert approval_of(call).disclosure["arguments"] == {"text": "hello", "amount": 1}
    assert not run(call)
    assert entered == []


@pytest.mark.guarantee("gate:fail-closed")
@pytest.mark.servers("SQLite enforces no limits of columns and numbers")
def test_arguments_that_do_not_fit_are_rejected_and_nobody_is_asked(
    subtests: pytest.Subtests, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    for case, arguments in ODD.items():
        with subtests.test(case=case):
            call = fresh(ask(bob, tool, arguments))
            assert call.status == Status.REJECTED
            assert call.reason
            assert not Approval.objects.exists()
            assert not run(call)
            assert entered == []


@pytest.mark.servers("SQLite enforces no limits of columns and numbers")
def test_an_unknown_tool_is_rejected_by_its_exact_name(subtests: pytest.Subtests, bob: User, tool: Tool) -> None:
    for name in ["nothing", "", "ref\x00und", "\ud800", "x" * 5000, "REFUND", "refund "]:
        with subtests.test(name=name):
            call = fresh(ask(bob, Tool(name=name)))
            assert (call.status, call.tool) == (Status.REJECTED, None)
            assert len(call.reason) < 200


@each_row("request_", [{"among": []}, {"among": ["other"]}])
def test_a_tool_out_of_the_callers_reach_is_unknown_to_it(request_: dict[str, Any], bob: User, tool: Tool) -> None:
    assert ask(bob, tool, **request_).status == Status.REJECTED


@each_row("kind,expected", [("chat", "rejected"), ("api", "rejected"), ("mcp", "rejected"), ("studio", "waiting")])
def test_a_draft_is_there_for_its_author_alone(kind: str, expected: str, bob: User) -> None:
    assert ask(bob, recording(published=False), kind=kind).status == expected


@pytest.mark.guarantee("gate:no-yes-no-run")
@each_row("kind", ["chat", "studio", "api", "mcp"])
def test_whoever_calls_a_gated_tool_waits(kind: str, bob: User, tool: Tool) -> None:
    call = ask(bob, tool, kind=kind)
    assert call.status == Status.WAITING
    assert approval_of(call).disclosure["caller"] == {"kind": kind, "user": bob.pk, "name": "bob"}


@each_row("arguments", [{"text": "\ud800"}, {"a": [{"b": "x\udfff"}]}, {"\ud800": 1}, '{"a": "\\ud83d"}'])
@pytest.mark.servers("SQLite enforces no limits of columns and numbers")
def test_half_a_character_is_refused_before_anybody_is_asked(arguments: Any, bob: User) -> None:
    call = ask(bob, recording(input_schema={"type": "object"}), arguments)
    assert call.status == Status.REJECTED
    assert "expected whole characters" in call.reason


@each_row("value", ["\x00", "\u202e"])
@pytest.mark.servers("SQLite enforces no limits of columns and numbers")
def test_text_that_a_database_cannot_keep_is_asked_about_all_the_same(value: str, bob: User) -> None:
    tool = recording(prompt_template="Say {args.text}?", input_schema={"type": "object"})
    call = ask(bob, tool, {"text": value}, user_prompt=value, model_call_id=value)
    assert fresh(call).status == Status.WAITING
    assert fresh(call).arguments == {"text": value}


@pytest.mark.servers("SQLite enforces no limits of columns and numbers")
def test_what_a_rejected_call_brought_is_kept_for_the_record(bob: User, tool: Tool) -> None:
    assert fresh(ask(bob, tool, {"wrong": 1})).arguments == {"wrong": 1}
    unreadable = fresh(ask(bob, tool, "x" * 5000)).arguments
    assert unreadable == {"(unreadable)": "x" * 2000, "(characters)": 5000}


@pytest.mark.guarantee("audit:complete")
@each_row("mode,name", [("REQUIRED", "call.waiting"), ("DISABLED", "call.allowed")])
def test_every_call_enters_the_record_with_one_event(mode: str, name: str, bob: User) -> None:
    call = ask(bob, recording(mode=mode))
    event = AuditEvent.objects.get(call=call)
    assert (event.name, event.actor_id, event.means) == (name, bob.pk, "system")
    assert event.data["reason"] == call.reason != ""
    assert events(ask(bob, Tool(name="none"))) == ["call.rejected"]


@pytest.mark.guarantee("SR-7")
def test_the_arguments_that_run_are_those_on_the_card(bob: User, tool: Tool, entered: list[ToolCall]) -> None:
    Tool.objects.update(hitl_mode="DISABLED")
    call = ask(bob, tool, '{"text": "a"}')
    assert run(call)
    assert [canonical.dumps(each.arguments) for each in entered] == ['{"amount":1,"text":"a"}']


def test_the_master_switch_lets_everything_run_and_it_is_on_record(bob: User, tool: Tool, settings: Settings) -> None:
    settings.HITL_ENABLED = False
    call = ask(bob, tool)
    assert call.status == Status.ALLOWED
    assert "HITL_ENABLED=0" in AuditEvent.objects.get(call=call).data["reason"]
    assert run(call)


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_what_the_master_switch_allowed_does_not_start_once_it_is_on_again(
    bob: User, tool: Tool, settings: Settings, entered: list[ToolCall]
) -> None:
    settings.HITL_ENABLED = False
    call = ask(bob, tool)
    settings.HITL_ENABLED = True
    assert not run(call)
    assert fresh(call).reason == "Not run: the tool asks every time now."
    assert entered == []
