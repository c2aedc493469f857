"""The functions that are tools: everything that has to be right about one before the server starts."""

import inspect
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from django.core.checks import CheckMessage
from django.core.checks import Warning as Caution
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.utils.module_loading import autodiscover_modules

from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.sentences import translatable
from hitlchat.gate import policy, prompt, schema, spec
from hitlchat.gate.models import LONGEST_DEADLINE, TOOL_NAME, HitlMode
from hitlchat.project_tools import DECLARED, HIGHEST_RISK, Declaration, Function, signature
from hitlchat.project_tools.signature import Signature, SignatureError

SOURCE = "project"
OUTSIDE = "Runs in the server itself with all its rights, not in the sandbox, because it is code of this project."
DESTRUCTIVE = "Can permanently delete data."
SHORTEST_TIMEOUT = 0.1
LONGEST_TIMEOUT = 86400
LONGEST_ORIGIN = 200
LONGEST = {name.removesuffix("_template"): most for name, most in spec.LONGEST.items()}
_tools: dict[str, "ProjectTool"] = {}


@dataclass(frozen=True)
class Beforehand:
    """A function that is called before anybody is asked: the preview, or the condition.

    `caller` names the parameter that gets who called, if there is one.
    """

    function: Function
    code: str
    caller: str | None


@dataclass(frozen=True, kw_only=True)
class ProjectTool(Declaration):
    signature: Signature
    code: str
    line: int
    previewing: Beforehand | None
    judging: Beforehand | None

    @property
    def origin(self) -> str:
        return translatable(f"Function {self.path} of this server's own project")

    @property
    def risk(self) -> int:
        return HIGHEST_RISK if self.chosen.destructive or self.chosen.risk is None else self.chosen.risk

    @property
    def hitl_mode(self) -> HitlMode:
        return HitlMode(self.chosen.hitl or (HitlMode.REQUIRED if self.risk else HitlMode.DISABLED))

    @property
    def condition(self) -> str:
        """Return it as people read it: an expression, or the name of a function."""
        condition: Any = self.chosen.condition
        return f"{condition.__module__}.{condition.__qualname__}()" if inspect.isfunction(condition) else condition

    @cached_property
    def definition_hash(self) -> str:
        """Return a hash of all that models and people read of it, and of the source of its own functions."""
        return canonical.sha256(
            {
                "source": SOURCE,
                "name": self.name,
                "description": self.signature.description,
                "input": self.signature.input_schema,
                "output": self.signature.output_schema,
                "path": self.path,
                "code": self.code,
                "preview": self.previewing.code if self.previewing else None,
                **({"condition": self.judging.code} if self.judging else {}),
            }
        )

    @property
    def columns(self) -> dict[str, Any]:
        chosen = self.chosen
        return {
            "name": self.name,
            "title": chosen.title,
            "description": self.signature.description,
            "input_schema": self.signature.input_schema,
            "output_schema": self.signature.output_schema,
            "source": SOURCE,
            "origin": self.origin,
            "hitl_mode": self.hitl_mode.value,
            "prompt_template": chosen.prompt,
            "condition": self.condition,
            "deadline_seconds": chosen.deadline_seconds,
            "signed_in_only": chosen.signed_in_only,
            "risk_level": self.risk,
            "facts": [OUTSIDE, DESTRUCTIVE] if chosen.destructive else [OUTSIDE],
            "published": True,
            "definition_hash": self.definition_hash,
        }


def load() -> None:
    """Import `tools.py` of every installed app and look at what it declares. ImproperlyConfigured names all faults."""
    autodiscover_modules("tools")
    names = Counter(each.name for each in DECLARED)
    made, problems = [], []
    for declaration in DECLARED:
        found, wrong = _look(declaration, names)
        problems += [f"{declaration.path}: {text}" for text in wrong]
        made += [found] if found else []
    if problems:
        raise ImproperlyConfigured("\n".join(["Functions that cannot be tools:", *problems]))
    _tools.clear()
    _tools.update((each.name, each) for each in made)


def tools() -> Mapping[str, ProjectTool]:
    """The functions that are tools, by the name of the tool."""
    return MappingProxyType(_tools)


def check_project_tools(**_: Any) -> list[CheckMessage]:
    """Warn of each function at the highest level that asks nobody."""
    hint = "Give it hitl='REQUIRED' to require approval."
    return [
        Caution(translatable(f"{made.path} (L{made.risk}) runs without asking anybody."), hint=hint, id="hitlchat.W003")
        for made in tools().values()
        if made.risk == HIGHEST_RISK and made.hitl_mode == HitlMode.DISABLED
    ]


