"""One upstream tool and the history of all: what was accepted, what it has become, and what to do about that."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.diff import sides
from hitlchat.base.sentences import translated
from hitlchat.base.visible import see
from hitlchat.gate.actor import actor_of
from hitlchat.gate.models import HitlMode, ToolCall
from hitlchat.gate.status import Status
from hitlchat.upstreams import catalog, changes, endpoint, exposure
from hitlchat.upstreams.changes import Change, Refused
from hitlchat.upstreams.models import ComposedTool, ToolEvent, ToolState, Vouch
from hitlchat.upstreams.pages import summary
from hitlchat.upstreams.pages.summary import administrator_only
from hitlchat.upstreams.risk.fingerprint import FIELDS, Offered, difference
from hitlchat.upstreams.risk.limits import unchecked
from hitlchat.upstreams.risk.rubric import assess_server, assess_tool, compose, says_it_writes
from hitlchat.upstreams.risk.scan import blocks, findings_of, scan, trips

AT_A_TIME = 25
# Of a member of a record, in characters; of a comparison, in places.
LONGEST = 70_000
MOST_PLACES = 200
PINNING = ("tool.exposed", "tool.accepted", "tool.pinned_anew")
WORDS = {
    "tool.exposed": gettext_noop("Exposed"),
    "tool.hidden": gettext_noop("No longer exposed"),
    "tool.returned": gettext_noop("Back in the catalog"),
    "tool.changed": gettext_noop("Withheld: its server changed its definition"),
    "tool.withheld": gettext_noop("Withheld"),
    "tool.unfit": gettext_noop("Withheld: cannot be offered in this form"),
    "tool.gone": gettext_noop("Gone from its server's list"),
    "tool.accepted": gettext_noop("Accepted the current definition"),
    "tool.configured": gettext_noop("Settings changed"),
    "tool.pinned_anew": gettext_noop("Fingerprint renewed by newer rules: the same definition"),
    "tool.deleted": gettext_noop("Its server was removed"),
}
SETTINGS = {
    "alias": gettext_noop("Alias"),
    **{name: changes.WORDS[name] for name in changes.FIELDS if name != "alias"},
}
_MEANS = {
    "session": gettext_noop("in the browser"),
    "token": gettext_noop("with a token"),
    "console": gettext_noop("at the console"),
    "elicitation": gettext_noop("over MCP"),
}
_LINKS = {
    "tool.changed": gettext_noop("What changed"),
    "tool.accepted": gettext_noop("What changed"),
    "tool.exposed": gettext_noop("Definition"),
}
LOOKS = {
    ToolState.NEW: ("", "clock"),
    ToolState.HIDDEN: ("", "ban"),
    ToolState.EXPOSED: ("succeeded", "check"),
    ToolState.WITHHELD: ("unknown", "alert"),
    ToolState.GONE: ("", "ban"),
    ToolState.UNFIT: ("failed", "failed"),
}


def line_of(event: ToolEvent) -> dict[str, Any]:
    """Return one event in words. `link`: the name of its own page, if that has more than a line of a list."""
    means = _MEANS.get(event.means, gettext_noop("by a program in their name"))
    return {
        "event": event,
        "words": WORDS.get(event.name, event.name),
        "link": _LINKS.get(event.name, ""),
        "who": event.actor.get_username() if event.actor else _("hitlchat, automatically"),
        "means": means if event.actor else "",
        # Not where the words give it.
        "reason": "" if event.name in {"tool.changed", "tool.gone"} else str(event.data.get("reason", "")),
        "settings": _settings_changed(event),
    }


def _settings_changed(event: ToolEvent) -> list[dict[str, str]]:
    """Return the settings that were changed; empty texts where there was none."""
    if event.name not in {"tool.configured", "tool.exposed"}:
        return []
    # Whoever exposes a tool settles the rest of it in the same moment.
    data = event.data if event.name == "tool.configured" else event.data.get("settings") or {}
    found = []
    for name, words in SETTINGS.items():
        before, after = (_in_words(name, str((data.get(key) or {}).get(name, ""))) for key in ("before", "after"))
        if before != after:
            found.append({"words": _(words), "before": before, "after": after})
    return found


def _in_words(name: str, value: str) -> str:
    if name == "hitl_mode" and value in HitlMode.values:
        return _(HitlMode(value).label)
    if name == "vouch" and value in Vouch.values:
        return _(Vouch(value).label)
    if name == "deadline_seconds" and value == "None":
        return ""
    if name == "signed_in_only":
        return _("Yes") if value == "True" else _("No")
    return value


def page_of(events: QuerySet[ToolEvent], query: QueryDict) -> dict[str, Any]:
    """Return the page that ends before the event that `before` in the query names; `older`: where the next one ends."""
    before = query.get("before", "")
    if before.isascii() and before.isdigit():
        events = events.filter(pk__lt=int(before[:18]))
    related = events.select_related("actor", "tool__server").defer("record", "tool__seen", "tool__pinned")
    rows = list(related.order_by("-pk")[: AT_A_TIME + 1])
    shown = rows[:AT_A_TIME]
    return {"lines": list(map(line_of, shown)), "older": shown[-1].pk if len(rows) > AT_A_TIME else None}


def fields(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the members of a record. `cut`: how many characters are not shown, only of what cannot be offered."""
    found = []
    for name in (name for name in FIELDS if name in record):
        value = record[name]
        is_code = not isinstance(value, str)
        text = canonical.pretty(value, indent=2) if is_code else value
        cut = max(0, len(text) - LONGEST)
        found.append({"words": FIELDS[name], "text": see(text[:LONGEST]), "is_code": is_code, "cut": cut})
    return found


