"""What is wrong with a declaration stops the start, and is named with its function."""

from typing import Annotated, Any

import pytest
from django.apps import apps
from django.core.checks.registry import registry
from django.core.exceptions import ImproperlyConfigured
from pydantic import Field

from hitlchat.project_tools import DECLARED, catalogue, tool
from hitlchat.project_tools.catalogue import check_project_tools

pytestmark = pytest.mark.usefixtures("declared")


def work(text: str) -> str:
    """Do it."""
    return text


def other_preview(number: int) -> str:
    return ""


def yielding(text: str) -> Any:
    yield text


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "risk too high": ({"risk": 6}, "risk: expected a whole number from 0 to 5, not 6"),
    "risk no number": ({"risk": "low"}, "risk: expected a whole number from 0 to 5, not 'low'"),
    "risk true": ({"risk": True}, "risk: expected a whole number from 0 to 5, not True"),
    "mode": ({"hitl": "NEVER"}, "hitl: expected REQUIRED, CONDITIONAL or DISABLED, not 'NEVER'"),
    "never asks, risk not said": ({"hitl": "DISABLED"}, "hitl: a tool that never asks must say its risk"),
    "condition without mode": ({"condition": "True"}, "condition: it only counts with hitl='CONDITIONAL'"),
    "condition no expression": ({"hitl": "CONDITIONAL", "condition": "if"}, "condition: not a Python expression"),
    "condition that fails": ({"hitl": "CONDITIONAL", "condition": "args.x"}, 'condition: write args["x"], not args.x.'),
    "condition no text": ({"hitl": "CONDITIONAL", "condition": 5}, "condition: expected text"),
    "signed in no truth": ({"signed_in_only": "no"}, "signed_in_only: expected True or False, not 'no'"),
    "name": ({"name": "re fund"}, "name: Use 1 to 64 letters"),
    "name no text": ({"name": 5}, "name: "),
    "title": ({"title": "x" * 121}, "title: expected text of at most 120 characters"),
    "title no text": ({"title": 5}, "title: expected text"),
    "prompt": ({"prompt": "Do {args.txt}?"}, "prompt: {args.txt} is unknown here"),
    "prompt with NUL": ({"prompt": "\x00"}, "prompt: contains a character that cannot be stored"),
    "deadline": ({"deadline_seconds": 0}, "deadline_seconds: expected 1 second to 30 days, not 0"),
    "timeout": ({"timeout_seconds": 0}, "timeout_seconds: expected 0.1 seconds to a day, not 0"),
    "preview no function": ({"preview": "refund_preview"}, "expected a function in `preview=`"),
    "preview of something else": ({"preview": other_preview}, "preview: expected the same parameters"),
}


def test_a_wrong_option_is_named_with_its_function() -> None:
    for case, (chosen, words) in WRONG.items():
        DECLARED.clear()
        tool(**chosen)(work)
        with pytest.raises(ImproperlyConfigured) as caught:
            catalogue.load()
        assert f"tests.project_tools.test_declaring.work: {words}" in str(caught.value), case
        assert not catalogue.tools(), case


def test_a_pattern_that_takes_too_long_to_compile_is_named_with_its_parameter() -> None:
    def coded(code: Annotated[str, Field(pattern=r"\w{100}")]) -> str:
        return code

    tool(risk=1)(coded)
    with pytest.raises(
        ImproperlyConfigured, match=r"properties\.code: its pattern is too costly: expected at most 500"
    ):
        catalogue.load()


def test_all_faults_are_told_at_once_and_stop_the_start() -> None:
    tool(risk=9, title="x" * 200)(work)
    tool(risk=1)(yielding)
    with pytest.raises(ImproperlyConfigured) as caught:
        apps.get_app_config("project_tools").ready()
    assert [word in str(caught.value) for word in ("risk:", "title:", "the function yields")] == [True] * 3


def test_an_option_that_does_not_exist_is_refused_where_it_stands() -> None:
    with pytest.raises(TypeError, match="hilt"):
        tool(hilt="REQUIRED")  # type: ignore[call-overload]


def test_a_name_is_given_once() -> None:
    tool(risk=1)(work)
    tool(risk=1, name="work")(other_preview)
    with pytest.raises(ImproperlyConfigured, match="the name 'work' is given to 2 functions"):
        catalogue.load()


def test_only_a_function_is_a_tool() -> None:
    tool(risk=1)(type("Thing", (), {"__module__": "shop.tools"}))
    with pytest.raises(ImproperlyConfigured, match=r"shop.tools.Thing: expected a function below `@tool`"):
        catalogue.load()


def test_a_function_without_source_is_refused() -> None:
    namespace: dict[str, Any] = {"__name__": "shop.tools"}
    exec("def made(text: str) -> str:\n    return text", namespace)
    tool(risk=1)(namespace["made"])
    with pytest.raises(ImproperlyConfigured, match="its source cannot be read"):
        catalogue.load()


MODES: list[tuple[dict[str, Any], int, str]] = [
    ({}, 5, "REQUIRED"),
    ({"risk": 0}, 0, "DISABLED"),
    ({"risk": 1}, 1, "REQUIRED"),
    ({"risk": 3, "hitl": "DISABLED"}, 3, "DISABLED"),
    ({"risk": 0, "hitl": "REQUIRED"}, 0, "REQUIRED"),
    ({"risk": 2, "hitl": "CONDITIONAL"}, 2, "CONDITIONAL"),
    ({"risk": 1, "destructive": True}, 5, "REQUIRED"),
]


def test_the_mode_follows_from_the_risk_unless_it_is_stated() -> None:
    for chosen, risk, mode in MODES:
        DECLARED.clear()
        tool(**chosen)(work)
        catalogue.load()
        made = catalogue.tools()["work"]
        assert (made.risk, made.hitl_mode) == (risk, mode), chosen


def test_the_code_says_whether_a_signed_in_person_must_decide() -> None:
    tool(risk=1, signed_in_only=True)(work)
    catalogue.load()
    assert catalogue.tools()["work"].columns["signed_in_only"] is True


def test_the_bare_decorator_is_the_strictest() -> None:
    assert tool(work) is work
    catalogue.load()
    made = catalogue.tools()["work"]
    assert (made.risk, made.hitl_mode) == (5, "REQUIRED")


def test_what_never_asks_at_the_highest_risk_is_pointed_out() -> None:
    tool(risk=5, hitl="DISABLED")(work)
    catalogue.load()
    assert [found.id for found in check_project_tools()] == ["hitlchat.W003"]
    registered: list[object] = [*registry.get_checks()]
    assert check_project_tools in registered
