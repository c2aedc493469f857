"""A docstring in two parts: what the tool does, and what each parameter means (Google, reST or plain lines)."""

import inspect
import re
from collections.abc import Collection

_PARAMETER = re.compile(r"(\s*)(?:[-*]\s+|:param\s+(?:\S+\s+)*?)?`{0,2}(\w+)`{0,2}(?:\s*\([^()]*\))?\s*:\s*(.*)")
_HEADING = re.compile(r"\s*(?:args|arguments|parameters|params)\s*:?\s*", re.IGNORECASE)


def read(docstring: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """The prose, and a description for each of `names` that has one; deeper indented lines continue it."""
    prose: list[str] = []
    described: dict[str, str] = {}
    current, margin = "", 0
    for line in inspect.cleandoc(docstring).splitlines():
        match = _PARAMETER.fullmatch(line)
        if match and match[2] in names:
            current, margin = match[2], len(match[1])
            described[current] = match[3].strip()
        elif current and line.strip() and len(line) - len(line.lstrip()) > margin:
            described[current] = f"{described[current]} {line.strip()}".strip()
        else:
            current = ""
            prose += [] if _HEADING.fullmatch(line) else [line.rstrip()]
    return "\n".join(prose).strip(), described
