"""Exposure: what is offered, under which names and questions, up to which risk; all changes of one Apply, or none."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base import database
from hitlchat.base.lookalikes import shape
from hitlchat.base.sentences import translatable
from hitlchat.gate import stated, stopping, tools
from hitlchat.gate.actor import Actor
from hitlchat.gate.loosening import weaker_names
from hitlchat.gate.models import HitlMode, Tool
from hitlchat.gate.transition import note
from hitlchat.upstreams import catalog
from hitlchat.upstreams.catalog import other_names
from hitlchat.upstreams.changes import (
    Change,
    Loosening,
    NotConfirmed,
    Objection,
    Refused,
    Settings,
    check,
    loosening,
    loosening_back,
    rewords,
    sending_elsewhere,
    settings_of,
    suspicion,
    vouches,
)
from hitlchat.upstreams.models import ComposedTool, Exposure, ExposureMode, ToolState, UpstreamServer
from hitlchat.upstreams.risk import aliases as rules
from hitlchat.upstreams.servers import OnlyPeople, require_administrator, require_person

VOUCHED = ("vouch", "vouched_digest", "vouched_at", "vouched_by", "vouch_note")
MISSING = Objection("exposed", "The tool no longer exists.")
Wanted = tuple[ComposedTool, str | None]
"""A tool and the alias that somebody wants for it: None for the one that it has, "" for the default."""


@dataclass(frozen=True)
class Names:
    given: dict[UUID, str]
    problems: dict[UUID, list[Objection]]


class NotListed(Refused):
    """The tool cannot be accepted as it is now: its server does not list it."""


class BadExposure(ValueError):
    """An invalid mode or ceiling; the message says what was expected."""


def proposals(rows: Iterable[ComposedTool]) -> dict[UUID, str]:
    """The alias of each tool: the one it has, else the one it would get. With their servers and tools loaded."""
    return aliases([(row, None) for row in rows]).given


def aliases(wanted: list[Wanted]) -> Names:
    """Return one alias for each tool, no two alike, and none that another tool has; or what speaks against it."""
    used = set(Tool.objects.values_list("name", flat=True))
    chosen = {row.pk: alias for row, alias in wanted if alias and not (row.tool and row.tool.name == alias)}
    others = [(row, alias) for row, alias in wanted if row.pk not in chosen]
    # The alias that each has, unless the default is asked for; new ones keep clear of all others.
    given = {row.pk: row.tool.name for row, alias in others if row.tool and alias in {None, row.tool.name}}
    offers = {row.pk: (row.server.name, row.name) for row, _ in others if row.pk not in given}
    renamed = {row.tool.name for row, _ in others if row.tool and row.pk in offers}
    assigned = rules.assign(offers.values(), used - renamed)
    given |= {pk: assigned[offer] for pk, offer in offers.items()}
    defaults, alike = set(given.values()), Counter(map(shape, chosen.values()))
    problems: dict[UUID, list[Objection]] = {}
    for row, _ in wanted:
        if (alias := chosen.get(row.pk)) is None:
            continue
        own = {row.tool.name} if row.tool else set()
        if sentence := rules.objection(alias, (used - own) | defaults):
            problems[row.pk] = [Objection("alias", f"Alias: {sentence}")]
        elif alike[shape(alias)] > 1:
            sentence = translatable(f"Alias: “{alias}” is, or looks like, another tool's new alias.")
            problems[row.pk] = [Objection("alias", sentence)]
        given[row.pk] = alias
    return Names(given, problems)


def apply(changes: Sequence[Change], actor: Actor, *, confirmed: str | None = None) -> list[ComposedTool]:
    """Carry out all of `changes` at once; return the tools in the same order. `confirmed`: the digest of the last
    NotConfirmed; None where the caller asks. Raises: Refused, NotConfirmed, OnlyAdministrators; OnlyPeople, a program
    loosens something, vouches for it, or chooses what the approver reads
    """
    require_administrator(actor)
    wanted = {each.tool: each if actor.is_person else replace(each, warnings_read=False) for each in changes}
    clash = Objection("exposed", "Another tool was just given one of these names. Try again.")
    with database.unique(Refused({tool: [clash] for tool in wanted})):
        rows = lock(wanted)
        if missing := wanted.keys() - rows.keys():
            raise Refused({tool: [MISSING] for tool in missing})
        question = _question(rows, wanted)
        if not actor.is_person and (
            question.loosenings
            or any(rewords(rows[pk], change) or vouches(rows[pk], change) for pk, change in wanted.items())
        ):
            raise OnlyPeople
        is_open = question.loosenings and confirmed not in {None, question.digest}
        _apply(rows, wanted, actor, question if is_open else None)
    return [rows[change.tool] for change in changes]


def problems(changes: Sequence[Change], actor: Actor) -> dict[UUID, list[Objection]]:
    """Return what would speak against `changes`, for each tool; nothing is locked or changed."""
    ids = [change.tool for change in changes]
    rows = {row.pk: row for row in ComposedTool.objects.select_related("tool", "server").filter(pk__in=ids)}
    wanted = {change.tool: change for change in changes if change.tool in rows}
    return _plan(rows, wanted, actor)[0].problems | {pk: [MISSING] for pk in ids if pk not in rows}


def accept(
    tool_id: UUID, digest: str, actor: Actor, *, keep_mode: bool = False, warnings_read: bool = False
) -> ComposedTool:
    """Accept a tool as its server lists it now, if that is the record of this digest. It asks every time from then on,
    unless `keep_mode`. Raises: NotListed, Refused, OnlyAdministrators, OnlyPeople
    """
    require_administrator(actor)
    require_person(actor)
    with transaction.atomic():
        row = lock([tool_id]).get(tool_id)
        if row is None or not row.listed:
            raise NotListed({tool_id: [Objection("exposed", "Its server no longer lists it.")]})
        if row.seen_digest != digest:
            raise Refused({tool_id: [Objection("digest", "The tool has changed again. Review it again.")]})
        if not warnings_read and (found := suspicion(row)):
            raise Refused({tool_id: [found]})
        if elsewhere := list(sending_elsewhere(row, other_names(row.server))):
            raise Refused({tool_id: elsewhere})
        update = catalog.Update(row.server, actor)
        _accept(row, update, keep_mode=keep_mode)
        update.follow(row)
        _save([row])
        update.finish()
    return row


def _accept(row: ComposedTool, update: catalog.Update, *, keep_mode: bool) -> None:
    before, changed = settings_of(row), row.held or row.seen_digest != row.pinned_digest
    data = {
        "tool": row.tool.name if row.tool else row.name,
        "server": row.server.name,
        "listedAs": row.name,
        "before": {"digest": row.pinned_digest},
        "after": {"digest": row.seen_digest},
    }
    _pin(row, update.actor)
    note(None, "tool.accepted", actor=update.actor, data=data)
    update.add(row, "tool.accepted", pinned=True)
    if changed and not keep_mode and row.tool is not None and row.tool.hitl_mode != HitlMode.REQUIRED:
        _set(row.tool, {"hitl_mode": HitlMode.REQUIRED.value}, update.actor)
        update.add(row, "tool.configured", before=before, after=settings_of(row))


def lock(ids: Iterable[UUID]) -> dict[UUID, ComposedTool]:
    """Lock tools and their servers, the servers first as everywhere."""
    found = ComposedTool.objects.filter(pk__in=list(ids))
    servers = UpstreamServer.objects.select_for_update().filter(pk__in=found.values("server")).order_by("pk")
    by_id = {server.pk: server for server in servers}
    rows = {row.pk: row for row in found.select_related("tool").select_for_update(of=("self",)).order_by("pk")}
    for row in rows.values():
        row.server = by_id[row.server_id]
    return rows


def _question(rows: dict[UUID, ComposedTool], wanted: dict[UUID, Change]) -> NotConfirmed:
    """Return the loosenings to confirm. Of tools that get another name, the gate may have something to say."""
    given = aliases([(rows[pk], change.alias) for pk, change in wanted.items()]).given
    names = {pk: name for pk, name in given.items() if (tool := rows[pk].tool) is None or tool.name != name}
    weaker = weaker_names(set(names.values()), [pk for pk in names if rows[pk].tool])
    found = (loosening(rows[pk], change, weaker.get(names.get(pk, ""), ())) for pk, change in wanted.items())
    return NotConfirmed([each for each in found if each])


def _apply(
    rows: dict[UUID, ComposedTool], wanted: dict[UUID, Change], actor: Actor, question: NotConfirmed | None
) -> None:
    """Apply the changes. `question`: a confirmation to demand once nothing else speaks against them."""
    names, updates = _plan(rows, wanted, actor)
    if names.problems:
        raise Refused(names.problems)
    if question:
        raise question
    vouched = [rows[pk] for pk, change in wanted.items() if vouches(rows[pk], change)]
    fresh = [rows[pk].pk for pk in wanted if rows[pk].tool is None]
    for pk, change in wanted.items():
        _change(rows[pk], change, names.given[pk], updates[rows[pk].server_id])
    if made := [tool for pk in fresh if (tool := rows[pk].tool)]:
        tools.add_all(made, actor)
    _save(list(rows.values()))
    ComposedTool.objects.bulk_update(vouched, VOUCHED, batch_size=catalog.AT_A_TIME)
    for update in updates.values():
        update.finish()


def _plan(
    rows: dict[UUID, ComposedTool], wanted: dict[UUID, Change], actor: Actor
) -> tuple[Names, dict[UUID, catalog.Update]]:
    """The aliases with all that speaks against the changes, and each server's update, still empty."""
    names = aliases([(rows[pk], change.alias) for pk, change in wanted.items()])
    servers = {row.server_id: row.server for row in rows.values()}
    updates = {pk: catalog.Update(server, actor) for pk, server in servers.items()}
    others = {pk: other_names(server) for pk, server in servers.items()}
    for pk, change in wanted.items():
        row, update = rows[pk], updates[rows[pk].server_id]
        update.assess(row)
        if objections := check(row, change, update.ceiling, others[row.server_id]):
            names.problems[pk] = [*names.problems.get(pk, ()), *objections]
    return names, updates


