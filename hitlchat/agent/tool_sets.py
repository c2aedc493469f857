"""Tool sets as administrators keep them, and which tools a conversation may use: all, those of one set, or its own.

A set holds names, as the gate finds tools by them. What is in it and not there at the moment is not offered; a tool
that comes back under its name is in it again, and is asked about at least as the one before.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.agent import asking
from hitlchat.agent.administering import BadDraft, InUse, Subject, wrong_names
from hitlchat.agent.models import Conversation, OwnDefaults, ToolSet
from hitlchat.base.problems import Invalid, required
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import compiled
from hitlchat.gate.actor import Actor, Caller
from hitlchat.gate.models import Tool
from hitlchat.gate.tools import EVERYTHING, Reach, listed, tools_for, withdraw_out_of_reach

LONGEST_TOOL_NAME: Final = 64
MOST_TOOLS: Final = 2000
ONE_WAY = gettext_noop("Expected a tool set, or tools by name, not both.")
UNREADABLE = gettext_noop("This conversation's tools cannot be read, so none are available. Choose again.")


class BadTools(Invalid):
    """No conversation can be held to these tools; nothing was changed."""


@dataclass(frozen=True)
class Draft:
    name: str
    description: str = ""
    tools: tuple[str, ...] = ()


FIELDS: Final = tuple(Draft.__dataclass_fields__)


def rows() -> QuerySet[ToolSet]:
    return ToolSet.objects.filter(removed_at=None)


def default() -> ToolSet | None:
    """Return the set that new conversations begin with; None: they may use all tools."""
    return rows().filter(is_default=True).first()


def choosable() -> list[Tool]:
    """Return the tools that can be in a set, published or not, by name; the question to the person first."""
    return [*filter(None, [asking.offered()]), *listed().order_by("name")]


def blank() -> Draft:
    """Return a set to begin with, which has the question to the person, where there is that."""
    return Draft("", tools=tuple(tool.name for tool in filter(None, [asking.offered()])))


def draft_of(row: ToolSet) -> Draft:
    return Draft(row.name, row.description, tuple(names(row.tools) or ()))


def problems(draft: Draft, row: ToolSet | None = None) -> dict[str, str]:
    """Return what is wrong with the draft, by field. Names that are in `row` may stay in it."""
    found = wrong_names(draft.name, draft.description)
    there = {tool.name for tool in choosable()} | {asking.NAME} | set((row and names(row.tools)) or ())
    if len(draft.tools) > MOST_TOOLS:
        found["tools"] = translatable(f"Expected at most {MOST_TOOLS:,} tools.")
    elif (missing := next((name for name in draft.tools if name not in there), None)) is not None:
        found["tools"] = translatable(f"There is no tool named {missing[:LONGEST_TOOL_NAME]!r}.")
    return found


def _columns(draft: Draft, row: ToolSet | None) -> dict[str, Any]:
    if errors := problems(draft, row):
        raise BadDraft(errors)
    return asdict(draft) | {"tools": sorted(set(draft.tools))}


_subject = Subject[ToolSet, Draft](
    word="tool_set",
    rows=rows,
    recorded=lambda row: {name: getattr(row, name) for name in (*FIELDS, "is_default")},
    columns=_columns,
    only_people=gettext_noop("Only an administrator may change tool sets: sign in, or use an approver token."),
    gone=gettext_noop("This tool set was removed."),
    name_taken=gettext_noop("There is already a tool set with this name."),
)

create = _subject.create
# Has new conversations begin with this set; None: with all tools.
begin_with = _subject.begin_with


def change(set_id: UUID, draft: Draft, actor: Actor) -> ToolSet:
    """Change a set; on record. What has not started and is not in it any more does not run.

    Raises: BadDraft, NameTaken, OnlyPeople, NotFound.
    """
    row = _subject.change(set_id, draft, actor)
    _withdraw_rest(row, actor)
    return row


def remove(set_id: UUID, actor: Actor) -> None:
    """Remove a set; on record. Conversations that are held to it say so, and may use no tool.

    Raises: OnlyPeople, InUse, NotFound.
    """
    with _subject.removing(set_id, actor) as row:
        if (preset := row.presets.first()) is not None:
            raise InUse(f"The preset “{preset.name}” uses this tool set. Choose another one there first.")
        ToolSet.objects.filter(pk=row.pk).update(removed_at=timezone.now())
    _withdraw_rest(row, actor)


@compiled
def _of_conversation(conversation_id: UUID) -> QuerySet[Conversation]:
    return Conversation.objects.filter(pk=conversation_id).select_related("tool_set")


def _withdraw_rest(row: ToolSet, actor: Actor) -> None:
    """Withdraw what has not started and is not in the set now; what this misses, the gate withdraws at its start."""
    bound = Conversation.objects.filter(tool_set=row, deleted_at=None)
    withdraw_out_of_reach(bound.values("pk"), actor=actor)


# -- What a conversation may use ---------------------------------------------------------------------------------------


def reach_of(conversation_id: UUID) -> Reach:
    """Return the reach of a conversation, as the gate asks it (CONVERSATION_REACH)."""
    row = _of_conversation(conversation_id).one()
    return EVERYTHING if row is None else of(row)


def of(conversation: Conversation) -> Reach:
    """Return which tools the conversation may use: none, where its set was removed or the row cannot be read.

    The model may ask the person unless a set leaves that out.
    """
    chosen = conversation.tool_set
    if chosen is None and conversation.tools is None:
        return EVERYTHING
    if chosen is not None and chosen.removed_at is not None:
        return Reach(frozenset(), why=removed(chosen.name))
    found = names(conversation.tools if chosen is None else chosen.tools)
    if found is None:
        return Reach(frozenset(), why=UNREADABLE)
    return Reach(frozenset(found), asks_person=chosen is None or asking.NAME in found)


def removed(name: str) -> str:
    """Return why a conversation may use no tool, for its person and its model."""
    return translatable(f"This conversation's tool set “{name}” was removed, so no tools are available.")


def names(stored: Any) -> list[str] | None:
    """Return names as they are stored; None if they cannot be read."""
    is_list = isinstance(stored, list) and all(isinstance(name, str) for name in stored)
    return stored if is_list else None


def usable(conversation: Conversation) -> QuerySet[Tool]:
    """Return the tools of the catalog that the conversation may use, built-in ones aside."""
    return of(conversation).within(tools_for(Caller("chat", conversation.owner_id, "")))


def columns(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a conversation for `tools` (names, or None for all) or `tool_set` (a name, or None).

    Raises: BadTools.
    """
    picked, named = wanted.get("tools"), wanted.get("tool_set")
    if not {"tools", "tool_set"} & wanted.keys():
        return {}
    if picked is not None and named is not None:
        raise BadTools({"tool_set": ONE_WAY})
    if picked is not None and names(picked) is None:
        raise BadTools({"tools": gettext_noop("Expected names of tools.")})
    return {"tools": picked, "tool_set": None if named is None else named_one(named)}


def named_one(name: str) -> ToolSet:
    """Return the set of this name. Raises: BadTools."""
    row = rows().filter(name=name).first()
    return required(row, BadTools({"tool_set": gettext_noop("There is no tool set with this name.")}))


def beginning(user: User) -> dict[str, Any]:
    """Return the columns of a conversation that begins: as its person chose, or else an administrator."""
    own = OwnDefaults.objects.filter(person=user).select_related("tool_set").first()
    if own is None or not (own.all_tools or own.tools is not None or own.tool_set_id):
        return {"tools": None, "tool_set": default()}
    return {"tools": own.tools, "tool_set": own.tool_set}


def as_default(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of what a person's conversations begin with: `tools` or `tool_set`, as `columns` has them.

    `all_tools`: neither, and not what an administrator chose. Raises: BadTools.
    """
    if not {"all_tools", "tools", "tool_set"} & wanted.keys():
        return {}
    picked, named = wanted.get("tools"), wanted.get("tool_set")
    if wanted.get("all_tools") and (picked is not None or named is not None):
        raise BadTools({"all_tools": ONE_WAY})
    return columns({"tools": picked, "tool_set": named}) | {"all_tools": bool(wanted.get("all_tools"))}
