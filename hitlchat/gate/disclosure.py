"""The disclosure: what the person deciding is shown, frozen when the question is asked, and its digest binds a yes.

Beside the call itself it may state defaults, currencies, what was otherwise in the last such call, and what became of
the tool's last calls. Each part is optional: a disclosure without it says nothing about that.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Prefetch, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base import canonical, database
from hitlchat.base.schemas import type_word
from hitlchat.base.sentences import part, translatable
from hitlchat.base.statements import compiled
from hitlchat.gate import deciders, oversight, prompt, question, schema
from hitlchat.gate.actor import Caller
from hitlchat.gate.contents import spelled
from hitlchat.gate.models import Approval, CallerKind, Tool, ToolCall, delegation
from hitlchat.gate.provenance import Origin, left_by_edit
from hitlchat.gate.status import SETTLED, STARTED, Status

Disclosure = dict[str, Any]
Arguments = dict[str, Any]

LONGEST_USER_PROMPT = 2000
# How long a call is told of whose like is asked for again, and what became of it.
REPEATED = timedelta(hours=1)
# So many of the last calls of a tool are compared with one.
LOOKED_THROUGH = 100
# So many of a tool's last calls, by anyone, are read to count some that are over.
READ = 50
# It may have waited for its yes for so long before.
ASKED = timedelta(days=1)
# The calls that one is compared with are no older.
COMPARED = timedelta(days=90)
HOW_IT_RAN = {
    Status.EXECUTING: gettext_noop("and has not ended"),
    Status.SUCCEEDED: gettext_noop("and succeeded"),
    Status.FAILED: gettext_noop("and failed"),
    Status.UNKNOWN: gettext_noop("with an unknown outcome"),
}

# So many arguments that are otherwise than last time are named, each with so much of its value.
MOST_DIFFERENT: Final = 50
LONGEST_BEFORE: Final = 80
# So many of a tool's last calls are counted.
COUNTED: Final = 20
WENT_WRONG: Final = (Status.FAILED, Status.UNKNOWN, Status.DECLINED)
NEVER_RAN: Final = gettext_noop("It has never run here.")
ONLY_TESTED: Final = gettext_noop("It has run here only in tests.")
CHANGED: Final = gettext_noop("It has not run since it was changed.")
CURRENCIES: Final = (
    "AED AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF ILS INR JPY KRW MXN NOK NZD PLN RON SEK SGD THB TRY USD ZAR"
)
_CODE: Final = re.compile(rf"(?<![A-Za-z])(?:{CURRENCIES.replace(' ', '|')})(?![A-Za-z])")
_CODE_OF_NAME: Final = re.compile(rf"(?:_|-)({CURRENCIES.replace(' ', '|')})\Z", re.IGNORECASE)
_GIVEN_CODE: Final = re.compile(r"[A-Z]{3}\Z")


class Suggested(NamedTuple):
    """A declined call, and what its person said to do instead."""

    arguments: Arguments
    instead: str


class Past(NamedTuple):
    """An earlier call of a tool of the same name."""

    status: str
    definition: str
    caller_kind: str
    asked_at: datetime


def shown_risk(approval: Approval) -> int:
    """Return the risk level as it was shown when the question was asked last.

    Falls back to the call's own where the disclosure is deferred; both are written together.
    """
    if "disclosure" in approval.get_deferred_fields():
        return approval.call.risk_level
    return int(approval.disclosure["risk"])


def sentence(call: ToolCall) -> str:
    """Return `call` in one line, wherever it is listed: as it was asked last, or as it would be if nobody was asked."""
    if hasattr(call, "approval"):
        return call.approval.prompt
    return _sentence(call.tool or Tool(), call.tool_name, call.arguments)


def with_words(calls: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
    """Return `calls` with the words of their tools, which `sentence` reads."""
    return calls.prefetch_related(Prefetch("tool", Tool.objects.only("title", "origin", "prompt_template")))


def deadline_of(tool: Tool, at_most: int | None = None) -> datetime:
    seconds = tool.deadline_seconds or settings.HITL_TIMEOUT_SECONDS
    return database.now() + timedelta(seconds=seconds if at_most is None else min(seconds, at_most))


def disclose(
    call: ToolCall,
    tool: Tool,
    caller: Caller,
    *,
    user_prompt: str,
    preview: dict[str, Any] | None = None,
    provenance: list[Origin] | None = None,
    decides: oversight.Frozen,
    not_given: Collection[str] = (),
) -> Disclosure:
    """Everything the card shows about `call`, and who `decides`. No text written by a model is in it but the arguments
    themselves. `provenance`: where their values come from, if that is known. `not_given`: those that are defaults.
    """
    assert call.deadline is not None
    shown = {
        "call": str(call.pk),
        **of_tool(tool),
        "caller": {"kind": caller.kind, "user": caller.user_id, "name": caller.user_name},
        "conversation": str(call.conversation_id) if call.conversation_id else None,
        "arguments": call.arguments,
        **_question(tool, call.arguments),
        "reason": call.reason,
        "rule": call.rule,
        "attended": deciders.is_attended(call.token_id),
        "whoDecides": decides,
        "deadline": call.deadline.isoformat(),
        "userPrompt": user_prompt[:LONGEST_USER_PROMPT],
    }
    more = {"agents": delegation.agents(call.conversation_id), "preview": preview, **_before(call)}
    more |= {
        "notGiven": list(not_given),
        "notDefault": not_default(tool.input_schema, call.arguments),
        "currencies": currencies(tool.input_schema, call.arguments),
    }
    return shown | {name: part for name, part in more.items() if part} | _known(provenance)


def of_tool(tool: Tool) -> dict[str, Any]:
    """Return what a card says of a tool, as it is now."""
    return {
        "tool": {
            "id": str(tool.pk),
            "name": tool.name,
            "title": tool.title,
            "source": tool.source,
            "origin": tool.origin,
            "definition": tool.definition_hash,
        },
        "fields": _fields(tool.input_schema),
        "risk": tool.risk_level,
        "inherentRisk": tool.care,
        "riskUnknown": tool.risk_unknown,
        "signedInOnly": tool.signed_in_only,
        "facts": _facts(tool),
    }


def renewed(before: Disclosure, call: ToolCall, tool: Tool, *, preview: dict[str, Any], why: str) -> Disclosure:
    """Disclose `call` as it is now, to ask again: what it would do, why it asks, and what was shown before."""
    decides = oversight.again(before["whoDecides"], call)
    shown = disclose(
        call,
        tool,
        caller_of(before),
        user_prompt=before["userPrompt"],
        preview=preview,
        provenance=left_by_edit(before.get("provenance"), before["arguments"], call.arguments),
        decides=decides,
        not_given=still_not_given(before, call.arguments),
    )
    # Marking a client as attended later lets its word count for no question that was asked before.
    attended = shown["attended"] and before["attended"]
    again = {"round": call.round + 1, "why": why, "before": before["preview"]}
    if "attempt" in before:
        shown |= {"attempt": before["attempt"], "lastTime": before.get("lastTime", {})}
    return {**shown, "attended": attended, "again": again}


def caller_of(shown: Disclosure) -> Caller:
    caller = shown["caller"]
    return Caller(caller["kind"], caller["user"], caller["name"])


def with_edit(disclosure: Disclosure, edited: dict[str, Any], tool: Tool) -> Disclosure:
    """Return the same question about other arguments. An edit changes nothing else, least of all the tool."""
    origins = left_by_edit(disclosure.get("provenance"), disclosure["arguments"], edited)
    return {**disclosure, "arguments": edited, **_question(tool, edited), **_known(origins)}


def digest(disclosure: Disclosure) -> str:
    """Return the consent digest: SHA-256 over the canonical text."""
    return canonical.sha256(disclosure)


def not_given(input_schema: dict[str, Any], given: str | Arguments) -> list[str]:
    """Return the arguments that are filled in from the schema, since `given`, which fits it, is without them."""
    filled = [name for name, part in _properties(input_schema) if "default" in part]
    names = schema.parse_arguments(given) if filled and isinstance(given, str) else given
    return [name for name in filled if name not in names]


def still_not_given(before: dict[str, Any], arguments: Arguments) -> list[str]:
    """Return those that were not given when `before` was disclosed, and that nobody has changed since."""
    same = {name: canonical.dumps(value) for name, value in before["arguments"].items()}
    names = before.get("notGiven", [])
    return [name for name in names if name in arguments and same[name] == canonical.dumps(arguments[name])]


def not_default(input_schema: dict[str, Any], arguments: Arguments) -> list[str]:
    """Return the arguments that have a default and another value."""
    parts = ((name, part) for name, part in _properties(input_schema) if "default" in part and name in arguments)
    return [name for name, part in parts if not canonical.are_alike(part["default"], arguments[name])]


def currencies(input_schema: dict[str, Any], arguments: Arguments) -> dict[str, str]:
    """Return the currency of each number that the schema gives one: by `x-currency`, which has a code or the name of
    the argument with it, else in its title, description or name.
    """
    found = ((name, _currency(name, part, arguments)) for name, part in _properties(input_schema))
    return {name: code for name, code in found if code and _is_number(arguments.get(name))}


def last_time(before: Arguments, now: Arguments) -> dict[str, Any]:
    """Return what in `now` is otherwise than in the arguments `before`, with the values that they had."""
    changed = [name for name in now if name in before and not canonical.are_alike(before[name], now[name])]
    added, missing = (
        [name for name in these if name not in others] for these, others in ((now, before), (before, now))
    )
    more = sum(max(0, len(names) - MOST_DIFFERENT) for names in (changed, added, missing))
    parts = {
        "changed": {name: _cut(before[name]) for name in changed[:MOST_DIFFERENT]},
        "added": added[:MOST_DIFFERENT],
        "missing": {name: _cut(before[name]) for name in missing[:MOST_DIFFERENT]},
        "more": more,
    }
    return {name: part for name, part in parts.items() if part}


def attempt(suggested: Sequence[Suggested], now: Arguments) -> dict[str, Any]:
    """Return the parts of a disclosure about an attempt after others, which is compared with the last of them alone."""
    if not suggested:
        return {}
    last = suggested[-1]
    facts = {"number": len(suggested) + 1, "instead": last.instead}
    return {"attempt": facts, "lastTime": last_time(last.arguments, now)}


def last_calls(calls: Collection[Past], definition: str, since: datetime, *, are_all: bool) -> tuple[str, bool]:
    """Return what became of a tool's last calls, and whether most went wrong. Empty: nothing can be said.

    `calls`: the last of its name, the newest first; `are_all`: there are no others.
    """
    # What a tool did with another definition says nothing of what it does now, nor do tests by its author.
    was_tested = any(call.caller_kind == CallerKind.STUDIO and call.status in STARTED for call in calls)
    calls = [call for call in calls if call.caller_kind != CallerKind.STUDIO]
    same = [call for call in calls if call.definition == definition]
    settled = [Status(call.status) for call in same if call.status in SETTLED and call.asked_at > since][:COUNTED]
    if settled:
        return _became(settled), 2 * sum(map(settled.count, WENT_WRONG)) > len(settled)
    if any(call.status in STARTED for call in same):
        return "", False
    if any(call.status in STARTED for call in calls):
        return CHANGED, False
    return (ONLY_TESTED if was_tested else NEVER_RAN) if are_all else "", False


def difference(approval: Approval, call: ToolCall, tool: Tool | None) -> str | None:
    """Return what about `call` and `tool` is no longer as it was shown and approved, in words; None if all is."""
    yeses = [*deciders.yeses(approval.pk, call.round)]
    if not yeses:
        return gettext_noop("nobody approved it")
    if tool is None:
        return gettext_noop("the tool was deleted")
    shown = approval.disclosure
    if digest(shown) != approval.digest:
        return gettext_noop("the record of what was shown was changed")
    # Where several are needed, nobody edits: the next one would have read something else.
    if yeses[0].edited_arguments is not None:
        shown = with_edit(shown, yeses[0].edited_arguments, tool)
    if {digest(shown)} != {each.digest for each in yeses}:
        return gettext_noop("the approval was given for something else")
    return next((words for words, is_same in _comparisons(shown, call, tool) if not is_same), None)


def _known(provenance: list[Origin] | None) -> dict[str, Any]:
    """Return it as a part of a disclosure; also if it is empty, since without it nobody can say."""
    return {} if provenance is None else {"provenance": provenance}


def _question(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    if template := tool.prompt_template:
        pieces = prompt.pieces(template, tool.name, arguments)
    else:
        pieces = prompt.usual(tool.name, tool.title, tool.origin, arguments)
    return {"prompt": _sentence(tool, tool.name, arguments), "promptPieces": [[*piece] for piece in pieces]}


def _sentence(tool: Tool, name: str, arguments: dict[str, Any]) -> str:
    if tool.prompt_template:
        return prompt.render(tool.prompt_template, name, arguments)
    return prompt.plain(prompt.usual(name, tool.title, tool.origin, arguments))


def _facts(tool: Tool) -> list[str]:
    """Return the tool's own facts, and what became of its last calls: before them, if most went wrong."""
    facts: list[str] = tool.facts
    if question.is_one(tool):
        return facts
    found = [Past(*row) for row in _last(tool.name)]
    since, are_all = database.now() - COMPARED, len(found) < READ
    became, went_wrong = last_calls(found, tool.definition_hash, since, are_all=are_all)
    return [became, *facts] if went_wrong else [*facts, *filter(None, [became])]


