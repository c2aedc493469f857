"""The rows of tools: the one place that writes them, and which of them a caller, and a conversation, may call.

Whatever changes a tool (pages, REST, import, restore, the library, commands, project code, upstream servers) comes
through here, so none can forget the event; tests/architecture/test_tool_writes.py holds that.

The reach of a conversation is as whoever keeps conversations says. It narrows the catalog whoever asks: a call of
another tool is rejected when it is submitted, and one that has not started is withdrawn once its tool is out of reach,
whether a person approved it or not.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.module_loading import import_string
from django.utils.translation import gettext_noop

from hitlchat.base.database import only
from hitlchat.base.schemas import subschemas
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import compiled
from hitlchat.gate import loosening, oversight, question, spec, stated, stopping
from hitlchat.gate.actor import SYSTEM, Actor, Caller, Kind
from hitlchat.gate.loosening import Guard, guard_in, guard_of
from hitlchat.gate.models import AuditEvent, FormerTool, Oversight, Tool, ToolCall
from hitlchat.gate.transition import note, note_all

# The source of the tool with which a model finds others of a large catalog.
SEARCH: Final = "search"
BUILT_IN: Final = (question.SOURCE, SEARCH)
# The source of agent tools. What a test in the Studio may call is not what their calls may.
AGENT: Final = "agent"
AT_A_TIME = 500
_STATED_AT_A_TIME: Final = 100
# Columns of rules that name a group.
GROUPS: Final = ("group_id", "second_id", "third_id", "escalate_to_id")
OUTSIDE: Final = gettext_noop("This conversation may not use it.")
OUT_OF_REACH: Final = "its conversation may not use the tool any more"

Columns = Mapping[str, Any]


def listed() -> QuerySet[Tool]:
    """All tools, but those built in, which only the chat has: there is nothing to edit, test or call of them."""
    return Tool.objects.exclude(source__in=BUILT_IN)


def tools_for(caller: Caller, names: Collection[str] | None = None) -> QuerySet[Tool]:
    """Return the catalog of `caller`: published tools, narrowed to `names` if given; for Studio authors also drafts."""
    tools = listed()
    tools = tools.exclude(source=AGENT) if caller.kind == "studio" else tools.filter(published=True)
    return tools if names is None else tools.filter(name__in=names)


def callable_by(caller: Caller, name: str, names: Collection[str] | None = None) -> Tool | None:
    """Return a tool of the catalog, or in the chat one that is built in, whatever the `names`; None without it."""
    tool = _by_name(caller.kind)(name).one()
    if tool is None or tool.source == SEARCH:
        return tool
    if question.is_one(tool):
        return tool if settings.HITL_ASK_USER else None
    return tool if names is None or name in names else None


def withdraw_out_of_reach(conversation_ids: Iterable[UUID] | QuerySet[Any], *, actor: Actor) -> None:
    """Withdraw what has not started of tools that these conversations may not use any more, approved or not."""
    rows = ToolCall.objects.filter(conversation_id__in=conversation_ids, status__in=stopping.NOT_STARTED)
    for call in rows.select_related("tool"):
        if why := why_lost(call):
            stopping.withdraw_call(call.pk, actor=actor, why=why)


def built_in(columns: Columns) -> Tool | None:
    """Return the row of a tool that is built in, made or changed to have these columns; None if its name is taken."""
    row = _of_name(columns["name"]).one()
    if row is None:
        try:
            with transaction.atomic():
                row = add(Tool(**columns), SYSTEM, inherits=False)
        except IntegrityError:
            # Another process was first.
            row = Tool.objects.get(name=columns["name"])
    if row.source != columns["source"]:
        return None
    if any(getattr(row, name) != value for name, value in columns.items()):
        change(row.pk, columns, SYSTEM)
        row.refresh_from_db()
    return row


def definition(tool: Tool) -> dict[str, object]:
    """Return the tool as models read it (Chat Completions).

    Each object in its schema has `properties`: some model servers refuse one that says nothing of them.
    """
    schema = deepcopy({"type": "object", "properties": {}, **tool.input_schema})
    for part in list(subschemas(schema)):
        if part.schema.get("type") == "object":
            part.schema.setdefault("properties", {})
    function = {"name": tool.name, "description": tool.description, "parameters": schema}
    return {"type": "function", "function": function}


def add(tool: Tool, actor: Actor, *, inherits: bool = True) -> Tool:
    """Store a new tool. Under a name that another tool had it asks at least as much, and the same people decide.

    `inherits` false: its mode and condition stay as they are; who decides is inherited all the same.
    """
    return add_all([tool], actor, inherits=inherits)[0]


def add_all(tools: list[Tool], actor: Actor, *, inherits: bool = True) -> list[Tool]:
    """Store new tools, as `add` does, with one statement for many."""
    former = {row.name: row for row in FormerTool.objects.filter(name__in=[tool.name for tool in tools])}
    with transaction.atomic():
        for tool in tools:
            if inherits and (before := former.get(tool.name)):
                _set(tool, _as_columns(loosening.strictest(loosening.former_guard(before), guard_of(tool))))
        if len(tools) == 1:
            tools[0].save(force_insert=True)
        else:
            Tool.objects.bulk_create(tools, batch_size=AT_A_TIME)
        for tool in tools:
            _inherit_rules(tool, former.get(tool.name))
        events = note_all("tool.created", _created(tools), actor=actor)
        for tool, event in zip(tools, events, strict=True):
            tool.stated_by = event.pk
        Tool.objects.bulk_update(tools, ["stated_by"], batch_size=AT_A_TIME)
    return tools


def change(tool_id: UUID, columns: Columns, actor: Actor, *, only_if: Q | None = None) -> bool:
    """Write `columns` of one tool; false if it is gone or `only_if` does not hold."""
    with transaction.atomic():
        tool = only(Tool.objects.select_for_update(of=("self",)).filter(only_if or Q(), pk=tool_id))
        if tool is None:
            return False
        before, wanted = watched(tool), _named(tool, dict(columns))
        # Another manager's `update` would pass the row by.
        Tool.objects.filter(pk=tool_id).update(**wanted, updated_at=timezone.now())
        _set(tool, wanted)
        if tool.name != before["name"]:
            _keep(before, tool)
        _note_change(before, tool, actor)
        if tool.name != before["name"]:
            _inherit_rules(tool, only(FormerTool.objects.filter(name=tool.name)))
    return True


def look_for_earned(tool_id: UUID) -> None:
    """Have earned rules be looked for where calls of this tool are judged and declined."""
    Tool.objects.filter(pk=tool_id).update(earned=True)


def offer(tools: QuerySet[Tool], actor: Actor, *, published: bool) -> int:
    """Publish these tools or take them out of the catalog, with one event for all; how many were not so before."""
    with transaction.atomic():
        found = dict(tools.exclude(published=published).order_by("name").values_list("pk", "name"))
        ids = list(found)
        for start in range(0, len(ids), AT_A_TIME):
            some = Tool.objects.filter(pk__in=ids[start : start + AT_A_TIME])
            some.update(published=published, updated_at=timezone.now())
        if found:
            names = list(found.values())
            data: dict[str, Any] = {"tool": names[0]} if len(names) == 1 else {"tools": names}
            data |= {"ids": [str(key) for key in ids]}
            data |= {"before": {"published": not published}, "after": {"published": published}}
            note(None, _offering(published=published), actor=actor, data=data)
    return len(found)


def remove(tools: Iterable[Tool], actor: Actor) -> None:
    """Delete these tools. What has people asked about each is kept for the next tool of its name."""
    with transaction.atomic():
        rows = list(tools)
        for tool in rows:
            _keep(watched(tool), tool)
            data = {"tool": tool.name, "id": str(tool.pk), "before": watched(tool)}
            note(None, "tool.deleted", actor=actor, data=data | stated.states("former tool", tool.name))
        ids = [tool.pk for tool in rows]
        for start in range(0, len(ids), AT_A_TIME):
            Tool.objects.filter(pk__in=ids[start : start + AT_A_TIME]).delete()


def former_guard(name: str) -> Guard | None:
    """Return what had people asked about the last tool of this name, if there was one."""
    row = only(FormerTool.objects.filter(name=name))
    return loosening.former_guard(row) if row else None


def inherited(name: str, guard: Guard) -> Guard:
    before = former_guard(name)
    return loosening.strictest(before, guard) if before else guard


def watched(tool: Tool) -> dict[str, Any]:
    return {name: _plain(getattr(tool, name)) for name in spec.WATCHED}


def begin_record() -> None:
    """Put on record what there is of each kind that was never put on record as a whole, once for each database."""
    with transaction.atomic():
        # Of several processes that start at a time one writes it.
        list(ContentType.objects.select_for_update().filter(app_label="gate", model="auditevent"))
        begun = AuditEvent.objects.filter(name=stated.BEGUN).order_by("pk").values_list("data", flat=True)
        begun_kinds = {kind for data in begun for kind in data.get("kinds", ())}
        _state([kind for kind in settings.RECORD_STATES if kind not in begun_kinds])


def state_again() -> None:
    """Record the whole state again, since the events that stated it were dropped."""
    with transaction.atomic():
        _state(list(settings.RECORD_STATES))


@dataclass(frozen=True)
class Reach:
    """Tools by name; without `names`, all that are published.

    `asks_person`: whether the built-in question to the person is among them. `why`, if there are none at all, says the
    reason, for the model too.
    """

    names: frozenset[str] | None = None
    asks_person: bool = True
    why: str = ""

    def has(self, tool: Tool) -> bool:
        """Return whether a call may be of this tool. The search is of use to all: it finds only what is within."""
        if self.why:
            return False
        if tool.source == SEARCH:
            return True
        if question.is_one(tool):
            return self.asks_person
        return self.names is None or tool.name in self.names

    def within(self, tools: QuerySet[Tool]) -> QuerySet[Tool]:
        """Return those of `tools`, built-in ones aside, that are in reach."""
        if self.why:
            return tools.none()
        return tools if self.names is None else tools.filter(name__in=self.names)


EVERYTHING: Final = Reach()


def reach_of(conversation_id: UUID | None) -> Reach:
    """Return the reach of a conversation; calls outside of one have the whole catalog of their caller."""
    if conversation_id is None:
        return EVERYTHING
    found: Callable[[UUID], Reach] = import_string(settings.CONVERSATION_REACH)
    return found(conversation_id)


def why_out_of_reach(tool: Tool, conversation_id: UUID | None) -> str:
    """Return why a call in the conversation cannot be of this tool; empty if it can."""
    reach = reach_of(conversation_id)
    if reach.has(tool):
        return ""
    return reach.why or f"{not_here(tool.name)} {OUTSIDE}"


def not_here(name: str) -> str:
    return translatable(f"There is no tool named {name!r} here.")


def why_lost(call: ToolCall) -> str:
    """Return why a call that has not started must not, if its conversation may not use its tool any more."""
    return OUT_OF_REACH if call.tool is not None and not reach_of(call.conversation_id).has(call.tool) else ""


@cache
def _by_name(kind: Kind) -> compiled[[str], Tool]:
    @compiled
    def named(name: str) -> QuerySet[Tool]:
        rows = Tool.objects.filter(published=True) if kind == "chat" else tools_for(Caller(kind, 0, ""))
        return rows.filter(name=name)

    return named


def _state(kinds: list[str]) -> None:
    for kind in kinds:
        found = list(stated.now(kind).items())
        for start in range(0, max(len(found), 1), _STATED_AT_A_TIME):
            some = dict(found[start : start + _STATED_AT_A_TIME])
            event = note(None, stated.BEGUN, actor=SYSTEM, data={"kinds": [kind], stated.STATES: {kind: some}})
            if kind == "tool":
                Tool.objects.filter(pk__in=list(map(UUID, some))).update(stated_by=event.pk)


def _stated(tool: Tool) -> dict[str, Any]:
    """Return which tool an event is of, and what has people asked about it from then on."""
    return {"id": str(tool.pk), "guard": {name: _plain(getattr(tool, name)) for name in stated.GUARD}}


def _created(tools: list[Tool]) -> Iterator[dict[str, Any]]:
    by_name = loosening.weaker_names([tool.name for tool in tools])
    for tool in tools:
        weaker = loosening.weaker_mode(guard_of(tool)) + by_name[tool.name]
        yield {"tool": tool.name, **_stated(tool), "after": watched(tool)} | (
            {"weaker": list(weaker)} if weaker else {}
        )


def _note_change(before: dict[str, Any], tool: Tool, actor: Actor) -> None:
    after = watched(tool)
    differing = [name for name in spec.WATCHED if before[name] != after[name]]
    if not differing:
        return
    name = _offering(published=after["published"]) if differing == ["published"] else "tool.changed"
    data: dict[str, Any] = {
        "tool": after["name"],
        **_stated(tool),
        "before": {field: before[field] for field in differing},
        "after": {field: after[field] for field in differing},
    }
    weaker = loosening.weaker(guard_in(before), guard_in(after))
    if "name" in differing:
        weaker += loosening.weaker_name(after["name"])
    if weaker:
        data["weaker"] = list(weaker)
    if "name" in differing:
        data |= stated.states("former tool", before["name"])
    tool.stated_by = note(None, name, actor=actor, data=data).pk
    Tool.objects.filter(pk=tool.pk).update(stated_by=tool.stated_by)


@compiled
def _of_name(name: str) -> QuerySet[Tool]:
    return Tool.objects.filter(name=name)


def _named(tool: Tool, columns: dict[str, Any]) -> dict[str, Any]:
    """Return `columns`, as strict as the last tool of a new name was."""
    if columns.get("name", tool.name) == tool.name or (before := former_guard(columns["name"])) is None:
        return columns
    wanted = replace(guard_of(tool), **{name: columns[name] for name in spec.INHERITED if name in columns})
    return columns | _as_columns(loosening.strictest(before, wanted))


def _keep(before: Mapping[str, Any], tool: Tool) -> None:
    rules = only(Oversight.objects.filter(tool_id=tool.pk))
    columns = {name: before[name] for name in stated.GUARD}
    columns["rules"] = {name: getattr(rules, name) for name in stated.RULES} if rules else None
    FormerTool.objects.update_or_create(name=before["name"], defaults=columns)


def _inherit_rules(tool: Tool, former: FormerTool | None) -> None:
    """Have the same people decide as about the last tool of the name, unless this one has rules."""
    if former is None or former.rules is None or Oversight.objects.filter(tool=tool).exists():
        return
    rules = dict(former.rules)
    groups = {name: pk for name, pk in rules.items() if name in GROUPS and pk}
    there = set(Group.objects.filter(pk__in=groups.values()).values_list("pk", flat=True))
    rules |= {name: None for name, pk in groups.items() if pk not in there}
    Oversight.objects.create(tool=tool, **rules)
    data = {"tool": tool.name, "before": oversight.Rules().as_json, "after": oversight.of(tool).as_json}
    data |= stated.states("rules", tool.pk)
    note(None, "tool.rules_changed", actor=SYSTEM, data=data | {"why": "the tool of this name before had them"})


def _as_columns(guard: Guard) -> dict[str, Any]:
    return {name: getattr(guard, name) for name in spec.INHERITED}


def _set(tool: Tool, columns: Columns) -> None:
    for name, value in columns.items():
        setattr(tool, name, value)


def _offering(*, published: bool) -> str:
    return "tool.published" if published else "tool.unpublished"


def _plain(value: Any) -> Any:
    """Return the value that JSON has for it; choices are text."""
    return str(value.value) if hasattr(value, "value") else value
