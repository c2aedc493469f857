"""The Composed Tools drawer: what of all servers is offered here, on which terms, and one form to change each."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext
from django_htmx.http import replace_url

from hitlchat.accounts.access import HtmxRequest
from hitlchat.gate import deciders
from hitlchat.gate.actor import Actor, actor_of
from hitlchat.gate.models import HitlMode
from hitlchat.upstreams import exposure
from hitlchat.upstreams.changes import FIELDS, USUAL, Change, NotConfirmed, Objection, Refused
from hitlchat.upstreams.exposure import BadExposure
from hitlchat.upstreams.models import ComposedTool, Exposure, UpstreamServer, Vouch
from hitlchat.upstreams.pages import drawer_list
from hitlchat.upstreams.pages import server as page
from hitlchat.upstreams.pages.drawer_list import Line, Rest, Unknown, Wanted, lines_of, number, rest_of, unknown_of
from hitlchat.upstreams.pages.summary import administrator_only, server_named

_LINE = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([a-z_]+)")
_STAMP = re.compile(r"[0-9a-f]{64}\.[0-9a-f]{64}")
_TEXTS = tuple(name for name in FIELDS if name != "signed_in_only")
_FIELDS = {"stamp", "exposed", "warnings_read", *FIELDS}
# Stands for a text that is no number of seconds, so that the check of the change rejects it.
_NO_NUMBER = -1
CRITICAL = 5
REST = ("select", "deselect")
MOST_REFUSED = 50
# What a page that was opened long ago may have loaded piece by piece.
MOST_AT_ONCE = 1000
_TAKEN_BACK = gettext_noop("Your changes to this tool were undone.")
_CHANGED = gettext_noop("The tools that are not shown have changed since you looked. Review them again.")


@dataclass(frozen=True)
class Sent:
    """The form of one server as it came. `rest_seen`: the stamp of the tools after those that were shown.
    `unknown_seen`: that of the tools to vouch for, if it is all of them.
    """

    lines: dict[UUID, Line]
    missing: int
    confirmed: str
    rest: str
    rest_now: Rest | None
    rest_seen: str
    unknown_now: Unknown | None
    unknown_seen: str

    def changes(self) -> list[Change]:
        """Return the changes to make; a tool that is and stays hidden keeps its settings."""
        wished = {
            pk: _change_of(line)
            for pk, line in self.lines.items()
            if line.typed.keys() - {"warnings_read"} and (line.row.exposed or line.now["exposed"])
        }
        if self.rest and self.rest_now is not None:
            others = self.rest_now.free if self.rest == "select" else self.rest_now.exposed
            wished = {pk: Change(pk, exposed=self.rest == "select") for pk in others} | wished
        for pk, digest in self.unknown_now.tools.items() if self.unknown_now else ():
            wish = wished.get(pk, Change(pk, digest=digest))
            if wish.vouch is None and wish.exposed is not False:
                wished[pk] = replace(wish, vouch=Vouch.SCAN.value)
        return list(wished.values())


def read_form(data: Mapping[str, str], server: UpstreamServer) -> Sent:
    """Read the form of a server. Raises: BadRequest if no page of ours sends this"""
    fields = _by_tool(data)
    rows = server.tools.select_related("tool").filter(pk__in=list(fields))
    lines = {line.row.pk: _bound(line, fields[line.row.pk]) for line in lines_of(rows)}
    if (rest := data.get("rest", "")) not in {"", *REST}:
        raise BadRequest(f"rest: expected one of {', '.join(REST)}")
    start, ceiling = number(data.get("from", "")), Exposure.current().ceiling
    return Sent(
        lines,
        missing=len(fields) - len(lines),
        confirmed=data.get("confirmed", ""),
        rest=rest,
        rest_now=rest_of(server, Wanted.of(data), start, ceiling) if rest else None,
        rest_seen=data.get("rest_stamp", ""),
        unknown_now=unknown_of(server) if data.get("vouch_all") else None,
        unknown_seen=data.get("vouch_all", ""),
    )


def _by_tool(data: Mapping[str, str]) -> dict[UUID, dict[str, str]]:
    found: dict[UUID, dict[str, str]] = {}
    for key, value in data.items():
        if "." not in key:
            continue
        match = _LINE.fullmatch(key)
        if not match or match[2] not in _FIELDS:
            raise BadRequest(f"{key[:100]}: expected the id of a tool, and one of {', '.join(sorted(_FIELDS))}")
        found.setdefault(UUID(match[1]), {})[match[2]] = value
    for tool, fields in found.items():
        if not _STAMP.fullmatch(fields.get("stamp", "")):
            raise BadRequest(f"{tool}.stamp: expected two digests, as the page has them")
    return found


def _bound(line: Line, fields: dict[str, str]) -> Line:
    """Return the line with the fields that differ from the settings of the tool."""
    is_open = "description" in fields
    filled: dict[str, Any] = {name: fields[name].replace("\r\n", "\n") for name in _TEXTS if name in fields}
    ticks = ("exposed", "warnings_read", *(("signed_in_only",) if is_open else ()))
    filled |= {name: name in fields for name in ticks}
    typed = {name: value for name, value in filled.items() if _plain(name, value) != _plain(name, line.settings[name])}
    return replace(line, typed=typed, stamp_seen=fields["stamp"], is_open=is_open)


def _plain(name: str, value: str | bool) -> str | bool:
    """Return a text as browsers send it: fields of one line have lost their line breaks."""
    if isinstance(value, bool):
        return value
    text = value.replace("\r\n", "\n")
    return text if name == "description" else text.replace("\r", "").replace("\n", "")


def _change_of(line: Line) -> Change:
    digest, _, settled = line.stamp_seen.partition(".")
    typed = dict(line.typed)
    if "deadline_seconds" in typed:
        text = typed["deadline_seconds"].strip()
        is_number = text.isdecimal() and len(text) <= 20 and int(text)
        typed["deadline_seconds"] = int(text) if is_number else _NO_NUMBER if text else USUAL
    return Change(line.row.pk, digest=digest, settled=settled, **typed)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a form: all of it was applied unless there are `problems`, a `conflict`, or a `question`."""

    applied: int | None = None
    problems: tuple[Line, ...] = ()
    unmentioned: int = 0
    conflict: str = ""
    question: NotConfirmed | None = None

    @property
    def has_critical(self) -> bool:
        return self.question is not None and any(each.risk >= CRITICAL for each in self.question.loosenings)

    @property
    def refused(self) -> int:
        return len(self.problems) + self.unmentioned


