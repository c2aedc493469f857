"""The wording of a notice, without a model's words: as a mail, as text for Slack's webhooks, and as JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext_noop

from hitlchat.agent.model_client import DEMO_PATH, own_address
from hitlchat.base import canonical
from hitlchat.base.visible import see
from hitlchat.gate import disclosure
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import Approval, CallerKind
from hitlchat.notices.models import Item, Kind, Notice, Receiver
from hitlchat.secrets.detection import hidden, named
from hitlchat.secrets.masking import HIDDEN

LOOPBACK = {"127.0.0.1", "localhost", "[::1]"}
UNKNOWN = gettext_noop(
    "Set HITL_PUBLIC_URL to the address under which people reach this server, such as https://hitl.example.com."
)


def own() -> str:
    """Return our address without a slash at its end; empty where it is not known."""
    if settings.HITL_PUBLIC_URL:
        return str(settings.HITL_PUBLIC_URL)
    if set(settings.ALLOWED_HOSTS) <= LOOPBACK:
        return own_address.base_url.removesuffix(DEMO_PATH)
    return ""


def link(name: str, *args: object) -> str | None:
    """Return a link to a page of ours, which asks to sign in; nothing happens by following it."""
    base = own()
    return f"{base}{reverse(name, args=args)}" if base else None


MOST_ENTRIES = 20
LONGEST_VALUE = 200
DEEPEST = 4
# No more of a value is looked at.
LOOKED_AT = 1000


def masked(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with values that may be shown; of many, the first."""
    entries = list(arguments.items())
    found = {see(name).plain[:80]: _value(name, value, 1) for name, value in entries[:MOST_ENTRIES]}
    if len(entries) > MOST_ENTRIES:
        found["…"] = f"{len(entries) - MOST_ENTRIES} more"
    return found


def _value(name: str, value: Any, depth: int) -> Any:
    if named(name, in_doubt=True):
        return HIDDEN
    match value:
        case str():
            return _text(value)
        case dict() | list() if depth >= DEEPEST:
            return "…"
        case dict():
            return {see(k).plain[:80]: _value(k, each, depth + 1) for k, each in list(value.items())[:MOST_ENTRIES]}
        case list():
            return [_value("", each, depth + 1) for each in value[:MOST_ENTRIES]]
        case _:
            return value


def _text(text: str) -> str:
    # Hidden before it is cut: of a secret that a cut went through, the rest would not be known again.
    looked_at = text if len(text) <= LOOKED_AT else text[:LOOKED_AT].rpartition(" ")[0]
    shown = see(hidden(looked_at, in_doubt=True)).plain
    if len(text) <= LOOKED_AT and len(shown) <= LONGEST_VALUE:
        return shown
    return f"{shown[:LONGEST_VALUE]}… ({max(0, len(text) - LONGEST_VALUE):,} more)"


@dataclass(frozen=True)
class Facts:
    """Texts are as a card shows them: hidden characters stand as escapes."""

    id: str
    tool: str
    source: str
    asked_by: str
    person: str
    risk: int
    deadline: datetime
    link: str | None
    arguments: dict[str, Any] | None = None

    @property
    def risk_words(self) -> str:
        return f"L{self.risk} {RISK_LABELS[self.risk]}"

    @property
    def as_json(self) -> dict[str, Any]:
        told = {
            "id": self.id,
            "tool": self.tool,
            "source": self.source,
            "askedBy": self.asked_by,
            "person": self.person,
            "risk": self.risk,
            "deadline": self.deadline.isoformat(),
            "url": self.link,
        }
        return told if self.arguments is None else {**told, "arguments": self.arguments}


def facts(approval: Approval, *, arguments: bool) -> Facts:
    """Return the facts of a call that waits."""
    shown, call = approval.disclosure, approval.call
    assert call.deadline is not None
    return Facts(
        id=str(approval.pk),
        tool=line(call.tool_name),
        source=line(shown.get("tool", {}).get("origin") or call.source),
        asked_by=CallerKind(call.caller_kind).label,
        person=line(call.caller.get_username()),
        risk=disclosure.said(approval),
        deadline=call.deadline,
        link=link("approval", approval.pk),
        arguments=masked(call.arguments) if arguments else None,
    )


