"""The question that a client puts to its user: the card in words; and the ways in which it can be asked."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from hitlchat.base import canonical
from hitlchat.base.visible import Seen, see
from hitlchat.gate import deciders
from hitlchat.gate.card import Card, card
from hitlchat.gate.models import Approval, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.mcp_server.models import WithoutElicitation
from hitlchat.mcp_server.request import ToolRequest

# What is longer would be cut by someone on its way: then it is to be read on a page of ours.
LONGEST = 6000
# Words, which cannot look like several cells.
PLAIN = re.compile(r"[\w.@/ -]+\Z")


@dataclass(frozen=True)
class Question:
    """One round of asking about one call. `round` and `digest` say to what an answer is one; `client_may_answer`: it is
    trusted to report its user's answer.
    """

    call: ToolCall
    approval_id: UUID
    digest: str
    message: str
    client_may_answer: bool

    @property
    def round(self) -> int:
        return self.call.round

    @property
    def short(self) -> str:
        """Return its first line: the sentence, with the risk."""
        return self.message.partition("\n")[0]

    @property
    def fits(self) -> bool:
        return len(self.message) <= LONGEST


def open_question(call_id: UUID) -> Question | None:
    """Return what is open about this call now; None if nothing is."""
    rows = Approval.objects.select_related("call__tool").filter(call_id=call_id, call__status=Status.WAITING)
    found = rows.first()
    if found is None:
        return None
    # Of a tool that was deleted nobody knows what was to hold for it.
    enough = found.call.tool is not None and deciders.will_do(found.call.tool, found)
    return Question(found.call, found.pk, found.digest, message(found), enough)


def message(approval: Approval) -> str:
    shown = card(approval)
    lines = [f"[Risk L{shown.risk}, {shown.risk_label}] {_line(shown.prompt)}"]
    if again := approval.disclosure.get("again"):
        lines.append(f"Asked again: {_line(see(again['why']))}")
    lines += [
        f"Tool: {_line(shown.tool_name)}, from {_line(shown.origin)}",
        f"Arguments: {_quoted(approval.disclosure['arguments'])}",
    ]
    if ran := approval.disclosure.get("ranBefore"):
        lines.append(f"Note: {ran}")
    lines += _effect(approval.disclosure.get("preview"))
    return "\n".join([*lines, *_warnings(shown)])


class Way(StrEnum):
    """A way to ask about a call."""

    FORM = "form"  # the client asks its user
    PAGE = "page"  # the client sends its user to the page of the approval
    INBOX = "inbox"  # the client waits while its user is asked here
    LINK = "link"  # the client gets a link, and comes back
    DENY = "deny"


def way(incoming: ToolRequest, tool: Tool, question: Question | None = None) -> Way:
    """Return the way, by what the client can do, what may decide the call, and what its token says otherwise.
    `question`: the one that is open, if the call is on record already.
    """
    if question is None:
        enough = incoming.access.trusted and deciders.will_do(tool)
    else:
        enough = question.fits and question.client_may_answer
    if incoming.asks_forms and enough:
        return Way.FORM
    if incoming.opens_urls:
        return Way.PAGE
    match incoming.access.without_elicitation:
        case WithoutElicitation.URL:
            return Way.LINK
        case WithoutElicitation.INBOX:
            return Way.INBOX
        case WithoutElicitation.DENY:
            # Its user is there, and only must not answer through the client.
            return Way.INBOX if incoming.asks_forms else Way.DENY


def _line(text: Seen) -> str:
    """Return a value on one line: nothing filled in may look like a line of ours."""
    return text.plain.replace("\n", " ⏎ ")


def _effect(preview: dict[str, Any] | None) -> list[str]:
    if not preview:
        return []
    if preview.get("error") is not None:
        return [f"What it would do could not be found out: {_quoted(preview['error'])}"]
    text, table = preview.get("text"), preview.get("table")
    summary = f" {_quoted(text)}" if text else ""
    return [f"What it would do, as the tool says:{summary}", *(_rows(table) if table else ()), *preview.get("cut", ())]


def _rows(table: dict[str, Any]) -> Iterator[str]:
    """A line for each row, with the name of each column, or of the row."""
    columns = [*map(_cell, table["columns"])]
    for row in table["rows"]:
        cells = [*map(_cell, row)]
        if columns:
            cells = [f"{name}: {cell}" for name, cell in zip(columns, cells, strict=True)]
            yield f"- {', '.join(cells)}"
        else:
            yield f"- {cells[0]}: {', '.join(cells[1:])}"


def _cell(text: str) -> str:
    """Return a value, in quotation marks if it could look like several cells."""
    return text if PLAIN.match(text) else _quoted(text)


def _quoted(value: Any) -> str:
    return see(canonical.pretty(value)).plain


def _warnings(shown: Card) -> list[str]:
    rows = [warning for row in (*shown.rows, *shown.more_rows) for warning in row.warnings]
    return [f"Note: {warning}" for warning in dict.fromkeys((*shown.warnings, *rows))]