def carry_out(sent: Sent, actor: Actor) -> Outcome:
    """Apply what was sent. Raises: OnlyAdministrators"""
    if sent.rest_now and sent.rest_now.stamp != sent.rest_seen:
        return Outcome(conflict=_(_CHANGED))
    if sent.unknown_now and sent.unknown_now.stamp != sent.unknown_seen:
        return Outcome(conflict=_("The tools have changed since you looked. Review them again."))
    if sent.missing:
        return Outcome(unmentioned=sent.missing)
    try:
        return Outcome(applied=len(exposure.apply(sent.changes(), actor, confirmed=sent.confirmed)))
    except Refused as refused:
        return refusal(sent, refused.problems)
    except NotConfirmed as question:
        return Outcome(question=question)


def refusal(sent: Sent, problems: Mapping[UUID, list[Objection]]) -> Outcome:
    """Return the lines that have problems, each with these beside its fields."""
    unsent = [pk for pk in problems if pk not in sent.lines][:MOST_REFUSED]
    rows = ComposedTool.objects.select_related("tool", "server").filter(pk__in=unsent)
    lines = sent.lines | {line.row.pk: line for line in lines_of(rows)}
    refused = [_refused(line, problems[pk]) for pk, line in lines.items() if pk in problems]
    return Outcome(problems=tuple(refused), unmentioned=len(problems) - len(refused))


def _refused(line: Line, found: list[Objection]) -> Line:
    """Return the line with its problems; if the tool has changed, its fields are reset."""
    if any(each.field in {"digest", "settled"} for each in found):
        sentences = [*(each.sentence for each in found), _TAKEN_BACK]
        return Line(line.row, line.default, problems={"whole": sentences}, is_stale=True)
    # Fields that have a place of their own; without one it speaks against the whole tool.
    places = {name for name, _ in line.objections}
    if line.now["hitl_mode"] != HitlMode.CONDITIONAL:
        places.discard("condition")
    problems: dict[str, list[str]] = {}
    for each in found:
        problems.setdefault(each.field if each.field in places else "whole", []).append(each.sentence)
    return replace(line, problems=problems)


