"""Exposure: which kinds of tools this installation offers at all, and up to which risk."""

from django.db import transaction
from django.db.models import F

from hitlchat.base.database import only
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import HitlMode
from hitlchat.gate.transition import note
from hitlchat.upstreams import catalog
from hitlchat.upstreams.access import OnlyPeople, require_administrator
from hitlchat.upstreams.changes import Loosening, NotConfirmed, loosening_back
from hitlchat.upstreams.models import ComposedTool, Exposure, ExposureMode, ToolState, UpstreamServer


class BadExposure(ValueError):
    """The setting is none; the message says what was expected."""


def standing() -> Exposure:
    """Return the exposure now; the defaults while nobody has changed them."""
    return only(Exposure.objects.all()) or Exposure()


def offers(mode: str, source: str) -> bool:
    """Return whether tools of `source` are offered to outside clients in this mode."""
    if mode == ExposureMode.BOTH:
        return True
    return (source == catalog.SOURCE) == (mode == ExposureMode.COMPOSED)


def returning(ceiling: int) -> list[Loosening]:
    """Return what this ceiling gives back that does not ask every time.

    Within a transaction: nobody changes it meanwhile.
    """
    _locked()
    back = ComposedTool.objects.filter(state=ToolState.WITHHELD, held=False, tool__isnull=False)
    back = back.filter(risk_inherent__gt=standing().ceiling, risk_inherent__lte=ceiling)
    back = back.filter(seen_digest=F("pinned_digest"), seen_profile=F("pinned_profile"))
    less = back.exclude(tool__hitl_mode=HitlMode.REQUIRED).select_related("server", "tool")
    return [loosening_back(row) for row in less.defer("seen", "pinned")]


def change(mode: str, ceiling: int, actor: Actor, *, confirmed: str | None = None) -> Exposure:
    """Tools above the ceiling leave the catalog at once, and come back when it is raised again.

    `confirmed`: as of `composing.apply`, for what would come back and not ask every time.
    BadExposure, NotConfirmed, OnlyAdministrators. OnlyPeople: a program may lower the ceiling and narrow the mode, not
    the other way.
    """
    if mode not in ExposureMode.values:
        raise BadExposure(f"mode: expected one of {', '.join(ExposureMode.values)}.")
    if not 1 <= ceiling <= 5:
        raise BadExposure("ceiling: expected a level from 1 to 5.")
    require_administrator(actor)
    with transaction.atomic():
        servers = _locked()
        kept = standing()
        before = kept.ceiling
        is_wider = kept.mode not in {mode, ExposureMode.BOTH}
        if (ceiling > before or is_wider) and not actor.is_person:
            raise OnlyPeople
        asked = NotConfirmed(returning(ceiling) if confirmed is not None else ())
        if asked.loosenings and confirmed != asked.digest:
            raise asked
        found, _ = Exposure.objects.update_or_create(pk=1, defaults={"mode": mode, "ceiling": ceiling})
        if (mode, ceiling) != (kept.mode, before):
            told = {"before": {"mode": kept.mode, "ceiling": before}, "after": {"mode": mode, "ceiling": ceiling}}
            note(None, "exposure.changed", actor=actor, data=told)
        for server in servers if ceiling != before else ():
            catalog.follow_all(server, ceiling, actor)
    return found


def _locked() -> list[UpstreamServer]:
    return list(UpstreamServer.objects.select_for_update().order_by("pk"))