def line(text: str) -> str:
    """Return a text on one line, with hidden characters as escapes."""
    return see(" ".join(text.split())).plain[:200]


@dataclass(frozen=True)
class Burst:
    """The calls since the last notice, as they are now: `items` are the first of those that wait. `quiet`: the quiet
    hours that it was held back for.
    """

    items: tuple[Item, ...]
    waiting: int
    expired: int = 0
    answered: int = 0
    quiet: str = ""
    arguments: bool = False

    def heading(self, shown: Sequence[Facts]) -> str:
        if self.waiting == 1 and not self.expired:
            return f"A call waits for your answer: {shown[0].tool}"
        if not self.waiting:
            return "A call expired before you heard of it" if self.expired == 1 else _many(self.expired, "expired")
        return f"{_many(self.waiting, 'waits' if self.waiting == 1 else 'wait')} for your answer"

    @property
    def account(self) -> str:
        """Return the account of all that came in, where not all of it waits: nothing goes past anyone unsaid."""
        if not (self.expired or self.answered or self.quiet):
            return ""
        began = self.waiting + self.expired + self.answered
        when = f"While your quiet hours lasted ({self.quiet})" if self.quiet else "Since the last notice"
        parts = [
            f"{count:,} {word}"
            for count, word in (
                (self.waiting, "still waits" if self.waiting == 1 else "still wait"),
                (self.expired, "expired, not run"),
                (self.answered, "answered or withdrawn meanwhile"),
            )
            if count
        ]
        return f"{when}, {began:,} {'call' if began == 1 else 'calls'} waited: {', '.join(parts)}."


@dataclass(frozen=True)
class Outcome:
    """The outcome of one call that was told of in `notice`."""

    id: str
    notice: str
    tool: str
    outcome: str
    by: str
    at: datetime
    link: str | None

    @property
    def as_json(self) -> dict[str, Any]:
        told = {"id": self.id, "notice": self.notice, "tool": self.tool, "outcome": self.outcome}
        return {**told, "by": self.by or None, "at": self.at.isoformat(), "url": self.link}

    @property
    def words(self) -> str:
        return {"expired": "expired unanswered, not run", "withdrawn": "withdrawn, not run"}.get(
            self.outcome, self.outcome
        )


def _many(count: int, verb: str) -> str:
    return f"{count:,} {'call' if count == 1 else 'calls'} {verb}"


WIDTH = 10


def mail_waiting(receiver: Receiver, burst: Burst, shown: Sequence[Facts]) -> str:
    parts = [burst.account, *(_mail_line(each, receiver) for each in shown)]
    if (more := burst.waiting - len(shown)) > 0:
        parts.append(f"And {more:,} more.")
    return _whole(parts, asks=bool(burst.waiting))


def mail_decided(shown: Sequence[Outcome], count: int) -> str:
    lines = [f"{each.tool}: {each.words}{f' by {each.by}' if each.by else ''}" for each in shown]
    more = [f"And {count - len(shown):,} more."] if count > len(shown) else []
    return _whole(["\n".join(lines), *more], asks=False)


def _mail_line(told: Facts, receiver: Receiver) -> str:
    until = told.deadline.astimezone(receiver.zone)
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


# Instead of a backtick, which would end the quotation.
QUOTE = "\u02bc"


def slack_waiting(burst: Burst, shown: Sequence[Facts]) -> str:
    count = f"*{burst.waiting:,} {'call waits' if burst.waiting == 1 else 'calls wait'} for an answer*"
    lines = [count if burst.waiting else "", _escaped(burst.account), *map(_slack_line, shown)]
    if (more := burst.waiting - len(shown)) > 0:
        lines.append(f"And {more:,} more{_link(link('approvals'), 'all of them', ': ')}")
    return "\n".join(filter(None, lines))


def slack_decided(shown: Sequence[Outcome], count: int) -> str:
    lines = [f"{quoted(each.tool)}: {each.words}{f' by {quoted(each.by)}' if each.by else ''}" for each in shown]
    more = [f"And {count - len(shown):,} more."] if count > len(shown) else []
    return "\n".join([*lines, *more])


