"""Small marks used on every page: icons, and text with its hidden characters made visible."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, Literal

from django import template
from django.conf import settings
from django.urls import reverse
from django.utils.formats import date_format, number_format
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop

from hitlchat.base import canonical, schemas, sentences
from hitlchat.base.visible import Seen, see
from hitlchat.gate import contents, decide, question, stopping
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.grants.scope import clock
from hitlchat.gate.models import ToolCall
from hitlchat.gate.provenance import Provenance, Stretches
from hitlchat.gate.status import Status

register = template.Library()
register.filter("outlook", stopping.outlook)
register.filter("given", contents.text)
register.filter("translated_parts", sentences.translated_parts)

STATUS_ICONS = {
    Status.WAITING: "clock",
    Status.APPROVED: "check",
    Status.ALLOWED: "clock",
    Status.EXECUTING: "play",
    Status.SUCCEEDED: "check",
    Status.FAILED: "failed",
    Status.DECLINED: "ban",
    Status.ANSWERED: "chat",
    Status.WITHDRAWN: "ban",
    Status.EXPIRED: "expired",
    Status.REFUSED: "alert",
    Status.REJECTED: "alert",
    Status.UNKNOWN: "ask",
}

CLOCKS: Final = {"minutes": "H:i", "seconds": "H:i:s"}


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    return format_html('<svg class="i {}" aria-hidden="true"><use href="#{}"/></svg>', extra, name)


@register.simple_tag
def status_chip(status: str) -> SafeString:
    return _chip(Status(status), gettext(Status(status).label))


@register.simple_tag
def call_chip(call: ToolCall) -> SafeString:
    """Return the status of a call; of a question to a person that it was answered."""
    is_answered = call.status == Status.SUCCEEDED and question.is_one(call)
    return _chip(Status.SUCCEEDED, gettext("answered")) if is_answered else status_chip(call.status)


@register.filter
def grouped(number: int) -> str:
    """Return a number with its thousands apart."""
    return number_format(number, use_l10n=True, force_grouping=True)


@register.filter
def money(amount: float) -> str:
    """Return an amount in the installation's currency: with two digits that say something, however small it is."""
    digits = 2 if amount >= 1 or amount == 0 else min(6, 1 - math.floor(math.log10(amount)))
    # Rounded here, since Django would cut.
    rounded = Decimal(f"{amount:.{digits}f}")
    return f"{number_format(rounded, digits, use_l10n=True, force_grouping=True)} {settings.MODEL_CURRENCY}"


@register.inclusion_tag("history/_attached.html")
def attachments(call: ToolCall, which: str = "") -> dict[str, Any]:
    """The content blocks of a result that are more than text; which of them: only the "pictures", or the "others"."""
    parts = []
    for block in contents.blocks(call) or ():
        if block["type"] in {"text", contents.UNREADABLE}:
            continue
        media = block.get("mimeType", "")
        shows = "picture" if media in contents.PICTURES else "sound" if media in contents.SOUNDS else "file"
        missing = contents.in_words(block) if "omitted" in block else ""
        is_picture = shows == "picture" and not missing
        if not which or is_picture == (which == "pictures"):
            parts.append({"block": block, "shows": shows, "missing": missing})
    return {"call": call, "parts": parts}


@register.simple_tag
def risk_chip(level: int, extra: str = "", *, unknown: bool = False) -> SafeString:
    """A level in words. `unknown`: it is only an estimate, which stands beside it."""
    return format_html(
        '<span class="risk {}" data-level="{}">L{} {}</span>{}',
        *(extra, level, level, gettext(RISK_LABELS[level])),
        format_html(' <span class="tag unknown">{}</span>', gettext("Unknown risk")) if unknown else "",
    )


@register.simple_tag
def source_of(origin: Provenance) -> SafeString:
    """Return the name of the tool that a value comes from, as a link to its call for who may open that."""
    name = format_html("<code>{}</code>", seen(origin.tool)) if origin.tool else SafeString()
    return (
        format_html('<a href="{}">{}</a>', reverse("history-call", args=[origin.call]), name) if origin.call else name
    )


@register.filter
def differing(stretches: Stretches) -> SafeString:
    """A word with what another one has not marked."""
    return format_html_join(
        "", "{}", ((format_html("<mark>{}</mark>" if is_other else "{}", seen(text)),) for text, is_other in stretches)
    )


@register.filter
def when(moment: datetime, precision: Literal["minutes", "seconds", "whole"] = "minutes") -> SafeString:
    """A moment in UTC, which static/hitlchat/js/times.js rewrites in the reader's zone: the only time on a page.

    `whole`: with its day and zone, also today, for what is printed.
    """
    utc = moment.astimezone(UTC)
    words = {name: f"{date_format(utc, f'j M Y, {time}')} UTC" for name, time in CLOCKS.items()}
    return format_html(
        '<time datetime="{}"{} title="{}">{}</time>',
        f"{utc:%Y-%m-%dT%H:%M:%SZ}",
        SafeString("" if precision == "minutes" else f" data-{precision}"),
        words["seconds"],
        words["minutes" if precision == "minutes" else "seconds"],
    )


@register.filter
def told_at(sentence: str, moment: datetime | None) -> SafeString:
    """A sentence of ours about a grant, with the moment that `scope.clock` wrote into it as `when` shows it."""
    html = seen(sentence)
    return html if moment is None else SafeString(html.replace(escape(clock(moment)), when(moment), 1))


@register.simple_tag
def decline_reasons() -> dict[str, Any]:
    """Reasons to decline that are ready to be picked, and how long one's own, or an answer instead, may be."""
    return {"presets": decide.PRESETS, "longest": decide.LONGEST_REASON, "longest_answer": decide.LONGEST_ANSWER}


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


# Roles in the middle of a sentence.
gettext_noop("member"), gettext_noop("approver"), gettext_noop("author"), gettext_noop("administrator")


@register.filter
def translated(text: str | Seen) -> str | Seen:
    """Return a stored English sentence in the language of the page, where it has a translation."""
    stored = text.plain if isinstance(text, Seen) else str(text)
    found = sentences.translated(stored)
    return text if found == stored else found


# How the questions of built-in tools begin.
LEADS: Final = (gettext_noop("The agent asks:"), gettext_noop("Find tools for"))


@register.filter
def asking(text: str) -> str:
    """Return the stored sentence about a call; what it begins with is translated if it is ours, the rest is not."""
    for lead in LEADS:
        if text.startswith(f"{lead} "):
            return gettext(lead) + text.removeprefix(lead)
    return text


@register.filter
def pretty(value: Any) -> str:
    """A result as people read it: a lone text as itself, everything else as indented JSON."""
    return value if isinstance(value, str) else canonical.pretty(value, indent=2)


@register.filter
def type_word(part: dict[str, Any]) -> str:
    """An argument's type in one word, as on the approval card."""
    return schemas.type_word(part, part)


def _chip(status: Status, words: str) -> SafeString:
    html = '<span class="status" data-status="{}">{}{}</span>'
    return format_html(html, status.value, icon(STATUS_ICONS[status]), words)
