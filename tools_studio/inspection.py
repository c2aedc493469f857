"""Inspection of a tool's code and capabilities: what the type checker and the interpreter find, and what follows.

Nothing is saved, and nothing of the tool is run.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from asgiref.sync import async_to_sync

from hitlchat import sandbox
from hitlchat.base import canonical
from hitlchat.base.schemas import type_word
from hitlchat.sandbox import Problem
from tools_studio import capabilities
from tools_studio.capabilities import Capabilities, CapabilityError
from tools_studio.language import signature
from tools_studio.language.signature import Signature
from tools_studio.language.snippet import SignatureError

_NOT_GRANTED = re.compile(r"switch on the capability '(\w+)'")
_NOT_WRITING = re.compile(r"Class `files` has no attribute `(?:write|append|delete)`")
_FUNCTION = re.compile(r"function `([\w.]+)`")
_OF_ANSWER = re.compile(r"`dict\[str, Any\]` has no attribute `(status|headers|text|json)`")
_WRITING = "id_files_mode_2"
# What the form has for each function that is not granted; of several choices, the one that allows the least.
_SWITCHES = {
    "fetch": "id_fetch_mode_2", "files": "id_files_mode_1", "store": "id_store", "secret": "id_secrets",
    "send_email": "id_email", "webhook": "id_webhook", "now": "id_now",
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """A problem or a warning, in a sentence; `line` counts from 1, None if it belongs to no line.

    `switch`: if a capability is missing, the id of the form's field that grants it.
    """

    line: int | None
    message: str
    is_warning: bool = False

    @property
    def switch(self) -> str:
        if _NOT_WRITING.search(self.message):
            return _WRITING
        named = _NOT_GRANTED.search(self.message)
        return _SWITCHES.get(named[1], "") if named else ""


@dataclass(frozen=True)
class Inspection:
    """`description` is the author's text for the model in place of the docstring, if any."""

    name: str
    description: str = ""
    findings: list[Finding] = field(default_factory=list)
    signature: Signature | None = None
    capabilities: Capabilities | None = None

    @property
    def model_view(self) -> str:
        if self.signature is None:
            return ""
        shown = {
            "name": self.name or "(no name yet)",
            "description": self.description or self.signature.description,
            "parameters": self.signature.input_schema,
        }
        return canonical.pretty(shown, indent=2)

    @property
    def arguments(self) -> list[tuple[str, Any, bool]]:
        # A list, since in a template an argument named `items` would hide the method of the schema's properties.
        made = self.signature.input_schema if self.signature else {}
        required = made.get("required", [])
        return [(name, part, name in required) for name, part in made.get("properties", {}).items()]

    @property
    def is_wrong(self) -> bool:
        return not all(finding.is_warning for finding in self.findings)

    @property
    def returns(self) -> str:
        schema = self.signature.output_schema if self.signature else None
        return type_word(schema, schema) if schema else "anything"


def inspect(name: str, code: str, declared: dict[str, Any], description: str = "") -> Inspection:
    """Return the signature, the capabilities and the findings, those of the type checker included."""
    findings: list[Finding] = []
    granted = None
    try:
        granted = capabilities.parse(declared)
    except CapabilityError as error:
        findings.append(Finding(None, str(error)))
    found: Signature | None = None
    try:
        found = signature.read(code)
        signature.check_preview(code, found)
    except SignatureError as error:
        findings.append(Finding(error.line, str(error)))
    shown = granted or Capabilities()
    checked = async_to_sync(problems)(code, shown, advise=True)
    findings += [Finding(each.line, each.message, each.severity == "warning") for each in checked]
    return Inspection(name, description, findings, found, granted)


async def problems(code: str, granted: Capabilities, *, advise: bool = False) -> list[Problem]:
    """Return the problems of the code, also those of `preview`, which may only read.

    With `advise` also warnings about code that runs but may surprise.
    """
    names = granted.names()
    stubs, every_name = capabilities.stubs_of(names), capabilities.ALL_NAMES
    first = await sandbox.check(code, stubs=stubs, offered=every_name, powers=granted.powers(), advise=advise)
    found = [_explained(each) for each in first]
    preview = signature.preview_of(code)
    if preview is None:
        return found
    reads = granted.read_only()
    closed = names - reads.names()
    again = await sandbox.check(
        code,
        entry=signature.PREVIEW,
        stubs=capabilities.stubs_of(names, closed=closed),
        offered=every_name,
        powers=reads.powers(),
    )
    last = float("inf") if preview.last_row is None else preview.last_row
    seen = {each.line for each in found if each.severity == "error"}
    for each in again:
        # Elsewhere `run` may do what a preview may not.
        if each.line is not None and preview.offset < each.line <= last and each.line not in seen:
            seen.add(each.line)
            found.append(Problem(each.line, each.column, _in_preview(each.message, closed)))
    return found


def _explained(problem: Problem) -> Problem:
    if part := _OF_ANSWER.search(problem.message):
        return replace(problem, message=f'{problem.message} (fetch(…) returns a dict: write answer["{part[1]}"])')
    return problem


def _in_preview(message: str, closed: frozenset[str]) -> str:
    called = _FUNCTION.search(message)
    return f"{called[1]} makes changes, but a preview may only read" if called and called[1] in closed else message
