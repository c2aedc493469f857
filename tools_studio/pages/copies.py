"""A tool as the beginning of another one."""

from dataclasses import replace

from hitlchat.gate.models import Tool
from tools_studio import authoring
from tools_studio.authoring import Draft

LONGEST_NAME = 64


def of(tool: Tool) -> Draft:
    """Everything but the secrets' values, under a name that is free."""
    draft = authoring.draft_of(tool)
    return replace(draft, name=_first_free(tool.name, "_copy", 1), title=draft.title and f"{draft.title} (copy)"[:120])


def free(name: str) -> str:
    """`name`, with a number if it is taken."""
    return _first_free(name, "_", 2) if Tool.objects.filter(name=name).exists() else name


def _first_free(name: str, ending: str, first: int) -> str:
    taken = set(Tool.objects.filter(name__startswith=name[: LONGEST_NAME - 8]).values_list("name", flat=True))
    number = first
    while (found := _ended(name, ending, number)) in taken:
        number += 1
    return found


def _ended(name: str, ending: str, number: int) -> str:
    whole = ending if number == 1 else f"{ending}{number}"
    return name[: LONGEST_NAME - len(whole)] + whole
