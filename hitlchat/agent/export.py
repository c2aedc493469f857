"""A conversation as a Markdown file, with its calls and who answered them."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final
from uuid import UUID

from hitlchat.agent.models import Conversation, Message, Role
from hitlchat.base import canonical
from hitlchat.base.visible import escaped
from hitlchat.gate import contents, disclosure, question, who
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status

AT_A_TIME: Final = 200
LINE_END: Final = re.compile(r"\r\n|\r|\n")
# Not indented, so that it is in no list, and stays open until it is closed.
FENCE: Final = re.compile(r"(`{3,}|~{3,})(.*)")
# HTML that goes on until it is ended, whatever stands in between: all of that could be out of sight.
_NAMES: Final = "script|style|textarea|title|xmp|iframe|noembed|noframes|noscript|plaintext|template|select|svg|math"
ENDLESS: Final = re.compile(rf"<(?=[!?]|/?(?:{_NAMES}|details|dialog|object)\b)", re.IGNORECASE)


def as_markdown(conversation: Conversation) -> Iterator[str]:
    """Yield the file in pieces, each made of so many messages."""
    yield escaped(f"# {_line(str(conversation))}\n\nBegun {_time(conversation.created_at)}, exported from hitlchat.\n")
    rows = Message.objects.shown().filter(conversation=conversation).exclude(role=Role.TOOL)
    rows = rows.prefetch_related("attachments")
    last = 0
    while batch := list(rows.filter(seq__gt=last)[:AT_A_TIME]):
        calls = _calls([message.pk for message in batch])
        # As on a card: nothing in it is hidden from who reads it.
        yield canonical.whole(escaped("".join(_message(message, calls.get(message.pk, [])) for message in batch)))
        last = batch[-1].seq


def _calls(turns: list[UUID]) -> dict[UUID | None, list[ToolCall]]:
    found: dict[UUID | None, list[ToolCall]] = {}
    rows = ToolCall.objects.filter(turn_id__in=turns).select_related("approval")
    rows = disclosure.with_words(rows).prefetch_related("approval__decisions__person")
    for row in rows.order_by("position", "created_at"):
        found.setdefault(row.turn_id, []).append(row)
    return found


def _message(message: Message, calls: list[ToolCall]) -> str:
    head = f"\n## {Role(message.role).label}, {_time(message.created_at)}\n"
    text = f"\n{_quoted(message.content.rstrip())}\n" if message.content.strip() else ""
    thoughts = f"\nReasoning:\n\n{_fenced(message.reasoning.rstrip())}\n" if message.reasoning.strip() else ""
    attached = ""
    for each in message.attachments.all():
        attached += f"- {_as_code(each.name)} ({each.media_type}, {each.size:,} bytes)\n"
    return head + thoughts + text + (f"\nAttached:\n\n{attached}" if attached else "") + "".join(map(_call, calls))


def _call(call: ToolCall) -> str:
    answers = "".join(f"\n{line}\n" for line in _answers(call))
    shown = [("Arguments", canonical.pretty(call.arguments, indent=2))]
    if call.status == Status.SUCCEEDED:
        shown.append(("Result", contents.text(call)))
    elif call.status == Status.ANSWERED:
        shown.append(("Answer of a person, not of the tool, which was not executed", str(call.result)))
    elif call.error:
        shown.append(("Error", str(call.error.get("message", ""))))
    blocks = "".join(f"\n{name}:\n\n{_fenced(text)}\n" for name, text in shown)
    line = _as_code(disclosure.sentence(call))
    return f"\n### Call to {call.tool_name}: {Status(call.status).label.lower()}\n\n{line}\n{answers}{blocks}"


def _answers(call: ToolCall) -> Iterator[str]:
    for each in call.approval.decisions.all() if hasattr(call, "approval") else ():
        word = who.DONE[each.verdict]
        if word == "Approved" and question.is_one(call):
            word = "Answered"
        changed = ", with changed arguments" if word == "Approved" and each.edited_arguments is not None else ""
        reason = f" {who.REASONS[each.verdict]}: {_line(each.reason)}" if each.reason else ""
        yield f"{word}{changed} by {who.name(each)}, {_time(each.decided_at)}.{reason}"


def _fenced(text: str) -> str:
    """Return a code block whose fence is longer than any in `text` (CommonMark, section 4.5)."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _quoted(text: str) -> str:
    """Return the text as a quotation: what it begins, such as a block of code, ends with it, and no heading within is
    one of ours (CommonMark, section 5.1).
    """
    lines, fence, in_html = list[str](), "", False
    for line in LINE_END.split(text):
        mark = FENCE.match(line)
        in_html = not fence and bool(line.strip()) and (in_html or line.lstrip().startswith("<"))
        if fence:
            # As long as what opened it, of the same sign, and nothing behind it.
            fence = "" if mark and not mark[2].strip() and mark[1].startswith(fence) else fence
        elif mark and not in_html and not ("`" in mark[1] and "`" in mark[2]):
            fence = mark[1]
        else:
            line = ENDLESS.sub(r"\\<", line)  # noqa: PLW2901
        lines.append(f"> {line}".rstrip())
    return "\n".join(lines)


def _as_code(text: str) -> str:
    """Return a text of others on one line in which nothing counts as Markdown."""
    return "`" + _line(escaped(text)).replace("`", "'") + "`"


def _line(text: str) -> str:
    return ENDLESS.sub(r"\\<", " ".join(text.split()))


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