@compiled
def _last(tool_name: str) -> QuerySet[ToolCall, Any]:
    """Return the last calls of a tool, whoever asked for them: so many are read, however many there are."""
    rows = ToolCall.objects.filter(tool_name=tool_name).order_by("-created_at")
    return rows.values_list("status", "definition_hash", "caller_kind", "created_at")[:READ]


def _before(call: ToolCall) -> dict[str, Any]:
    """Return what to say of earlier calls: that the same one ran within the hour, since its caller may have given up
    waiting and asked again, and how the last approved one of the tool differs.
    """
    now = database.now()
    began = now - REPEATED
    rows = list(_ran(call.tool_name, call.caller_id, [began, now - ASKED, now - COMPARED], call.pk))
    approved = max((row for row in rows if row[4]), key=lambda row: row[3], default=None)
    different = last_time(approved[2], call.arguments) if approved else {}
    last = next(
        (row for row in rows if row[0] and row[0] > began and canonical.are_alike(row[2], call.arguments)), None
    )
    if last is None:
        return {"lastTime": different}
    at = timezone.localtime(last[0], timezone.get_default_timezone())
    ran = translatable(f"The same call, with the same arguments, ran at {at:%H:%M %Z} {HOW_IT_RAN[Status(last[1])]}.")
    return {"ranBefore": ran, "lastTime": different}