def _change(row: ComposedTool, change: Change, alias: str, update: catalog.Update) -> None:
    before, events_before = settings_of(row), len(update.events)
    if change.exposes(row):
        _pin(row, update.actor)
    row.exposed = row.exposed if change.exposed is None else change.exposed
    row.description = row.description if change.description is None else change.description
    why = ""
    if vouches(row, change):
        why = gettext_noop("what is known of its risk was changed")
        _vouch(row, change, update.actor)
    if row.tool is None:
        # Stored by whoever changes many; under the same id, so that all of them get theirs by one statement.
        row.tool = Tool(id=row.pk, **change.settings, published=False, **update.columns(row, alias))
    else:
        _set(row.tool, {**change.settings, "name": alias}, update.actor)
    update.follow(row, changed=why)
    if (after := settings_of(row)) == before:
        return
    if exposing := next((event for event in update.events[events_before:] if event.name == "tool.exposed"), None):
        exposing.data["settings"] = {"before": before, "after": after}
    else:
        update.add(row, "tool.configured", before=before, after=after)


def _set(tool: Tool, columns: Settings, actor: Actor) -> None:
    if all(getattr(tool, name) == value for name, value in columns.items()):
        return
    rule = (tool.hitl_mode, tool.condition)
    for name, value in columns.items():
        setattr(tool, name, value)
    tools.change(tool.pk, columns, actor)
    if (tool.hitl_mode, tool.condition) != rule:
        stopping.withdraw_allowed(tool.pk, actor=actor, why=gettext_noop("the rule that allowed it was changed"))


