"""What the type checker and the interpreter find in a tool's code, with the capabilities that it declares."""

import re
from dataclasses import replace

from hitlchat import sandbox
from hitlchat.sandbox import Problem
from tools_studio import capabilities
from tools_studio.capabilities import Capabilities, stubs
from tools_studio.language import previews

_FUNCTION = re.compile(r"function `([\w.]+)`")
_OF_ANSWER = re.compile(r"`dict\[str, Any\]` has no attribute `(status|headers|text|json)`")


async def problems(code: str, granted: Capabilities, *, advise: bool = False) -> list[Problem]:
    """What is wrong with the code, `preview` included, which may only read. Empty: nothing.

    With `advise` also what runs but may surprise, as problems of severity "warning".
    """
    declared = granted.stubs()
    known, powers = capabilities.ALL_NAMES, granted.powers()
    first = await sandbox.check(code, stubs=declared, known=known, powers=powers, advise=advise)
    found = [_explained(each) for each in first]
    preview = previews.find(code)
    if preview is None:
        return found
    reads = granted.read_only()
    names = granted.names()
    closed = names - reads.names()
    again = await sandbox.check(
        code,
        entry=previews.ENTRY,
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
