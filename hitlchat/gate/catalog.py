"""Which tools a caller may call now."""

from collections.abc import Collection

from django.db.models import QuerySet

from hitlchat.gate.actor import Caller
from hitlchat.gate.models import Tool


def tools_for(caller: Caller, names: Collection[str] | None = None) -> QuerySet[Tool]:
    """The catalog of `caller`: published tools, narrowed to `names` if given. A Studio author may test drafts too."""
    tools = Tool.objects.all() if caller.kind == "studio" else Tool.objects.filter(published=True)
    return tools if names is None else tools.filter(name__in=names)


def definition(tool: Tool) -> dict[str, object]:
    """The tool as a model is told of it (Chat Completions)."""
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
    }
