"""A notice for each way of receiving."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from hitlchat.notices.addressing import link
from hitlchat.notices.models import Item, Kind, Notice, Receiver
from hitlchat.notices.wording import mail, slack
from hitlchat.notices.wording.facts import Facts, facts, line
from hitlchat.notices.wording.words import Burst, Outcome

MOST_LISTED = 20


@dataclass(frozen=True)
class Text:
    """`body` may name the notice that it is of."""

    subject: str
    body: Callable[[Notice], str]


def waiting(receiver: Receiver, burst: Burst) -> Text:
    shown = [facts(each.approval, arguments=burst.arguments) for each in burst.items]
    match receiver.kind:
        case Kind.EMAIL:
            return Text(burst.heading(shown), lambda _: mail.waiting(receiver, burst, shown))
        case Kind.SLACK:
            return Text("", lambda _: _json({"text": slack.waiting(burst, shown)}))
        case _:
            return Text("", lambda notice: _event(notice, "approval.waiting", _waiting_data(burst, shown)))


def decided(receiver: Receiver, items: Sequence[Item], count: int, notices: Mapping[UUID, Notice | None]) -> Text:
    """`notices`: in which each was told to wait."""
    shown = [_outcome(each, notices.get(each.approval_id)) for each in items]
    match receiver.kind:
        case Kind.EMAIL:
            subject = f"{shown[0].tool}: {shown[0].outcome}" if count == 1 else f"{count:,} calls have their outcome"
            return Text(subject, lambda _: mail.decided(shown, count))
        case Kind.SLACK:
            return Text("", lambda _: _json({"text": slack.decided(shown, count)}))
        case _:
            data = {"count": count, "approvals": [each.as_json for each in shown], "more": count - len(shown)}
            return Text("", lambda notice: _event(notice, "approval.decided", data))


def tested(receiver: Receiver, by: str) -> Text:
    said = f"A test by {line(by)}: notices of hitlchat arrive here."
    match receiver.kind:
        case Kind.EMAIL:
            return Text("Test of your notices", lambda _: f"{said}\n")
        case Kind.SLACK:
            return Text(
                "", lambda _: _json({"text": f"A test by {slack.quoted(by)}: notices of hitlchat arrive here."})
            )
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
    """As the Standard Webhooks specification recommends: type, timestamp, data."""
    told = {"type": name, "timestamp": notice.made_at.isoformat(), "data": {"notice": notice.message_id, **data}}
    return _json(told)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
