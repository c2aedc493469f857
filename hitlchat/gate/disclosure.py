"""The disclosure: what the person deciding is shown, frozen when the question is asked, and its digest binds a yes."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Prefetch, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base import canonical, database
from hitlchat.base.schemas import type_word
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import compiled
from hitlchat.gate import compared, deciders, oversight, prompt, question
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import Approval, Tool, ToolCall, delegation
from hitlchat.gate.provenance import Origin, kept
from hitlchat.gate.status import Status

Disclosure = dict[str, Any]

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
        **_of_tool(tool),
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
    more |= compared.frozen(tool.input_schema, call.arguments, not_given)
    return shown | {name: part for name, part in more.items() if part} | _known(provenance)


def renewed(before: Disclosure, call: ToolCall, tool: Tool, *, preview: dict[str, Any], why: str) -> Disclosure:
    """Disclose `call` as it is now, to ask again: what it would do, why it asks, and what was shown before."""
    decides = oversight.again(before["whoDecides"], call)
    shown = disclose(
        call,
        tool,
        caller_of(before),
        user_prompt=before["userPrompt"],
        preview=preview,
        provenance=kept(before.get("provenance"), before["arguments"], call.arguments),
        decides=decides,
        not_given=compared.still_not_given(before, call.arguments),
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
    origins = kept(disclosure.get("provenance"), disclosure["arguments"], edited)
    return {**disclosure, "arguments": edited, **_question(tool, edited), **_known(origins)}


def digest(disclosure: Disclosure) -> str:
    """Return the consent digest: SHA-256 over the canonical text."""
    return canonical.sha256(disclosure)


def difference(approval: Approval, call: ToolCall, tool: Tool | None) -> str | None:
    """Return what about `call` and `tool` is no longer as it was shown and approved, in words; None if all is."""
    decision = deciders.yeses(approval.pk, call.round).first()
    if decision is None:
        return gettext_noop("nobody approved it")
    if tool is None:
        return gettext_noop("the tool was deleted")
    shown = approval.disclosure
    if digest(shown) != approval.digest:
        return gettext_noop("the record of what was shown was changed")
    if decision.edited_arguments is not None:
        shown = with_edit(shown, decision.edited_arguments, tool)
    if digest(shown) != decision.digest:
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


def _of_tool(tool: Tool) -> dict[str, Any]:
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


def _facts(tool: Tool) -> list[str]:
    """Return the tool's own facts, and what became of its last calls: before them, if most went wrong."""
    facts: list[str] = tool.facts
    if question.is_one(tool):
        return facts
    found = [compared.Past(*row) for row in _last(tool.name)]
    since, are_all = database.now() - COMPARED, len(found) < READ
    became, went_wrong = compared.last_calls(found, tool.definition_hash, since, are_all=are_all)
    return [became, *facts] if went_wrong else [*facts, *filter(None, [became])]


@compiled
def _last(tool_name: str) -> QuerySet[ToolCall, Any]:
    """Return the last calls of a tool, whoever asked for them: so many are read, however many there are."""
    rows = ToolCall.objects.filter(tool_name=tool_name).order_by("-created_at")
    return rows.values_list("status", "definition_hash", "caller_kind", "created_at")[:READ]


def _before(call: ToolCall) -> dict[str, Any]:
    """Say that the same call ran lately: whoever asked for it may have given up waiting, and ask for it once more. And
    return what is otherwise in it than in the last approved call of its tool by its caller.
    """
    now = database.now()
    began = now - REPEATED
    rows = list(_ran(call.tool_name, call.caller_id, [began, now - ASKED, now - COMPARED], call.pk))
    approved = max((row for row in rows if row[4]), key=lambda row: row[3], default=None)
    last_time = compared.last_time(approved[2], call.arguments) if approved else {}
    last = next(
        (row for row in rows if row[0] and row[0] > began and canonical.are_alike(row[2], call.arguments)), None
    )
    if last is None:
        return {"lastTime": last_time}
    at = timezone.localtime(last[0], timezone.get_default_timezone())
    ran = translatable(f"The same call, with the same arguments, ran at {at:%H:%M %Z} {HOW_IT_RAN[Status(last[1])]}.")
    return {"ranBefore": ran, "lastTime": last_time}


@compiled
def _ran(tool_name: str, caller_id: int, since: list[datetime], but: UUID) -> QuerySet[ToolCall, Any]:
    """Return the calls that ran lately, and the last one that was approved."""
    # By place: a list is filled up to one of a few lengths.
    began, asked, compared_since = since[0], since[1], since[2]
    rows = ToolCall.objects.filter(tool_name=tool_name, caller_id=caller_id, status__in=HOW_IT_RAN).exclude(pk=but)
    approved = (
        rows.filter(created_at__gt=compared_since, approval__isnull=False).order_by("-created_at").values("pk")[:1]
    )
    lately, last = (
        found.order_by().values_list("started_at", "status", "arguments", "created_at", "approval")
        for found in (rows.filter(created_at__gt=asked, started_at__gt=began), rows.filter(pk=Subquery(approved)))
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


def _fields(schema: dict[str, Any]) -> list[list[str]]:
    """Return each argument's name and type in one word, in the order of the signature or of `x-order`."""
    properties = {name: part for name, part in schema.get("properties", {}).items() if isinstance(part, dict)}
    return [[name, type_word(properties[name], schema)] for name in compared.in_order(properties)]