def quoted(text: str) -> str:
    """Text of others, as nothing but text."""
    return f"`{_escaped(see(' '.join(text.split())).plain.replace('`', QUOTE))[:400] or ' '}`"


def _slack_line(told: Facts) -> str:
    # Slack shows the time where its reader is; what follows the bar is for programs that do not.
    fallback = f"{told.deadline:%Y-%m-%d %H:%M} UTC"
    until = f"<!date^{told.deadline.timestamp():.0f}^{{date_short_pretty}} {{time}}|{fallback}>"
    who = f"{told.asked_by}, for {quoted(told.person)}"
    text = f"• {quoted(told.tool)} from {quoted(told.source)} · {told.risk_words} · {who} · until {until}"
    text += _link(told.link, "look at it", " · ")
    if told.arguments is None:
        return text
    return f"{text}\n{quoted(canonical.dumps(told.arguments))}"


def _link(url: str | None, words: str, before: str) -> str:
    return f"{before}<{url}|{words}>" if url else ""


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


MOST_LISTED = 20


@dataclass(frozen=True)
class Text:
    """A subject and a body, which may name the notice that it is of."""

    subject: str
    body: Callable[[Notice], str]


def waiting(receiver: Receiver, burst: Burst) -> Text:
    shown = [facts(each.approval, arguments=burst.arguments) for each in burst.items]
    match receiver.kind:
        case Kind.EMAIL:
            return Text(burst.heading(shown), lambda _: mail_waiting(receiver, burst, shown))
        case Kind.SLACK:
            return Text("", lambda _: _json({"text": slack_waiting(burst, shown)}))
        case _:
            return Text("", lambda notice: _event(notice, "approval.waiting", _waiting_data(burst, shown)))


def decided(receiver: Receiver, items: Sequence[Item], count: int, notices: Mapping[UUID, Notice | None]) -> Text:
    """Word what was decided. `notices`: the one in which each call waited."""
    shown = [_outcome(each, notices.get(each.approval_id)) for each in items]
    match receiver.kind:
        case Kind.EMAIL:
            subject = f"{shown[0].tool}: {shown[0].outcome}" if count == 1 else f"{count:,} calls have their outcome"
            return Text(subject, lambda _: mail_decided(shown, count))
        case Kind.SLACK:
            return Text("", lambda _: _json({"text": slack_decided(shown, count)}))
        case _:
            data = {"count": count, "approvals": [each.as_json for each in shown], "more": count - len(shown)}
            return Text("", lambda notice: _event(notice, "approval.decided", data))


def tested(receiver: Receiver, by: str) -> Text:
    said = f"A test by {line(by)}: notices of hitlchat arrive here."
    match receiver.kind:
        case Kind.EMAIL:
            return Text("Test of your notices", lambda _: f"{said}\n")
        case Kind.SLACK:
            return Text("", lambda _: _json({"text": f"A test by {quoted(by)}: notices of hitlchat arrive here."}))
        case _:
            return Text("", lambda notice: _event(notice, "test", {"message": said}))


def _outcome(item: Item, notice: Notice | None) -> Outcome:
    return Outcome(
        id=str(item.approval_id),
        notice=notice.message_id if notice else "",
        tool=line(item.approval.call.tool_name),
        outcome=item.outcome,
        by=line(item.by.get_username()) if item.by and item.outcome in ("approved", "declined") else "",
        at=item.at,
        link=link("approval", item.approval_id),
    )


def _waiting_data(burst: Burst, shown: Sequence[Facts]) -> dict[str, Any]:
    return {
        "waiting": burst.waiting,
        "expired": burst.expired,
        "answered": burst.answered,
        "approvals": [each.as_json for each in shown],
        "more": burst.waiting - len(shown),
        "url": link("approvals"),
    }


def _event(notice: Notice, name: str, data: dict[str, Any]) -> str:
    """Return the body that the Standard Webhooks specification recommends: type, timestamp, data."""
    told = {"type": name, "timestamp": notice.made_at.isoformat(), "data": {"notice": notice.message_id, **data}}
    return _json(told)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