@compiled
def _ran(tool_name: str, caller_id: int, since: list[datetime], but: UUID) -> QuerySet[ToolCall, Any]:
    """Select the calls that ran within the hour, and the last approved one."""
    # By place: a list is filled up to one of a few lengths.
    began, created_since, compared_since = since[0], since[1], since[2]
    # What has not started says nothing here, and is in no index for this.
    ran = {"started_at__isnull": False, "status__in": HOW_IT_RAN}
    rows = ToolCall.objects.filter(tool_name=tool_name, caller_id=caller_id, **ran).exclude(pk=but)
    approved = (
        rows.filter(created_at__gt=compared_since, approval__isnull=False).order_by("-created_at").values("pk")[:1]
    )
    lately, last = (
        found.order_by().values_list("started_at", "status", "arguments", "created_at", "approval")
        for found in (
            rows.filter(created_at__gt=created_since, started_at__gt=began),
            rows.filter(pk=Subquery(approved)),
        )
    )
    return lately.union(last, all=True).order_by("-started_at")[:LOOKED_THROUGH]


def _comparisons(shown: Disclosure, call: ToolCall, tool: Tool) -> list[tuple[str, bool]]:
    conversation = str(call.conversation_id) if call.conversation_id else None
    shown_tool, shown_caller = shown["tool"], shown["caller"]
    return [
        (gettext_noop("the call is a different one"), shown["call"] == str(call.pk)),
        (
            gettext_noop("the tool is a different one"),
            (shown_tool["id"], shown_tool["name"]) == (str(tool.pk), tool.name),
        ),
        (gettext_noop("the tool's source changed"), shown_tool["source"] == tool.source == call.source),
        (gettext_noop("the tool's definition changed"), shown_tool["definition"] == tool.definition_hash),
        (gettext_noop("the arguments changed"), canonical.dumps(shown["arguments"]) == canonical.dumps(call.arguments)),
        (
            gettext_noop("the caller changed"),
            (shown_caller["kind"], shown_caller["user"]) == (call.caller_kind, call.caller_id),
        ),
        (gettext_noop("the conversation changed"), shown["conversation"] == conversation),
        (
            gettext_noop("the agents that it came through changed on record"),
            shown.get("agents", []) == delegation.agents(call.conversation_id),
        ),
        (gettext_noop("who decides changed on record"), oversight.is_as_shown(shown["whoDecides"], call)),
        (gettext_noop("the rules it was asked under changed on record"), shown["rule"] == call.rule),
    ]


