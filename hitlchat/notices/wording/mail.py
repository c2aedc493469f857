"""Notices as plain text, for people: nothing in them is loaded, counted or followed."""

from collections.abc import Sequence

from hitlchat.base import canonical
from hitlchat.notices.addressing import link
from hitlchat.notices.audience import zone_of
from hitlchat.notices.models import Receiver
from hitlchat.notices.wording.facts import Facts
from hitlchat.notices.wording.words import Burst, Outcome

WIDTH = 10


def waiting(receiver: Receiver, burst: Burst, shown: Sequence[Facts]) -> str:
    parts = [burst.account, *(_one(each, receiver) for each in shown)]
    if (more := burst.waiting - len(shown)) > 0:
        parts.append(f"And {more:,} more.")
    return _whole(parts, asks=bool(burst.waiting))


def decided(shown: Sequence[Outcome], count: int) -> str:
    lines = [f"{each.tool}: {each.words}{f' by {each.by}' if each.by else ''}" for each in shown]
    more = [f"And {count - len(shown):,} more."] if count > len(shown) else []
    return _whole(["\n".join(lines), *more], asks=False)


def _one(told: Facts, receiver: Receiver) -> str:
    until = told.deadline.astimezone(zone_of(receiver))
    rows = [
        ("Tool", told.tool),
        ("From", told.source),
        ("Asked by", f"{told.asked_by}, for {told.person}"),
        ("Risk", told.risk_words),
        ("Until", f"{until:%Y-%m-%d %H:%M:%S} {until.tzname()}"),
    ]
    rows += [("Look", told.link)] if told.link else []
    text = "\n".join(f"{name + ':':<{WIDTH}}{value}" for name, value in rows)
    if told.arguments is None:
        return text
    return f"{text}\nArguments (what looks like a secret is hidden):\n{canonical.pretty(told.arguments, indent=2)}"


def _whole(parts: Sequence[str], *, asks: bool) -> str:
    inbox, settings = link("approvals"), link("notices:page")
    where = f"All that waits: {inbox}" if inbox else "Open hitlchat and look under Approvals."
    end = (
        f"{where}\nNothing is decided by following a link: you sign in, see the call, and answer there." if asks else ""
    )
    why = f"You get this since you asked for it in hitlchat{f': {settings}' if settings else ', under Notices'}"
    return "\n\n".join(filter(None, [*parts, end, why])) + "\n"
