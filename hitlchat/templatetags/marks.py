"""Small marks used on every page: icons, and text with its hidden characters made visible."""

from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from hitlchat.base import canonical
from hitlchat.base.visible import Seen, see
from hitlchat.gate import contents, decide, disclosure, placing
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status

register = template.Library()

STATUS_ICONS = {
    Status.WAITING: "clock",
    Status.APPROVED: "check",
    Status.ALLOWED: "clock",
    Status.EXECUTING: "play",
    Status.SUCCEEDED: "check",
    Status.FAILED: "x",
    Status.DECLINED: "ban",
    Status.WITHDRAWN: "ban",
    Status.EXPIRED: "clock",
    Status.REFUSED: "alert",
    Status.REJECTED: "alert",
    Status.UNKNOWN: "ask",
}


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    return format_html('<svg class="i {}" aria-hidden="true"><use href="#{}"/></svg>', extra, name)


@register.simple_tag
def status_chip(status: str) -> SafeString:
    known = Status(status)
    return format_html(
        '<span class="status" data-status="{}">{}{}</span>', known.value, icon(STATUS_ICONS[known]), known.label
    )


@register.filter
def outlook(call: ToolCall) -> str:
    """Return when a call that may start does so."""
    return placing.outlook(call)


@register.inclusion_tag("history/_attached.html")
def attachments(call: ToolCall) -> dict[str, Any]:
    """The content blocks of what a call gave that are more than text."""
    blocks = [block for block in contents.blocks(call) or () if block["type"] != "text"]
    return {"call": call, "parts": [_part(block) for block in blocks]}


def _part(block: contents.Block) -> dict[str, Any]:
    media_type = block.get("mimeType", "")
    shows = "picture" if media_type in contents.PICTURES else "sound" if media_type in contents.SOUNDS else "file"
    return {"block": block, "shows": shows, "missing": contents.in_words(block) if "omitted" in block else ""}


@register.filter
def given(call: ToolCall) -> str:
    """Return what a call gave, as people read it."""
    return contents.text(call)


@register.simple_tag
def risk_chip(level: int, extra: str = "") -> SafeString:
    return format_html('<span class="risk {}" data-level="{}">L{} {}</span>', extra, level, level, RISK_LABELS[level])


@register.filter
def until(moment: datetime) -> str:
    """A deadline by the server's clock, with its zone: what a page says where no script counts down."""
    local = timezone.localtime(moment)
    day = "" if local.date() == timezone.localdate() else f"{local.day} {local:%b %Y}, "
    return f"until {day}{local:%H:%M:%S %Z}"


@register.simple_tag
def decline_reasons() -> dict[str, Any]:
    """Reasons to decline that are ready to be picked, and how long one's own may be."""
    return {"presets": decide.PRESETS, "longest": decide.LONGEST_REASON}


@register.filter
def seen(text: object) -> SafeString:
    """Text as text, each hidden character as a visible escape; right-to-left letters as they are read where that is
    unambiguous, and else the whole text in the order in which it is stored.
    """
    shown = text if isinstance(text, Seen) else see(str(text))
    html = "".join(f'<span class="esc">{escape(p.text)}</span>' if p.hidden else escape(p.text) for p in shown.pieces)
    if shown.stored:
        return format_html('<bdi class="stored" dir="ltr">{}</bdi>', SafeString(html))
    if shown.right_to_left:
        return format_html('<bdi class="readable" dir="auto">{}</bdi>', SafeString(html))
    return SafeString(html)


@register.filter
def pretty(value: Any) -> str:
    """A result as people read it: a lone text as itself, everything else as indented JSON."""
    return value if isinstance(value, str) else canonical.pretty(value, indent=2)


@register.filter
def type_word(part: dict[str, Any]) -> str:
    """An argument's type in one word, as on the approval card."""
    return disclosure.type_word(part)
