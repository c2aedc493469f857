"""The wording of a notice, without a model's words: as a mail, as text for Slack's webhooks, and as JSON."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext_noop

from hitlchat.agent.model_client import own_address
from hitlchat.base import canonical
from hitlchat.base.visible import see, warned
from hitlchat.gate import disclosure
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import Approval, CallerKind
from hitlchat.notices.models import Item, Kind, Notice, Receiver
from hitlchat.secrets.detection import hidden, named
from hitlchat.secrets.masking import HIDDEN

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
UNKNOWN: Final = gettext_noop(
    "Set HITL_PUBLIC_URL to the public address of this server, such as https://hitl.example.com."
)
# How many calls are listed in one notice.
MOST_LISTED: Final = 20
# Of arguments: how many of each object, how long, how deep; and no more of a value than the last is looked at.
MOST_ENTRIES: Final = 20
LONGEST_VALUE: Final = 200
DEEPEST: Final = 4
LOOKED_AT: Final = 1000
# The column of values in mails.
WIDTH: Final = 10
# Instead of a backtick, which would end the quotation.
QUOTE: Final = "\u02bc"
ENDS: Final = {
    "expired": "expired unanswered, not run",
    "withdrawn": "withdrawn, not run",
    "answered": "not run, answered",
}

Facts = dict[str, Any]
# The subject of a mail, and the body of any notice.
Text = tuple[str, str]


def own() -> str:
    """Return our address without a slash at its end; empty where it is unknown."""
    if settings.HITL_PUBLIC_URL:
        return str(settings.HITL_PUBLIC_URL)
    if set(settings.ALLOWED_HOSTS) <= LOOPBACK:
        return own_address.url
    return ""


def link(name: str, *args: object) -> str | None:
    """Return a link to a page of ours, which asks to sign in; nothing happens by following it."""
    base = own()
    return f"{base}{reverse(name, args=args)}" if base else None


def facts(approval: Approval, *, arguments: bool) -> Facts:
    """Return the facts of a call that waits, as JSON. Texts are as a card shows them, hidden characters as escapes."""
    shown, call = approval.disclosure, approval.call
    assert call.deadline is not None
    found = {
        "id": str(approval.pk),
        "tool": line(call.tool_name),
        "source": line(shown.get("tool", {}).get("origin") or call.source),
        "askedBy": CallerKind(call.caller_kind).label,
        "person": line(call.caller.get_username()),
        "risk": disclosure.shown_risk(approval),
        "deadline": call.deadline.isoformat(),
        "url": link("approval", approval.pk),
    }
    if arguments:
        found["arguments"] = masked(call.arguments)
    # Of what the notice says: a warning names words, and nothing that is hidden or left out may be among them.
    parts = [found["tool"], found["source"], found.get("arguments")]
    return found | {"warnings": list(dict.fromkeys(each for _, each in warned(parts)))}


def line(text: str) -> str:
    """Return a text on one line, with hidden characters as escapes."""
    return see(" ".join(text.split())).plain[:200]


@dataclass(frozen=True)
class Burst:
    """The calls since the last notice as they are now: `items`, the first that wait. `quiet`: hours that held it."""

    items: tuple[Item, ...]
    waiting: int
    expired: int = 0
    answered: int = 0
    quiet: str = ""
    arguments: bool = False

    def heading(self, tool: str) -> str:
        if self.waiting == 1 and not self.expired:
            return f"A call waits for your answer: {tool}"
        if not self.waiting:
            return "A call expired before you were notified" if self.expired == 1 else _many(self.expired, "expired")
        return f"{_many(self.waiting, 'waits' if self.waiting == 1 else 'wait')} for your answer"

    @property
    def account(self) -> str:
        """Return the account of all that came in, where not all of it waits: nothing goes past anyone unsaid."""
        if not (self.expired or self.answered or self.quiet):
            return ""
        began = self.waiting + self.expired + self.answered
        when = f"During your quiet hours ({self.quiet})" if self.quiet else "Since the last notice"
        counts = (
            (self.waiting, "still waits" if self.waiting == 1 else "still wait"),
            (self.expired, "expired, not run"),
            (self.answered, "answered or withdrawn meanwhile"),
        )
        parts = [f"{count:,} {word}" for count, word in counts if count]
        return f"{when}, {began:,} {'call' if began == 1 else 'calls'} waited: {', '.join(parts)}."


def waiting(notice: Notice, burst: Burst) -> Text:
    shown = [facts(each.approval, arguments=burst.arguments) for each in burst.items]
    more = burst.waiting - len(shown)
    match notice.receiver.kind:
        case Kind.EMAIL:
            parts = [burst.account, *(_mail_entry(each, notice.receiver) for each in shown), _and_more(more)]
            return burst.heading(shown[0]["tool"] if shown else ""), _mail(parts, asks=bool(burst.waiting))
        case Kind.SLACK:
            count = f"*{burst.waiting:,} {'call waits' if burst.waiting == 1 else 'calls wait'} for an answer*"
            rest = f"And {more:,} more{_slack_link(link('approvals'), 'all of them', ': ')}" if more > 0 else ""
            account = escape(burst.account, quote=False)
            return _slack(filter(None, [count if burst.waiting else "", account, *map(_slack_entry, shown), rest]))
        case _:
            counts = {"waiting": burst.waiting, "expired": burst.expired, "answered": burst.answered}
            data = {**counts, "approvals": shown, "more": more, "url": link("approvals")}
            return _event(notice, "approval.waiting", data)


def decided(notice: Notice, items: Sequence[Item], count: int, notices: Mapping[UUID, Notice | None]) -> Text:
    """Word what was decided. `notices`: the one in which each call waited."""
    shown = [_outcome(each, notices.get(each.approval_id)) for each in items]
    more = count - len(shown)
    match notice.receiver.kind:
        case Kind.EMAIL:
            tool, outcome = shown[0]["tool"], shown[0]["outcome"]
            subject = f"{tool}: {outcome}" if count == 1 else f"{count:,} calls have ended"
            return subject, _mail(["\n".join(_ended(each, str) for each in shown), _and_more(more)], asks=False)
        case Kind.SLACK:
            return _slack(filter(None, [*(_ended(each, quoted) for each in shown), _and_more(more)]))
        case _:
            return _event(notice, "approval.decided", {"count": count, "approvals": shown, "more": more})


def tested(notice: Notice, by: str) -> Text:
    text = "Test by {}: hitlchat notices arrive here."
    match notice.receiver.kind:
        case Kind.EMAIL:
            return "Test of your notices", f"{text.format(line(by))}\n"
        case Kind.SLACK:
            return _slack([text.format(quoted(by))])
        case _:
            return _event(notice, "test", {"message": text.format(line(by))})


def masked(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with values that may be shown; of many, the first."""
    entries = list(arguments.items())
    found = {see(name).plain[:80]: _value(name, value, 1) for name, value in entries[:MOST_ENTRIES]}
    if len(entries) > MOST_ENTRIES:
        found["…"] = f"{len(entries) - MOST_ENTRIES} more"
    return found


