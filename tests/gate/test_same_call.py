"""What runs is what was shown: whatever is changed after the yes voids it, and the call says so."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from hitlchat.gate import disclosure
from hitlchat.gate.models import Approval, AuditEvent, Decision, Tool, ToolCall, new_id
from hitlchat.gate.perform import claim
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, admit, prepare
from tests.conftest import MakeTool, caller, signed_in
from tests.gate.asking import approval_of, approved, ask, events, fresh, recording, run, say_yes
from tests.gate.deciding_people import approver, rule
from tests.tables import each_row
from tools_studio import authoring
from tools_studio.spec import Draft

pytestmark = [pytest.mark.django_db, pytest.mark.guarantee("gate:same-call")]

OTHER_CODE = 'def run(text: str = "hello") -> str:\n    """Say something else."""\n    return text * 2\n'


def of_tool(**columns: Any) -> Callable[[ToolCall], object]:
    return lambda call: Tool.objects.filter(calls=call).update(**columns)


def of_call(**columns: Any) -> Callable[[ToolCall], object]:
    return lambda call: ToolCall.objects.filter(pk=call.pk).update(**columns)


def of_approval(**columns: Any) -> Callable[[ToolCall], object]:
    return lambda call: Approval.objects.filter(call=call).update(**columns)


def of_decision(**columns: Any) -> Callable[[ToolCall], object]:
    return lambda call: Decision.objects.filter(approval__call=call).update(**columns)


def of_disclosure(**parts: Any) -> Callable[[ToolCall], object]:
    """Changed together with its digest, as someone who knows how would."""

    def change(call: ToolCall) -> None:
        shown = {**approval_of(call).disclosure, **parts}
        of_approval(disclosure=shown, digest=disclosure.digest(shown))(call)

    return change


def other_tool(call: ToolCall) -> None:
    other = recording("other")
    of_call(tool=other, tool_name="other")(call)


def other_person(call: ToolCall) -> None:
    of_call(caller=User.objects.create_user("mallory"))(call)


def empty_record(call: ToolCall) -> None:
    of_approval(disclosure={}, digest=disclosure.digest({}))(call)
    of_decision(digest=disclosure.digest({}))(call)


CHANGES: dict[str, tuple[Callable[[ToolCall], object], str]] = {
    "arguments": (of_call(arguments={"text": "hello", "amount": 2}), "the arguments changed"),
    "arguments, to python the same": (of_call(arguments={"text": "hello", "amount": 1.0}), "the arguments changed"),
    "an argument more": (of_call(arguments={"text": "hello", "amount": 1, "to": "me"}), "the arguments changed"),
    "definition": (of_tool(definition_hash="e" * 64), "the tool's definition changed"),
    "name of the tool": (of_tool(name="other"), "the tool is a different one"),
    "the tool": (other_tool, "the tool is a different one"),
    "tool deleted": (lambda call: Tool.objects.filter(calls=call).delete(), "the tool was deleted"),
    "tool unpublished": (of_tool(published=False), "the tool was unpublished"),
    "source of the tool": (of_tool(source="raising"), "the tool's source changed"),
    "source of the call": (of_call(source="raising"), "the tool's source changed"),
    "caller": (other_person, "the caller changed"),
    "kind of caller": (of_call(caller_kind="mcp"), "the caller changed"),
    "conversation": (of_call(conversation_id=new_id()), "the conversation changed"),
    "conversation taken away": (of_call(conversation_id=None), "the conversation changed"),
    "rule of the call": (of_call(rule="other"), "the rules it was asked under changed on record"),
    "disclosure": (of_approval(disclosure={"arguments": {}}), "the record of what was shown was changed"),
    "digest of the question": (of_approval(digest="0" * 64), "the record of what was shown was changed"),
    "disclosure and digest": (of_disclosure(risk=0), "the approval was given for something else"),
    "arguments shown": (of_disclosure(arguments={"text": "bye"}), "the approval was given for something else"),
    "deadline shown": (
        of_disclosure(deadline="2099-01-01T00:00:00+00:00"),
        "the approval was given for something else",
    ),
    "digest of the answer": (of_decision(digest="0" * 64), "the approval was given for something else"),
    "an edit": (of_decision(edited_arguments={"text": "bye"}), "the approval was given for something else"),
    "the answer": (of_decision(verdict="decline"), "nobody approved it"),
    "no answer": (lambda call: Decision.objects.all().delete(), "nobody approved it"),
    "no record": (empty_record, "the record of what was shown cannot be read"),
}


@each_row("change,why", CHANGES.values(), ids=CHANGES)
@pytest.mark.guarantee("SR-9")
def test_a_yes_is_void_once_anything_is_changed(
    change: Callable[[ToolCall], object], why: str, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    call = approved(bob, tool)
    change(call)
    assert not run(call)
    assert entered == []
    assert (fresh(call).status, fresh(call).reason) == (Status.WITHDRAWN, f"Not run: {why}.")
    assert AuditEvent.objects.get(call=call, name="call.withdrawn").data["reason"] == why


@pytest.mark.guarantee("SR-9")
@each_row("which", [0, 1], ["the first", "the last"])
def test_each_of_several_yeses_is_for_this_call(
    which: int, alice: User, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    people = [approver("ann"), approver("ben")]
    rule(tool, alice, quorum=2)
    call = ask(bob, tool)
    for person in people:
        say_yes(person, call)
    Decision.objects.filter(pk=Decision.objects.all()[which].pk).update(digest="0" * 64)
    assert not run(call)
    assert entered == []
    assert fresh(call).reason == "Not run: the approval was given for something else."


@pytest.mark.guarantee("SR-9")
def test_a_yes_moved_to_another_call_is_void(bob: User, tool: Tool, entered: list[ToolCall]) -> None:
    yes, other = approved(bob, tool), ask(bob, tool)
    approval_of(other).delete()
    Approval.objects.filter(call=yes).update(call=other)
    ToolCall.objects.filter(pk=other.pk).update(status=Status.APPROVED)
    assert (run(yes), run(other)) == (False, False)
    assert fresh(other).reason == "Not run: the call is a different one."
    assert fresh(yes).reason == "Not run: the record of what was shown cannot be read."
    assert entered == []


@pytest.mark.guarantee("gate:no-yes-no-run")
@each_row("forged", [Status.APPROVED, Status.ALLOWED])
def test_a_status_alone_is_no_yes(forged: Status, waiting: ToolCall, entered: list[ToolCall]) -> None:
    ToolCall.objects.filter(pk=waiting.pk).update(status=forged)
    assert not run(waiting)
    assert fresh(waiting).status == Status.WITHDRAWN
    assert entered == []


@pytest.mark.guarantee("SR-9")
def test_an_edited_yes_is_void_once_the_arguments_are_others(bob: User, waiting: ToolCall) -> None:
    say_yes(bob, waiting, edited={"text": "edited"})
    ToolCall.objects.filter(pk=waiting.pk).update(arguments={"text": "hello", "amount": 1})
    assert not run(waiting)
    assert fresh(waiting).reason == "Not run: the arguments changed."


def test_nothing_changed_is_nothing_void(bob: User, tool: Tool, entered: list[ToolCall]) -> None:
    call = approved(bob, tool)
    Tool.objects.update(title="Other", prompt_template="Other?", risk_level=0)
    assert run(call)
    assert len(entered) == 1


def test_what_was_asked_in_older_words_is_answered_and_runs(bob: User, entered: list[ToolCall]) -> None:
    call = ask(bob, recording())
    words = "Run 'refund' with arguments {}?"
    of_disclosure(prompt=words, promptPieces=[[words, False]])(call)
    of_approval(prompt=words)(call)
    say_yes(bob, call)
    assert run(call)
    assert (len(entered), approval_of(call).prompt) == (1, words)


@each_row("change", [of_tool(definition_hash="e" * 64), of_tool(name="x"), of_tool(hitl_mode="REQUIRED")], ids=range(3))
def test_a_permission_is_void_too_once_the_tool_is_another(
    change: Callable[[ToolCall], object], bob: User, entered: list[ToolCall]
) -> None:
    call = ask(bob, recording(mode="DISABLED"))
    change(call)
    assert not run(call)
    assert fresh(call).status == Status.WITHDRAWN
    assert entered == []


@each_row("act", ["change", "delete", "unpublish"])
@each_row("answered", [False, True], ids=["waiting", "approved"])
@pytest.mark.guarantee("SR-14")
def test_what_waits_is_withdrawn_when_its_author_touches_the_tool(
    act: str, answered: bool, alice: User, bob: User, make_tool: MakeTool
) -> None:
    tool = make_tool()
    call = approved(bob, tool) if answered else ask(bob, tool)
    match act:
        case "change":
            authoring.change(tool, Draft(name="echo", code=OTHER_CODE, hitl_mode="REQUIRED"), signed_in(alice))
        case "delete":
            authoring.delete(tool, signed_in(alice))
        case "unpublish":
            authoring.unpublish(tool, signed_in(alice))
    assert (fresh(call).status, events(call)[-1]) == (Status.WITHDRAWN, "call.withdrawn")
    assert not run(call)


@pytest.mark.guarantee("SR-9")
def test_a_tool_of_the_studio_runs_what_was_shown_and_nothing_newer(bob: User, make_tool: MakeTool) -> None:
    tool = make_tool()
    first, second = approved(bob, tool, {"text": "a"}), approved(bob, tool, {"text": "b"})
    assert run(first)
    assert fresh(first).result == "a"
    Tool.objects.filter(pk=tool.pk).update(definition_hash="e" * 64)
    assert not run(second)
    assert fresh(second).result is None


@pytest.mark.guarantee("gate:no-yes-no-run", "SR-14")
def test_a_verdict_of_a_rule_that_was_changed_meanwhile_does_not_run(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("echo", hitl_mode="DISABLED")
    prepared = async_to_sync(prepare)(CallRequest("echo", {"text": "x"}, caller(alice)))
    Tool.objects.filter(pk=tool.pk).update(hitl_mode="CONDITIONAL", condition="True")
    call = admit(prepared)
    assert claim(call.pk) is None
    assert ToolCall.objects.get(pk=call.pk).reason == "Not run: the rule that allowed it was changed."