def _fields(input_schema: dict[str, Any]) -> list[list[str]]:
    """Return each argument's name and type in one word, by its number in `x-order`, else as they come."""
    properties = dict(_properties(input_schema))
    numbers = {name: part["x-order"] for name, part in properties.items() if _is_number(part.get("x-order"))}
    names = sorted(properties, key=lambda name: (name not in numbers, numbers.get(name, 0)))
    return [[name, type_word(properties[name], input_schema)] for name in names]


def _properties(input_schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, each in input_schema.get("properties", {}).items():
        if isinstance(each, dict):
            yield name, each


def _became(settled: list[Status]) -> str:
    many, count = len(settled), Counter(settled)
    if many == 1:
        label = settled[0].label.lower()
        return translatable(f"Its last call: {label}.")
    if count[Status.SUCCEEDED] == many:
        return translatable(f"Its last {many} calls succeeded.")
    parts = {
        Status.SUCCEEDED: part(f"{count[Status.SUCCEEDED]} succeeded"),
        Status.FAILED: part(f"{count[Status.FAILED]} failed"),
        Status.UNKNOWN: part(f"{count[Status.UNKNOWN]} with an unknown outcome"),
        Status.DECLINED: part(f"{count[Status.DECLINED]} declined"),
        Status.ANSWERED: part(f"{count[Status.ANSWERED]} answered by a person"),
        Status.EXPIRED: part(f"{count[Status.EXPIRED]} expired"),
        Status.WITHDRAWN: part(f"{count[Status.WITHDRAWN]} withdrawn"),
        Status.REFUSED: part(f"{count[Status.REFUSED]} refused"),
        Status.REJECTED: part(f"{count[Status.REJECTED]} rejected"),
    }
    counted = ", ".join(words for status, words in parts.items() if count[status])
    return translatable(f"Its last {many} calls: {counted}.")


def _currency(name: str, part: dict[str, Any], arguments: Arguments) -> str:
    given = part.get("x-currency")
    if isinstance(given, str):
        code = arguments.get(given, given)
        return code if isinstance(code, str) and _GIVEN_CODE.match(code) else ""
    if found := _CODE_OF_NAME.search(name):
        return found[1].upper()
    # Of two, nobody can say which is meant.
    codes = {*_CODE.findall(f"{part.get('title', '')} {part.get('description', '')}")}
    return codes.pop() if len(codes) == 1 else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cut(value: Any) -> list[Any]:
    """Return the beginning of a value, as text, and how many characters are left out."""
    text = spelled(value, indent=None)
    return [text[:LONGEST_BEFORE], max(0, len(text) - LONGEST_BEFORE)]