def _pin(row: ComposedTool, actor: Actor) -> None:
    row.pinned, row.pinned_digest, row.pinned_profile = row.seen, row.seen_digest, row.seen_profile
    row.accepted_at, row.accepted_by_id, row.held = timezone.now(), actor.user_id, False


def _vouch(row: ComposedTool, change: Change, actor: Actor) -> None:
    if change.vouch is not None:
        row.vouch, row.vouched_digest = change.vouch, row.seen_digest if change.vouch else ""
        row.vouched_at, row.vouched_by_id = (timezone.now(), actor.user_id) if change.vouch else (None, None)
    row.vouch_note = (row.vouch_note if change.vouch_note is None else change.vouch_note) if row.standing_vouch else ""


def _save(rows: list[ComposedTool]) -> None:
    for some in _pieces([row for row in rows if row.tool_id == row.pk]):
        some.filter(tool=None).update(tool=F("pk"))
    pinned = [row for row in rows if row.pinned is row.seen]
    for some in _pieces(pinned):
        # Not sent once more: thousands of records take their time.
        who = {"accepted_at": pinned[0].accepted_at, "accepted_by": pinned[0].accepted_by_id}
        seen = {"pinned": F("seen"), "pinned_digest": F("seen_digest"), "pinned_profile": F("seen_profile")}
        some.update(**seen, **who)
    catalog.store(rows, ["held", "state", "reason", *catalog.RISK_COLUMNS, "exposed", "description"])


