"""Docstrings of tools: prose for the model, and a description of each parameter."""

import inspect
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

# A parameter's line: its indent, its name, its description. What these match is part of the definitions of tools that
# are stored: a form that matched more, or less, would make another tool of one that nobody changed.
AUTHORED: Final = (
    re.compile(r"(\s*):param\s+(?:\S+\s+){0,3}?(\w+)\s*:\s*(.*)"),
    re.compile(r"(\s*)(?:[-*]\s+)?`{0,2}(\w+)`{0,2}(?:\s*\([^()]*\))?\s*:\s*(.*)"),
)
DECLARED: Final = (
    re.compile(r"(\s*)(?:[-*]\s+|:param\s+(?:\S+\s+)*?)?`{0,2}(\w+)`{0,2}(?:\s*\([^()]*\))?\s*:\s*(.*)"),
)
_HEADING = re.compile(r"\s*(?:args|arguments|parameters|params)\s*:?\s*", re.IGNORECASE)


@dataclass
class Text:
    """The prose of a docstring, and the description of each parameter it mentions."""

    prose: list[str] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The first line."""
        return self.prose[0].strip() if self.prose else ""

    @property
    def description(self) -> str:
        """All of it but the parameters."""
        return "\n".join(self.prose).strip()


def read(docstring: str, names: Collection[str], forms: Sequence[re.Pattern[str]]) -> Text:
    """Split `docstring` into prose and the parameters among `names`: Google, reST or plain `name: text` lines.

    `forms`: AUTHORED for tools of the Studio, DECLARED for functions of a project. A line that is indented deeper than
    the parameter above it continues that parameter.
    """
    text = Text()
    current, margin = "", 0
    for line in inspect.cleandoc(docstring).splitlines():
        match = next(filter(None, (form.fullmatch(line) for form in forms)), None)
        if match and match[2] in names:
            current, margin = match[2], len(match[1])
            text.parameters[current] = match[3].strip()
        elif current and line.strip() and len(line) - len(line.lstrip()) > margin:
            text.parameters[current] = f"{text.parameters[current]} {line.strip()}".strip()
        else:
            current = ""
            if not _HEADING.fullmatch(line):
                text.prose.append(line.rstrip())
    return text
