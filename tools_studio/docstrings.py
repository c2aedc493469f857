"""What a docstring says about a tool and about each of its parameters."""

import inspect
import re
from collections.abc import Collection
from dataclasses import dataclass, field

_FIELD = re.compile(r"(\s*):param\s+(?:\S+\s+){0,3}?(\w+)\s*:\s*(.*)")
_PLAIN = re.compile(r"(\s*)(?:[-*]\s+)?`{0,2}(\w+)`{0,2}(?:\s*\([^()]*\))?\s*:\s*(.*)")
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


def read(docstring: str, names: Collection[str]) -> Text:
    """Split `docstring` into prose and the parameters among `names`: Google, reST or plain `name: text` lines.

    A line that is indented deeper than the parameter above it continues that parameter.
    """
    text = Text()
    current, margin = "", 0
    for line in inspect.cleandoc(docstring).splitlines():
        match = _FIELD.fullmatch(line) or _PLAIN.fullmatch(line)
        indent = len(line) - len(line.lstrip())
        if match and match[2] in names:
            current, margin = match[2], indent
            text.parameters[current] = match[3].strip()
        elif current and line.strip() and indent > margin:
            text.parameters[current] = f"{text.parameters[current]} {line.strip()}".strip()
        else:
            current = ""
            if not _HEADING.fullmatch(line):
                text.prose.append(line.rstrip())
    return text
