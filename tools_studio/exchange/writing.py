"""Writing tools to a file."""

from collections.abc import Iterable
from typing import Any

from django.utils import timezone

from hitlchat.base import canonical
from hitlchat.base.problems import Problem
from hitlchat.gate.models import Tool
from hitlchat.sandbox.limits import in_words
from tools_studio import cases, drafts
from tools_studio.exchange.reading import FORMAT, MOST_BYTES, MOST_TOOLS, VERSION


class TooMuch(Problem, ValueError):
    """The file would be larger than any import accepts."""

    status = 422


def document(tools: Iterable[Tool]) -> dict[str, Any]:
    """Authored tools with their policy and test cases, without secrets, stored data or whether they are published.

    TooMuch.
    """
    chosen = list(tools)
    if len(chosen) > MOST_TOOLS:
        raise TooMuch(f"At most {MOST_TOOLS} tools go into one file, not {len(chosen):,}. Choose fewer.")
    return {
        "format": FORMAT,
        "version": VERSION,
        "exportedAt": timezone.now().isoformat(timespec="seconds"),
        "tools": [_tool(each) for each in chosen],
    }


def text(tools: Iterable[Tool]) -> str:
    """The same as the text of a file. TooMuch."""
    written = canonical.pretty(document(tools), indent=2) + "\n"
    if len(written.encode()) > MOST_BYTES:
        raise TooMuch(f"The file would be larger than {in_words(MOST_BYTES)}, the most that an import accepts.")
    return written


def _tool(tool: Tool) -> dict[str, Any]:
    listed = [cases.of(row).as_json() for row in cases.rows(tool)]
    return drafts.as_json(drafts.draft_of(tool)) | {"testCases": listed, "definitionHash": tool.definition_hash}