def quoted(text: str) -> str:
    """Text of others, as nothing but text of Slack's."""
    return f"`{escape(see(' '.join(text.split())).plain.replace('`', QUOTE), quote=False)[:400] or ' '}`"


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


def _many(count: int, verb: str) -> str:
    return f"{count:,} {'call' if count == 1 else 'calls'} {verb}"


def _and_more(count: int) -> str:
    return f"And {count:,} more." if count > 0 else ""


def _outcome(item: Item, notice: Notice | None) -> dict[str, Any]:
    """Return the outcome of a call that `notice` told of, as JSON."""
    by = line(item.by.get_username()) if item.by and item.outcome in ("approved", "declined", "answered") else ""
    return {
        "id": str(item.approval_id),
        "notice": notice.message_id if notice else "",
        "tool": line(item.approval.call.tool_name),
        "person": line(item.approval.call.caller.get_username()),
        "outcome": item.outcome,
        "by": by or None,
        "at": item.at.isoformat(),
        "url": link("approval", item.approval_id),
    }


def _ended(outcome: Mapping[str, Any], shown: Callable[[str], str]) -> str:
    """Return one line about an outcome; `shown`: how names are written."""
    by = f" by {shown(outcome['by'])}" if outcome["by"] else ""
    what, how = f"{shown(outcome['tool'])} for {shown(outcome['person'])}", outcome["outcome"]
    return f"{what}: {ENDS.get(how, how)}{by}"


def _mail_entry(call: Facts, receiver: Receiver) -> str:
    until = datetime.fromisoformat(call["deadline"]).astimezone(receiver.zone)
    rows = {
        "Tool": call["tool"],
        "From": call["source"],
        "Asked by": f"{call['askedBy']}, for {call['person']}",
        "Risk": _risk(call),
        "Until": f"{until:%Y-%m-%d %H:%M:%S} {until.tzname()}",
        "Look": call["url"],
    }
    text = "\n".join(f"{name + ':':<{WIDTH}}{value}" for name, value in rows.items() if value is not None)
    text += "".join(f"\n{'Warning:':<{WIDTH}}{each}" for each in call["warnings"])
    if "arguments" not in call:
        return text
    return f"{text}\nArguments (what looks like a secret is hidden):\n{canonical.pretty(call['arguments'], indent=2)}"


def _mail(parts: Sequence[str], *, asks: bool) -> str:
    inbox, settings = link("approvals"), link("notices:page")
    where = f"All waiting calls: {inbox}" if inbox else "Open hitlchat and go to the Inbox."
    end = f"{where}\nOpening a link decides nothing: you sign in, read the call, and answer there."
    place = f": {settings}" if settings else ", under Notices"
    why = f"You get this because you turned on notices in hitlchat{place}"
    return "\n\n".join(filter(None, [*parts, end if asks else "", why])) + "\n"


def _slack_entry(call: Facts) -> str:
    # Slack shows the time where its reader is; what follows the bar is for programs that do not.
    deadline = datetime.fromisoformat(call["deadline"])
    fallback = f"{deadline:%Y-%m-%d %H:%M} UTC"
    until = f"<!date^{deadline.timestamp():.0f}^{{date_short_pretty}} {{time}}|{fallback}>"
    who = f"{call['askedBy']}, for {quoted(call['person'])}"
    text = f"• {quoted(call['tool'])} from {quoted(call['source'])} · {_risk(call)} · {who} · until {until}"
    text += _slack_link(call["url"], "open the call", " · ")
    text += "".join(f"\nWarning: {quoted(each)}" for each in call["warnings"])
    return f"{text}\n{quoted(canonical.dumps(call['arguments']))}" if "arguments" in call else text


def _risk(call: Facts) -> str:
    return f"L{call['risk']} {RISK_LABELS[call['risk']]}"


def _slack_link(url: str | None, words: str, before: str) -> str:
    return f"{before}<{url}|{words}>" if url else ""


def _slack(lines: Iterable[str]) -> Text:
    return "", _json({"text": "\n".join(lines)})


def _event(notice: Notice, name: str, data: dict[str, Any]) -> Text:
    """Return the body that the Standard Webhooks specification recommends: type, timestamp, data."""
    timestamp = notice.made_at.isoformat()
    return "", _json({"type": name, "timestamp": timestamp, "data": {"notice": notice.message_id, **data}})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
