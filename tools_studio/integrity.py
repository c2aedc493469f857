"""Whether authored tools are kept as the hashes of their definitions say, which is what people approve."""

from collections.abc import Iterator
from typing import Any, Final

from hitlchat.gate.models import Tool
from tools_studio import columns, snapshots
from tools_studio.columns import draft_of
from tools_studio.drafts import SOURCE, AuthoringError, Checked, Draft, check
from tools_studio.models import ScriptVersion
from tools_studio.snapshots import Unreadable

# Of its row in the gate: what follows from the code, and what models and people are told of it.
FOLLOWS: Final = ("definition_hash", "description", "input_schema", "output_schema", "risk_level", "facts")
UNSOUND: Final = (AuthoringError, Unreadable, ValueError, TypeError, AttributeError, KeyError)


def altered() -> Iterator[str]:
    """A sentence for each tool and version that is not what its hash says."""
    for tool in Tool.objects.filter(source=SOURCE).select_related("script").order_by("name").iterator(chunk_size=100):
        if words := _differs(tool):
            yield words
    for version in ScriptVersion.objects.select_related("script__tool").order_by("pk").iterator(chunk_size=100):
        if _is_other(version):
            yield f"Version {version.number} of the tool {version.script.tool.name} is not what its hash says."


def _differs(tool: Tool) -> str:
    try:
        sound = _sound(tool)
    except UNSOUND as error:
        return f"The tool {tool.name} is not kept as it was saved: {error}."
    now = columns.of_tool(sound, tool.script.version)
    names = [name.replace("_", " ") for name in FOLLOWS if getattr(tool, name) != now[name]]
    if not names:
        return ""
    if "definition hash" in names:
        return f"The code or settings of the tool {tool.name} are not what the hash of its definition says."
    return f"What the tool {tool.name} says of itself is not what follows from its code: {', '.join(names)}."


def _sound(tool: Tool) -> Checked:
    return check(draft_of(tool), columns.kept(tool.script))


def _is_other(version: ScriptVersion) -> bool:
    """Of one with variables it cannot be told: their values are not kept with it."""
    try:
        draft: Draft = snapshots.draft(version.draft)
        return not draft.variables and check(draft).definition_hash != version.definition_hash
    except UNSOUND:
        # Kept by an older version of hitlchat, with other rules; but what is no tool at all never was one.
        kept: Any = version.draft
        return not isinstance(kept, dict)
