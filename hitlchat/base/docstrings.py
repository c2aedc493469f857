"""Docstrings of tools: prose for the model, and a description of each parameter."""

import inspect
import re
from collections.abc import Collection, Iterator, Sequence
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
# Sections in which `name: text` describes no parameter; numpy has a line of dashes in place of the colon.
_OTHER = re.compile(
    r"(\s*)(?:attributes|caution|danger|examples?|hints?|important|methods|notes?|raises|references|returns?|see also"
    r"|tips?|todo|usage|warnings?|warns|yields?)\s*(:{1,2}|)\s*(.*)",
    re.IGNORECASE,
)
_UNDERLINE = re.compile(r"\s*(?:-{3,}|={3,})\s*")


@dataclass
class Text:
    """The prose of a docstring, and the description of each parameter it mentions."""

    prose: list[str] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def description(self) -> str:
        """All of it but the parameters."""
        return "\n".join(self.prose).strip()


def read(docstring: str, names: Collection[str], forms: Sequence[re.Pattern[str]], *, sections: bool = True) -> Text:
    """Split `docstring` into prose and the parameters among `names`: Google, reST or plain `name: text` lines.

    `forms`: AUTHORED for tools of the Studio, DECLARED for functions of a project. A line that is indented deeper than
    the parameter above it continues that parameter. In sections such as `Example:` nothing describes a parameter;
    without `sections` it does, as it once did for tools that are stored.
    """
    text = Text()
    current, margin = "", 0
    for line, is_elsewhere in _with_sections(inspect.cleandoc(docstring).splitlines(), names):
        match = next(filter(None, (form.fullmatch(line) for form in forms)), None)
        if match and match[2] in names and not (sections and is_elsewhere):
            current, margin = match[2], len(match[1])
            text.parameters[current] = match[3].strip()
        elif current and line.strip() and len(line) - len(line.lstrip()) > margin:
            text.parameters[current] = f"{text.parameters[current]} {line.strip()}".strip()
        else:
            current = ""
            if not _HEADING.fullmatch(line):
                text.prose.append(line.rstrip())
    return text


def _with_sections(lines: list[str], names: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it stands in a section that is not about parameters.

    A section whose text is indented ends with it, any other at the next heading. Its own line is in it.
    """
    margin: int | None = None
    is_indented = False
    for line, after in zip(lines, [*lines[1:], ""], strict=False):
        indent = len(line) - len(line.lstrip())
        heading = _OTHER.fullmatch(line)
        is_heading = heading is not None and bool(heading[2] or _UNDERLINE.fullmatch(after))
        if line.lstrip().startswith(":param") or _HEADING.fullmatch(line):
            margin = None
        elif heading and is_heading and line.strip().partition(":")[0].strip() not in names:
            # What begins on the line of the heading goes on below it only where that is indented.
            margin, is_indented = indent, bool(heading[3])
            yield line, True
            continue
        elif margin is not None and line.strip():
            is_indented = is_indented or indent > margin
            margin = None if indent < margin or (is_indented and indent == margin) else margin
        yield line, margin is not None
