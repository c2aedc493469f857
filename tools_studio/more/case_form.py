"""A test case as it is typed into a form, or taken from a test run that was just made."""

from typing import Any

from django.core.exceptions import ValidationError
from django.http import QueryDict

from hitlchat.base import canonical
from hitlchat.gate.models import CallerKind, Tool, ToolCall
from hitlchat.gate.status import Status
from tools_studio import argument_form
from tools_studio.argument_form import BadInput
from tools_studio.cases import Case
from tools_studio.drafts import AuthoringError
from tools_studio.models import Expectation


def empty(tool: Tool) -> dict[str, str]:
    """What the form for a new case begins with."""
    return {"arguments": canonical.pretty(tool.example or {}, indent=2), "expectation": Expectation.EQUALS.value}


def read(tool: Tool, user_id: int, typed: QueryDict) -> tuple[Case, ToolCall | None]:
    """The case, and the test run that it was made from, if `call` names one. AuthoringError.

    `arguments` is JSON; without it they are read from the fields of a test pane, and else from the run.
    """
    call = _call(tool, user_id, typed.get("call", ""))
    expectation = typed.get("expectation", "") or Expectation.ANYTHING.value
    case = Case(
        name=typed.get("name", "").strip(),
        arguments=_arguments(tool, call, typed),
        expectation=expectation,
        expected=_expected(tool, call, expectation, typed),
    )
    return case, call if call is not None and call.arguments == case.arguments else None


def _call(tool: Tool, user_id: int, call_id: str) -> ToolCall | None:
    if not call_id:
        return None
    try:
        return ToolCall.objects.get(pk=call_id, tool=tool, caller_id=user_id, caller_kind=CallerKind.STUDIO)
    except (ToolCall.DoesNotExist, ValidationError) as error:
        raise AuthoringError({"call": "There is no such test run of yours."}) from error


def _arguments(tool: Tool, call: ToolCall | None, typed: QueryDict) -> dict[str, Any]:
    if "arguments" in typed:
        return _object(typed.get("arguments", ""))
    if call is not None:
        return dict(call.arguments)
    try:
        return argument_form.arguments(tool.input_schema, typed)
    except BadInput as error:
        raise AuthoringError({"arguments": str(error)}) from error


def _object(text: str) -> dict[str, Any]:
    try:
        value = canonical.loads(text or "{}")
    except canonical.NotJson as error:
        raise AuthoringError({"arguments": f"It is not JSON: {error}."}) from error
    if not isinstance(value, dict):
        raise AuthoringError({"arguments": 'Expected a JSON object such as {"text": "hello"}.'})
    return value


def _expected(tool: Tool, call: ToolCall | None, expectation: str, typed: QueryDict) -> Any:
    text = typed.get("expected", "").replace("\r\n", "\n")
    if expectation == Expectation.ANYTHING:
        return None
    if not text and call is not None:
        return _came(call, expectation)
    return _value(tool, text) if expectation == Expectation.EQUALS else text


def _came(call: ToolCall, expectation: str) -> Any:
    """What that run came to, to be expected from now on."""
    if expectation == Expectation.FAILS:
        return str((call.error or {}).get("message", "")) or (call.reason if call.status == Status.REJECTED else "")
    if call.status != Status.SUCCEEDED:
        raise AuthoringError({"expected": "That test run gave no result that could be expected."})
    return call.result if expectation == Expectation.EQUALS else ""


def _value(tool: Tool, text: str) -> Any:
    """JSON where it is JSON, unless the tool says that it gives text; everything else is the text itself."""
    if (tool.output_schema or {}).get("type") == "string":
        return text
    try:
        return canonical.loads(text)
    except canonical.NotJson:
        return text
