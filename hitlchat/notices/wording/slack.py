"""Notices as the text of Slack's incoming webhooks, which other chats understand too.

What others chose stands between backticks, where nothing becomes a link, a mention or formatting; &, < and > are
escaped as Slack asks.
"""

from collections.abc import Sequence

from hitlchat.base import canonical
from hitlchat.base.visible import see
from hitlchat.notices.addressing import link
from hitlchat.notices.wording.facts import Facts
from hitlchat.notices.wording.words import Burst, Outcome

# Instead of a backtick, which would end the quotation.
QUOTE = "\u02bc"


def waiting(burst: Burst, shown: Sequence[Facts]) -> str:
    count = f"*{burst.waiting:,} {'call waits' if burst.waiting == 1 else 'calls wait'} for an answer*"
    lines = [count if burst.waiting else "", _escaped(burst.account), *map(_one, shown)]
    if (more := burst.waiting - len(shown)) > 0:
        lines.append(f"And {more:,} more{_link(link('approvals'), 'all of them', ': ')}")
    return "\n".join(filter(None, lines))


def decided(shown: Sequence[Outcome], count: int) -> str:
    lines = [f"{quoted(each.tool)}: {each.words}{f' by {quoted(each.by)}' if each.by else ''}" for each in shown]
    more = [f"And {count - len(shown):,} more."] if count > len(shown) else []
    return "\n".join([*lines, *more])


def quoted(text: str) -> str:
    """Text of others, as nothing but text."""
    return f"`{_escaped(see(' '.join(text.split())).plain.replace('`', QUOTE))[:400] or ' '}`"


def _one(told: Facts) -> str:
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