@administrator_only.form
def drawer(request: HtmxRequest) -> HttpResponse:
    """Show the drawer, with the servers page behind it unless that is open; or change mode and ceiling."""
    if request.method == "POST":
        return _offer(request)
    context = _everything(request)
    if _is_on_page(request):
        return replace_url(render(request, "servers/drawer/_drawer.html", context), reverse("servers:drawer"))
    return _page(request, context)


@administrator_only.reads
def filtered(request: HttpRequest) -> HttpResponse:
    return render(request, "servers/drawer/_servers.html", _servers(request))


@administrator_only.form
def lines(request: HtmxRequest, name: str) -> HttpResponse:
    server = server_named(name)
    if request.method == "POST":
        return _apply(request, server)
    start = number(request.GET.get("from", ""))
    wanted, ceiling = Wanted.of(request.GET.dict()), Exposure.current().ceiling
    piece = drawer_list.piece_of(server, wanted, slice(start, start + _most_in(request.GET)), ceiling)
    return render(request, "servers/drawer/_lines.html", {"piece": piece, "filter": wanted, "ceiling": ceiling})


@administrator_only.reads
def details(request: HttpRequest, tool_id: UUID) -> HttpResponse:
    """Show the rest of one tool: all of its texts, its schema, and settings that are seldom changed."""
    row = get_object_or_404(ComposedTool.objects.select_related("server", "tool", "vouched_by"), pk=tool_id)
    return render(request, "servers/drawer/_details.html", {"line": lines_of([row])[0], **_words()})


@administrator_only.posts
def check(request: HttpRequest, name: str) -> HttpResponse:
    """Show the objections to a form that is being filled in; nothing is changed."""
    sent = read_form(request.POST.dict(), server_named(name))
    outcome = refusal(sent, exposure.problems(sent.changes(), actor_of(request)))
    found = sent.lines | {line.row.pk: line for line in outcome.problems}
    context = {"lines": found.values(), "ceiling": Exposure.current().ceiling, "filter": Wanted(), **_words()}
    return render(request, "servers/drawer/_checked.html", context)


@administrator_only.posts
def require(request: HtmxRequest) -> HttpResponse:
    """Let all exposed tools ask every time. That adds oversight, so nobody has to confirm it."""
    lenient = ComposedTool.objects.filter(exposed=True).exclude(tool__hitl_mode=HitlMode.REQUIRED)
    wishes = [Change(pk, hitl_mode=HitlMode.REQUIRED.value) for pk in lenient.values_list("pk", flat=True)]
    try:
        many = len(exposure.apply(wishes, actor_of(request)))
    except Refused as refused:
        words = str(refused)
    else:
        words = ngettext("{many} tool asks every time now.", "{many} tools ask every time now.", many)
        words = words.format(many=many) if many else _("All exposed tools already ask every time.")
    if not _is_on_page(request):
        messages.success(request, words)
        return redirect("servers:drawer")
    answer = render(request, "servers/drawer/_required.html", {"words": words, **_totals(), "is_oob": True})
    return _announce(answer, "drawer-changed")


def _offer(request: HtmxRequest) -> HttpResponse:
    """Change mode and ceiling. The answer is always 200, which htmx shows; the form says what became of it."""
    sent = {name: request.POST.get(name, "")[:20] for name in ("mode", "ceiling", "was_mode", "was_ceiling")}
    if not all(sent[name].isdecimal() for name in ("ceiling", "was_ceiling")):
        raise BadRequest("ceiling, was_ceiling: expected a level from 1 to 5")
    outcome = _offered(sent, request)
    if outcome.applied is not None and not _is_on_page(request):
        return redirect("servers:drawer")
    context: dict[str, Any] = {"offered": outcome}
    if outcome.question:
        context["chosen"] = {"mode": sent["mode"], "ceiling": int(sent["ceiling"])}
    if not _is_on_page(request):
        return _page(request, _everything(request) | context)
    answer = render(request, "servers/drawer/_exposure.html", _totals() | context | {"is_oob": True})
    return _announce(answer, "servers-changed", "drawer-changed") if outcome.applied else answer