def compare(before: dict[str, object], after: dict[str, object]) -> dict[str, Any]:
    """Return the first places in which two records differ, and how many more there are."""
    found, places = difference(before, after), []
    for each in found[:MOST_PLACES]:
        old, new = sides(each.before, each.after)
        # Of a part of a schema or of the connection, the place says more than the field's name.
        places.append({"found": each, "before": old, "after": new, "is_inside": each.where.count("/") > 1})
    return {"places": places, "more": max(0, len(found) - MOST_PLACES)}


def acceptance_of(row: ComposedTool) -> dict[str, Any]:
    """Return what accepting a changed tool means. `withdrawn`: calls ended by the change; `must_read`: its warnings."""
    pinned, seen = Offered.from_json(row.pinned), Offered.from_json(row.seen)
    # Would any of the server's tools say that it writes, if this one were as it was accepted?
    wrote = row.server.writes
    if wrote and not says_it_writes(pinned):
        others = ComposedTool.objects.filter(server=row.server, listed=True).exclude(pk=row.pk)
        wrote = any(
            says_it_writes(Offered.from_json(each)) for each in others.values_list("seen", flat=True).iterator()
        )
    facts = endpoint.facts_of(row.server, writes=row.server.writes)
    then = endpoint.facts_of(row.server, writes=wrote)
    old, new = scan(pinned, catalog.other_names(row.server)), findings_of(row.warnings)
    accepted = {(each.id, each.where, each.excerpt) for each in old}
    gated = catalog.is_gated(row)
    stated = row.stated_risk(row.pinned_digest)
    before = compose(assess_server(then), assess_tool(pinned, then), gated=gated, poisoned=trips(old), stated=stated)
    after = compose(assess_server(facts), assess_tool(seen, facts), gated=True, poisoned=trips(new))
    withdrawn = 0
    if row.tool and (changed := ToolEvent.objects.filter(tool=row, name="tool.changed").last()):
        calls = ToolCall.objects.filter(tool=row.tool, status=Status.WITHDRAWN, settled_at__gte=changed.at)
        withdrawn = calls.count()
    return {
        "comparison": compare(row.pinned, row.seen),
        "before": before,
        "after": after,
        "riskier": after.inherent > before.inherent,
        "new_warnings": [each for each in new if (each.id, each.where, each.excerpt) not in accepted],
        "withdrawn": withdrawn,
        "loses_mode": not gated,
        "must_read": blocks(new),
    }


@administrator_only.reads
def history(request: HttpRequest) -> HttpResponse:
    """All events; `server` and `tool` narrow them by a part of the name that it had then."""
    wanted = {name: request.GET.get(name, "").strip().replace("\x00", "")[:128] for name in ("server", "tool")}
    found = ToolEvent.objects.filter(**{f"{name}_name__icontains": text for name, text in wanted.items() if text})
    context = {"section": "servers", "history": page_of(found, request.GET), "wanted": wanted}
    return render(request, "servers/ledger/history.html", context | {"any": any(wanted.values())})