def _look(declaration: Declaration, names: Counter[str]) -> tuple[ProjectTool | None, list[str]]:
    function, chosen = declaration.function, declaration.chosen
    try:
        code, line = _code(function, "below `@tool`")
        found = signature.read(function)
        preview = _beforehand("preview", chosen.preview, found)
        judging = _beforehand("condition", chosen.condition, found) if inspect.isroutine(chosen.condition) else None
    except SignatureError as error:
        return None, [str(error)]
    made = ProjectTool(function, chosen, signature=found, code=code, line=line, previewing=preview, judging=judging)
    problems = [text for check in (_name, _words, _mode, _numbers, _against) for text in check(made)]
    if names[made.name] > 1:
        problems.append(f"the name {made.name!r} is given to {names[made.name]} functions; `name=` gives another one")
    return made, problems


def _name(made: ProjectTool) -> Iterator[str]:
    try:
        # Nothing but text: the validator would look at how anything else is written.
        TOOL_NAME(made.name if isinstance(made.chosen.name, str) else "")
    except ValidationError as error:
        yield f"name: {error.messages[0]}"
    if len(made.origin) > LONGEST_ORIGIN:
        yield f"the path of the function is too long: a sentence with it has more than {LONGEST_ORIGIN} characters"
    function = inspect.unwrap(made.function)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        yield "the function yields; expected a function that returns"
    if inspect.iscoroutinefunction(function) and not inspect.iscoroutinefunction(made.function):
        yield "the function is async, but a decorator between it and `@tool` hides this; make the wrapper async too"


def _words(made: ProjectTool) -> Iterator[str]:
    for option, most in LONGEST.items():
        text = made.condition if option == "condition" else getattr(made.chosen, option)
        if not isinstance(text, str) or len(text) > most:
            yield f"{option}: expected text of at most {most:,} characters"
        elif storable(text) != text:
            yield f"{option}: contains a character that cannot be stored, such as U+0000"
    if storable(made.signature.description) != made.signature.description:
        yield "the docstring contains a character that cannot be stored, such as U+0000"


def _mode(made: ProjectTool) -> Iterator[str]:
    chosen = made.chosen
    if chosen.hitl is not None and chosen.hitl not in HitlMode.values:
        yield f"hitl: expected REQUIRED, CONDITIONAL or DISABLED, not {chosen.hitl!r}"
    if chosen.hitl == HitlMode.DISABLED and chosen.risk is None:
        yield "hitl: a tool that never asks must say its risk, from 0 to 5"
    switch: Any = chosen.signed_in_only
    if not isinstance(switch, bool):
        yield f"signed_in_only: expected True or False, not {chosen.signed_in_only!r}"
    if chosen.condition and chosen.hitl != HitlMode.CONDITIONAL:
        yield "condition: it only counts with hitl='CONDITIONAL'"


def _numbers(made: ProjectTool) -> Iterator[str]:
    chosen = made.chosen
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


def _against(made: ProjectTool) -> Iterator[str]:
    chosen, found = made.chosen, made.signature
    try:
        if isinstance(chosen.prompt, str):
            prompt.check(chosen.prompt, found.input_schema["properties"])
        written = chosen.condition if isinstance(chosen.condition, str) else ""
        if problem := policy.misread_condition(written, found.input_schema):
            yield f"condition: {problem[:1].lower()}{problem[1:]}"
        schema.check_schema(found.input_schema)
        schema.check_patterns(found.input_schema)
    except prompt.BadTemplate as error:
        yield f"prompt: {error}"
    except schema.BadSchema as error:
        yield f"its signature gives no valid schema: {error}"


def _beforehand(option: str, function: Any, of: Signature) -> Beforehand | None:
    if function is None:
        return None
    code, _ = _code(function, f"in `{option}=`")
    try:
        found = signature.read(function)
    except SignatureError as error:
        raise SignatureError(f"{option}: {error}") from error
    if found.input_schema["properties"].keys() != of.input_schema["properties"].keys():
        raise SignatureError(f"{option}: expected the same parameters as the function itself")
    return Beforehand(function, code, found.caller)


def _code(function: object, where: str) -> tuple[str, int]:
    """The text of a function, and the line it begins at. SignatureError."""
    if not inspect.isfunction(function):
        raise SignatureError(f"expected a function {where}")
    try:
        lines, line = inspect.getsourcelines(inspect.unwrap(function))
    except OSError as error:
        raise SignatureError(f"its source cannot be read, so a change could not be noticed: {error}") from error
    return "".join(lines), line
