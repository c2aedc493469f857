"""The functions that are tools, looked at: everything that has to be right about one before the server starts."""

import inspect
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules

from hitlchat.base import canonical
from hitlchat.gate.models import HitlMode
from hitlchat.project_tools import options, signature
from hitlchat.project_tools.declaring import DECLARED, HIGHEST_RISK, Chosen, Declaration, Function
from hitlchat.project_tools.signature import Signature, SignatureError

SOURCE = "project"
MODULE = "tools"
OUTSIDE = "Runs in the server itself with all of its powers, not in the sandbox: it is code of this project."
DESTRUCTIVE = "Can destroy what cannot be brought back."


@dataclass(frozen=True)
class ProjectPreview:
    """`caller` names the parameter that gets who called, if there is one."""

    function: Function
    code: str
    caller: str | None


@dataclass(frozen=True)
class ProjectTool:
    declaration: Declaration
    signature: Signature
    code: str
    line: int
    previewing: ProjectPreview | None

    @property
    def name(self) -> str:
        return options.name_of(self.declaration)

    @property
    def chosen(self) -> Chosen:
        return self.declaration.chosen

    @property
    def path(self) -> str:
        return self.declaration.path

    @property
    def module(self) -> str:
        return self.declaration.function.__module__

    @property
    def risk(self) -> int:
        return HIGHEST_RISK if self.chosen.destructive or self.chosen.risk is None else self.chosen.risk

    @property
    def hitl_mode(self) -> HitlMode:
        return HitlMode(self.chosen.hitl or (HitlMode.REQUIRED if self.risk else HitlMode.DISABLED))

    @cached_property
    def definition_hash(self) -> str:
        """Over what a model or a person is told of it, and the text of its functions themselves (not of what they
        call)."""
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
            }
        )

    @property
    def columns(self) -> dict[str, Any]:
        """Its row in the gate."""
        chosen = self.chosen
        return {
            "name": self.name,
            "title": chosen.title,
            "description": self.signature.description,
            "input_schema": self.signature.input_schema,
            "output_schema": self.signature.output_schema,
            "source": SOURCE,
            "origin": options.origin_of(self.declaration),
            "hitl_mode": self.hitl_mode.value,
            "prompt_template": chosen.prompt,
            "condition": chosen.condition,
            "deadline_seconds": chosen.deadline_seconds,
            "signed_in_only": chosen.signed_in_only,
            "risk_level": self.risk,
            "facts": [OUTSIDE, DESTRUCTIVE] if chosen.destructive else [OUTSIDE],
            "published": True,
            "definition_hash": self.definition_hash,
        }


_tools: dict[str, ProjectTool] = {}


def load() -> None:
    """Import `tools.py` of every installed app and look at what it declares. ImproperlyConfigured names all faults."""
    autodiscover_modules(MODULE)
    names = Counter(options.name_of(each) for each in DECLARED)
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


def _look(declaration: Declaration, names: Counter[str]) -> tuple[ProjectTool | None, list[str]]:
    try:
        code, line = _code(declaration.function, "below `@tool`")
        found = signature.read(declaration.function)
        preview = _preview(declaration.previewing, found)
    except SignatureError as error:
        return None, [str(error)]
    made = ProjectTool(declaration, found, code, line, preview)
    problems = options.problems(declaration, found)
    if names[made.name] > 1:
        problems.append(f"the name {made.name!r} is given to {names[made.name]} functions; `name=` gives another one")
    return made, problems


def _preview(function: Function | None, of: Signature) -> ProjectPreview | None:
    if function is None:
        return None
    code, _ = _code(function, "in `preview=`")
    try:
        found = signature.read(function)
    except SignatureError as error:
        raise SignatureError(f"preview: {error}") from error
    if found.input_schema["properties"].keys() != of.input_schema["properties"].keys():
        raise SignatureError("preview: expected the same parameters as the function itself")
    return ProjectPreview(function, code, found.caller)


def _code(function: object, where: str) -> tuple[str, int]:
    """The text of a function, and the line it begins at. SignatureError."""
    if not inspect.isfunction(function):
        raise SignatureError(f"expected a function {where}")
    try:
        lines, line = inspect.getsourcelines(inspect.unwrap(function))
    except OSError as error:
        raise SignatureError(f"its source cannot be read, so a change could not be noticed: {error}") from error
    return "".join(lines), line