@administrator_only.reads
def event(request: HttpRequest, event_id: int) -> HttpResponse:
    """Return one event, and how its record differs from the one that had been accepted before."""
    found = get_object_or_404(ToolEvent.objects.select_related("actor", "tool__server"), pk=event_id)
    context: dict[str, Any] = {"section": "servers", "event": found, "line": line_of(found)}
    if found.record is not None:
        own = Q(tool=found.tool_id) if found.tool_id else Q(server_name=found.server_name, tool_name=found.tool_name)
        # At these events somebody, or a newer fingerprint, fixed the tool's record.
        pinning = ToolEvent.objects.filter(own, name__in=PINNING, record__isnull=False, pk__lt=found.pk)
        before = pinning.order_by("-pk").first()
        context |= {"before": before, "fields": fields(found.record)}
        if before is not None:
            context["comparison"] = compare(before.record, found.record)
    return render(request, "servers/ledger/event.html", context)


@administrator_only.reads
def tool(request: HttpRequest, name: str, tool_id: UUID) -> HttpResponse:
    return _shown(request, _row(name, tool_id))


@administrator_only.reads
def by_alias(request: HttpRequest, alias: str) -> HttpResponse:  # noqa: ARG001
    """Show a tool to whoever knows no more of it than what it is called here."""
    row = get_object_or_404(ComposedTool.objects.select_related("server"), tool__name=alias)
    return redirect("servers:tool", row.server.name, row.pk)


@administrator_only.posts
def accept(request: HttpRequest, name: str, tool_id: UUID) -> HttpResponse:
    """Accept a tool; 409 if it is not as it was shown, or something has to be read first."""
    row = _row(name, tool_id)
    try:
        accepted = exposure.accept(
            row.pk,
            request.POST.get("digest", ""),
            actor_of(request),
            keep_mode=request.POST.get("keep_mode") == "on",
            warnings_read=request.POST.get("warnings_read") == "on",
        )
    except Refused as error:
        return _shown(request, _row(name, tool_id), [each.sentence for each in error.problems[row.pk]])
    sentence = " ".join(filter(None, [_("The new definition is accepted."), translated(accepted.reason)]))
    if accepted.state == ToolState.EXPOSED and accepted.tool is not None:
        sentence = _("The new definition is accepted, and the tool is exposed with it. Approval: {asks}.")
        sentence = sentence.format(asks=_(accepted.tool.get_hitl_mode_display()).lower())
    messages.success(request, sentence)
    return redirect("servers:tool", name, tool_id)


@administrator_only.posts
def stop(request: HttpRequest, name: str, tool_id: UUID) -> HttpResponse:
    row = _row(name, tool_id)
    try:
        exposure.apply([Change(row.pk, exposed=False)], actor_of(request))
    except Refused as error:
        return _shown(request, _row(name, tool_id), [each.sentence for each in error.problems[row.pk]])
    messages.success(request, _("The tool is no longer exposed. Its settings are kept in case you expose it again."))
    return redirect("servers:tool", name, tool_id)


def _row(name: str, tool_id: UUID) -> ComposedTool:
    rows = ComposedTool.objects.select_related("server", "tool", "accepted_by", "vouched_by")
    return get_object_or_404(rows, pk=tool_id, server__name=name)


def _shown(request: HttpRequest, row: ComposedTool, problems: Sequence[str] = ()) -> HttpResponse:
    """Show a tool. `problems`: why the last request was not carried out."""
    # Somebody has to look at it before it can be offered again.
    has_changed = bool(row.pinned_digest) and (row.held or row.seen_digest != row.pinned_digest)
    acceptance = acceptance_of(row) if has_changed else None
    new_warnings = acceptance["new_warnings"] if acceptance else ()
    look, icon = LOOKS[ToolState(row.state)]
    accepted = row.pinned if row.pinned_digest else None
    record = accepted or row.seen
    context = {
        "section": "servers", "row": row, "server": row.server, "tool": row.tool, "look": look, "look_icon": icon,
        "problems": problems, "acceptance": acceptance, "accepted": accepted is not None, "fields": fields(record),
        "reasons": list(dict.fromkeys(map(summary.risk_reason, row.risk_reasons))),
        "basis": "" if row.standing_vouch else catalog.basis_of(row),
        "intact": accepted is None or canonical.sha256(accepted) == row.pinned_digest,
        "unchecked": "" if row.problems else unchecked(record.get("inputSchema") or {}),
        "listed_fields": fields(row.seen) if has_changed else (),
        "warnings": [each for each in findings_of(row.warnings) if each not in new_warnings],
        "history": page_of(ToolEvent.objects.filter(tool=row), request.GET),
    }  # fmt: skip
    return render(request, "servers/ledger/tool.html", context, status=409 if problems else 200)
