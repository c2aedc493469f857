"""Checking a tool's code with the type checker and the interpreter; and whether it has a preview of its own."""

import re
from dataclasses import replace
from functools import lru_cache

from hitlchat import sandbox
from hitlchat.sandbox import Problem
from tools_studio import capabilities
from tools_studio.capabilities import Capabilities, stubs
from tools_studio.language import signature
from tools_studio.language.signature import Signature
from tools_studio.language.snippet import SignatureError, Snippet, cut

ENTRY = "preview"
_LOOKS_LIKE_IT = re.compile(rf"^(?:async[ \t]+)?def[ \t]+{ENTRY}\b", re.MULTILINE)


@lru_cache(maxsize=64)
def find(code: str) -> Snippet | None:
    """The top-level function `preview`; None if there is none, or none that could be called."""
    if not _LOOKS_LIKE_IT.search(code):
        return None
    try:
        return cut(code, ENTRY)
    except SignatureError:
        return None


def check(code: str, run: Signature) -> None:
    """SignatureError: there is a `preview`, but it cannot be called in place of `run`."""
    if not _LOOKS_LIKE_IT.search(code):
        return
    found = signature.read(code, ENTRY)
    if _parameters(found) != _parameters(run):
        raise SignatureError(
            "expected `preview` with the parameters of `run`: the same names, types and defaults in the same order",
            cut(code, ENTRY).offset + 1,
        )


def _parameters(found: Signature) -> list[tuple[str, dict[str, object]]]:
    """Return what they are called and take; how they are described may differ."""
    properties = found.input_schema["properties"].items()
    return [(name, {key: value for key, value in part.items() if key != "description"}) for name, part in properties]


_FUNCTION = re.compile(r"function `([\w.]+)`")
_OF_ANSWER = re.compile(r"`dict\[str, Any\]` has no attribute `(status|headers|text|json)`")


async def problems(code: str, granted: Capabilities, *, advise: bool = False) -> list[Problem]:
    """Return what is wrong with the code, `preview` included, which may only read. Empty: nothing.

    With `advise` also what runs but may surprise, as problems of severity "warning".
    """
    declared = granted.stubs()
    known, powers = capabilities.ALL_NAMES, granted.powers()
    first = await sandbox.check(code, stubs=declared, known=known, powers=powers, advise=advise)
    found = [_explained(each) for each in first]
    preview = find(code)
    if preview is None:
        return found
    reads = granted.read_only()
    names = granted.names()
    closed = names - reads.names()
    again = await sandbox.check(
        code,
        entry=ENTRY,
        stubs=stubs.module(names, closed=closed),
        known=known,
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
    return f"{called[1]} changes something, and a preview may only read" if called and called[1] in closed else message