def _pieces(rows: list[ComposedTool]) -> Iterator[QuerySet[ComposedTool]]:
    for start in range(0, len(rows), catalog.AT_A_TIME):
        yield ComposedTool.objects.filter(pk__in=[row.pk for row in rows[start : start + catalog.AT_A_TIME]])


def offers(mode: str, source: str) -> bool:
    """Return whether tools of `source` are offered to outside clients in this mode."""
    return mode == ExposureMode.BOTH or (source == catalog.SOURCE) == (mode == ExposureMode.COMPOSED)


def change(mode: str, ceiling: int, actor: Actor, *, confirmed: str | None = None) -> Exposure:
    """Change mode and ceiling: tools above it leave the catalog at once. `confirmed`: as of `apply`. Raises:
    BadExposure, NotConfirmed, OnlyAdministrators; OnlyPeople, a program raises the ceiling or widens the mode
    """
    if mode not in ExposureMode.values:
        raise BadExposure(f"mode: expected one of {', '.join(ExposureMode.values)}.")
    if not 1 <= ceiling <= 5:
        raise BadExposure("ceiling: expected a level from 1 to 5.")
    require_administrator(actor)
    with transaction.atomic():
        servers = list(UpstreamServer.objects.select_for_update().order_by("pk"))
        now = Exposure.current()
        before, after = {"mode": now.mode, "ceiling": now.ceiling}, {"mode": mode, "ceiling": ceiling}
        is_wider = now.mode not in {mode, ExposureMode.BOTH}
        if (ceiling > now.ceiling or is_wider) and not actor.is_person:
            raise OnlyPeople
        question = NotConfirmed(_returning(now.ceiling, ceiling) if confirmed is not None else ())
        if question.loosenings and confirmed != question.digest:
            raise question
        found, _ = Exposure.objects.update_or_create(pk=1, defaults=after)
        if before != after:
            data = {"before": before, "after": after} | stated.states("exposure", "")
            note(None, "exposure.changed", actor=actor, data=data)
        for server in servers if ceiling != now.ceiling else ():
            catalog.follow_all(server, actor)
    return found


def _returning(before: int, after: int) -> list[Loosening]:
    """Return the tools that another ceiling brings back and that do not ask every time."""
    back = ComposedTool.objects.filter(state=ToolState.WITHHELD, held=False, tool__isnull=False)
    back = back.filter(risk_inherent__gt=before, risk_inherent__lte=after)
    back = back.filter(seen_digest=F("pinned_digest"), seen_profile=F("pinned_profile"))
    less = back.exclude(tool__hitl_mode=HitlMode.REQUIRED).select_related("server", "tool")
    return [loosening_back(row) for row in less.defer("seen", "pinned")]