def _offered(sent: dict[str, str], request: HttpRequest) -> Outcome:
    now, ceiling = Exposure.current(), int(sent["ceiling"])
    if (now.mode, str(now.ceiling)) != (sent["was_mode"], sent["was_ceiling"]):
        words = _("Someone else changed the offered tools in the meantime: {mode}, up to L{ceiling}.")
        return Outcome(conflict=words.format(mode=_(now.get_mode_display()), ceiling=now.ceiling))
    try:
        exposure.change(sent["mode"], ceiling, actor_of(request), confirmed=request.POST.get("confirmed", ""))
    except BadExposure as error:
        return Outcome(conflict=str(error))
    except NotConfirmed as question:
        return Outcome(question=question)
    return Outcome(applied=(sent["mode"] != now.mode) + (ceiling != now.ceiling))


def _apply(request: HtmxRequest, server: UpstreamServer) -> HttpResponse:
    """Apply the form of a server, and show its section again: as it is now, or as it was filled in."""
    sent = read_form(request.POST.dict(), server)
    outcome = carry_out(sent, actor_of(request))
    if outcome.applied is not None and not _is_on_page(request):
        return redirect(f"{reverse('servers:drawer')}?server={server.name}")
    filled: dict[UUID, Line] = {}
    if outcome.applied is None:
        filled = {pk: line for pk, line in sent.lines.items() if line.typed}
        filled |= {line.row.pk: line for line in outcome.problems if line.row.pk in sent.lines}
    ceiling, wanted = Exposure.current().ceiling, Wanted.of(request.POST.dict())
    piece = drawer_list.piece_of(server, wanted, slice(0, _most_in(request.POST)), ceiling, filled)
    section = drawer_list.section_of(server, drawer_list.counts_of(wanted, ceiling), piece)
    if not _is_on_page(request):
        context = _everything(request)
        context["sections"] = [section if each.server == server else each for each in context["sections"]]
        return _page(request, context | {"outcome": outcome, "sent": sent})
    context = {"section": section, "outcome": outcome, "sent": sent, **_totals(), **_filter(request.POST.dict())}
    answer = render(request, "servers/drawer/_applied.html", context | {"is_oob": True, **_words()})
    return _announce(answer, "servers-changed") if outcome.applied else answer


def _most_in(query: QueryDict) -> int:
    return min(max(number(query.get("most", "")), drawer_list.PIECE), MOST_AT_ONCE)


def _announce(answer: HttpResponse, *events: str) -> HttpResponse:
    answer.headers["HX-Trigger"] = json.dumps(dict.fromkeys(events, ""))
    return answer


def _page(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    return render(request, "servers/drawer/page.html", page.context(request) | context | {"is_page": True})


def _everything(request: HttpRequest) -> dict[str, Any]:
    return {"section": "servers", **_totals(), **_servers(request)}


def _totals() -> dict[str, Any]:
    found = drawer_list.summary()
    chosen = {"mode": found["exposure"].mode, "ceiling": found["exposure"].ceiling}
    unseen = max(0, found["exposed"] - drawer_list.MOST_CHIPS)
    chips = {"chips": drawer_list.chips(), "unseen_chips": unseen}
    return {"summary": found, **chips, "chosen": chosen, "ceiling": chosen["ceiling"]}


def _servers(request: HttpRequest) -> dict[str, Any]:
    wanted, ceiling = Wanted.of(request.GET.dict()), Exposure.current().ceiling
    opened = dict.fromkeys(request.GET.getlist("server"), _most_in(request.GET))
    found = drawer_list.sections(wanted, opened, ceiling)
    many = sum(each.counts["found"] for each in found)
    return {"sections": found, "ceiling": ceiling, "found": many, **_filter(request.GET.dict()), **_words()}


def _filter(query: dict[str, str]) -> dict[str, Any]:
    return {"filter": Wanted.of(query), "shown": [(key, label) for key, (label, _) in drawer_list.SHOWN.items()]}


def _words() -> dict[str, Any]:
    return {
        "signed_in_only_help": deciders.what_signed_in_only_means(),
        "usual_seconds": settings.HITL_TIMEOUT_SECONDS,
    }


def _is_on_page(request: HtmxRequest) -> bool:
    """Return whether a script of the servers page asks, not a browser that restores a page."""
    return bool(request.htmx) and not request.htmx.history_restore_request
