"""Is what stands in the brackets of `@tool(…)` right? Every fault in words that name the option."""

import inspect
from collections.abc import Iterator

from django.core.exceptions import ValidationError

from hitlchat.base.canonical import storable
from hitlchat.gate import prompt, schema
from hitlchat.gate.models import LONGEST_DEADLINE, TOOL_NAME, HitlMode
from hitlchat.project_tools.declaring import HIGHEST_RISK, Chosen, Declaration
from hitlchat.project_tools.signature import Signature

SHORTEST_TIMEOUT = 0.1
LONGEST_TIMEOUT = 86400
LONGEST_ORIGIN = 200
LONGEST = {"title": 120, "prompt": 500, "condition": 2000}


def name_of(declaration: Declaration) -> str:
    return declaration.chosen.name or getattr(declaration.function, "__name__", "")


def origin_of(declaration: Declaration) -> str:
    return f"Function {declaration.path} of this server's own project"


def problems(declaration: Declaration, found: Signature) -> list[str]:
    """Everything that is wrong, or nothing."""
    chosen = declaration.chosen
    return [
        *_name(declaration),
        *_words(chosen, found),
        *_mode(chosen),
        *_numbers(chosen),
        *_against(chosen, found),
    ]


def _name(declaration: Declaration) -> Iterator[str]:
    try:
        # Nothing but text: the validator would look at how anything else is written.
        TOOL_NAME(name_of(declaration) if isinstance(declaration.chosen.name, str) else "")
    except ValidationError as error:
        yield f"name: {error.messages[0]}"
    if len(origin_of(declaration)) > LONGEST_ORIGIN:
        yield f"the path of the function is too long: a sentence with it has more than {LONGEST_ORIGIN} characters"
    function = inspect.unwrap(declaration.function)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        yield "it yields; expected a function that returns"
    if inspect.iscoroutinefunction(function) and not inspect.iscoroutinefunction(declaration.function):
        yield "it is async, which a decorator between it and `@tool` hides; make the wrapper async too"


def _words(chosen: Chosen, found: Signature) -> Iterator[str]:
    for option, most in LONGEST.items():
        text = getattr(chosen, option)
        if not isinstance(text, str) or len(text) > most:
            yield f"{option}: expected text of at most {most:,} characters"
        elif storable(text) != text:
            yield f"{option}: it contains a character that cannot be kept, such as U+0000"
    if storable(found.description) != found.description:
        yield "the docstring contains a character that cannot be kept, such as U+0000"


def _mode(chosen: Chosen) -> Iterator[str]:
    if chosen.hitl is not None and chosen.hitl not in HitlMode.values:
        yield f"hitl: expected REQUIRED, CONDITIONAL or DISABLED, not {chosen.hitl!r}"
    if chosen.hitl == HitlMode.DISABLED and chosen.risk is None:
        yield "hitl: a tool that never asks must say its risk, from 0 to 5"
    if not _is_switch(chosen.signed_in_only):
        yield f"signed_in_only: expected True or False, not {chosen.signed_in_only!r}"
    if not chosen.condition:
        return
    if chosen.hitl != HitlMode.CONDITIONAL:
        yield "condition: it only counts with hitl='CONDITIONAL'"
    try:
        compile(f"(\n{chosen.condition}\n)", "condition", "eval")
    except (SyntaxError, ValueError) as error:
        yield f"condition: not a Python expression: {error}"


def _is_switch(value: object) -> bool:
    return isinstance(value, bool)


def _numbers(chosen: Chosen) -> Iterator[str]:
    if chosen.risk is not None and not _within(chosen.risk, 0, HIGHEST_RISK, whole=True):
        yield f"risk: expected a whole number from 0 to {HIGHEST_RISK}, not {chosen.risk!r}"
    if chosen.deadline_seconds is not None and not _within(chosen.deadline_seconds, 1, LONGEST_DEADLINE, whole=True):
        yield f"deadline_seconds: expected 1 second to 30 days, not {chosen.deadline_seconds!r}"
    if not _within(chosen.timeout_seconds, SHORTEST_TIMEOUT, LONGEST_TIMEOUT):
        yield f"timeout_seconds: expected {SHORTEST_TIMEOUT} seconds to a day, not {chosen.timeout_seconds!r}"


def _within(value: object, least: float, most: float, *, whole: bool = False) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return False
    return least <= value <= most


def _against(chosen: Chosen, found: Signature) -> Iterator[str]:
    try:
        if isinstance(chosen.prompt, str):
            prompt.check(chosen.prompt, found.input_schema["properties"])
        schema.check_schema(found.input_schema)
        schema.check_patterns(found.input_schema)
    except prompt.BadTemplate as error:
        yield f"prompt: {error}"
    except schema.BadSchema as error:
        yield f"its signature gives no valid schema: {error}"
