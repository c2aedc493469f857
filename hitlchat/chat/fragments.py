"""The pieces of HTML that go to a conversation's page over its websocket; each says by id where it belongs."""

from dataclasses import dataclass
from uuid import UUID

from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.translation import gettext as _

from hitlchat.agent.queued import TakenBack
from hitlchat.base import canonical
from hitlchat.base.sentences import translated
from hitlchat.base.visible import see
from hitlchat.chat import transcript_view
from hitlchat.gate.actor import Actor
from hitlchat.gate.batch import Outcome
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status


@dataclass(frozen=True)
class Everything:
    """The whole state, with the messages that are in it (`shown`), those of them being written, and the calls that
    execute, all by id.
    """

    html: str
    shown: set[str]
    streaming: list[str]
    executing: set[str]


def everything(conversation_id: UUID, viewer: Actor) -> Everything:
    """Return the whole page, at each connect and whenever it may have missed something."""
    messages, earlier = transcript_view.messages(conversation_id)
    turns = render_to_string("chat/_turns.html", {"messages": messages, "earlier": earlier})
    return Everything(
        f'<ol id="turns" hx-swap-oob="innerHTML">{turns}</ol>{asks(conversation_id, viewer)}{run(conversation_id)}'
        f"{grants(conversation_id)}{queued(conversation_id)}",
        {str(view.message.pk) for view in messages},
        [str(view.message.pk) for view in messages if view.streaming],
        {str(each.call.pk) for view in messages for each in view.calls if each.call.status == Status.EXECUTING},
    )


def asks(conversation_id: UUID, viewer: Actor) -> str:
    asked = transcript_view.asked(conversation_id, viewer)
    cards = render_to_string("chat/_asks.html", {"asked": asked})
    # Cards stay as they are while they are on the page, whatever was typed into them.
    moving = [card for card in asked.cards if card.who is not None and (card.who.moves or card.who.ages)]
    anew = "".join(render_to_string("approvals/_who.html", {"card": card, "oob": True}) for card in moving)
    return f'<div id="asks" hx-swap-oob="innerHTML">{cards}</div>{anew}'


def grants(conversation_id: UUID) -> str:
    """Return the meter of grants: what runs unasked here, and how much of that is left."""
    meter = render_to_string("grants/_meter.html", transcript_view.grants(conversation_id))
    return f'<div id="grants" hx-swap-oob="innerHTML">{meter}</div>'


def message(conversation_id: UUID, message_id: UUID, *, known: bool) -> str:
    """A message that changed, if the page has it (`known`), or one to be added at the end."""
    view = transcript_view.message(conversation_id, message_id)
    if view is None:
        return f'<li id="m-{message_id}" hx-swap-oob="delete"></li>' if known else ""
    html = render_to_string("chat/_message.html", {"view": view, "oob": known})
    return html if known else f'<ol id="turns" hx-swap-oob="beforeend">{html}</ol>'


def call(conversation_id: UUID, call_id: UUID) -> str:
    """The line of a call in the transcript."""
    view = transcript_view.call(conversation_id, call_id)
    return render_to_string("chat/_call.html", {"view": view, "oob": True}) if view else ""


def progress(call_id: str, done: float, total: float | None, message: str) -> str:
    """Return the progress of a call that executes. Numbers only as they make sense: a server may send any."""
    known = total if total is not None and total > 0 and 0 <= done <= total else None
    said = f"{done:,.6g} of {known:,.6g}" if known else ""
    shown = {"call": call_id, "done": f"{done:.6f}", "total": known and f"{known:.6f}", "said": said}
    return render_to_string("chat/_progress.html", shown | {"message": see(message)})


def queued(conversation_id: UUID) -> str:
    """Return the messages that wait for the end of the run."""
    waiting = render_to_string("chat/_queued.html", {"queued": transcript_view.queued(conversation_id)})
    return f'<div id="queued" hx-swap-oob="innerHTML">{waiting}</div>'


def run(conversation_id: UUID) -> str:
    title = render_to_string("chat/_title.html", {"title": transcript_view.title(conversation_id), "oob": True})
    context = {"run": transcript_view.run(conversation_id), "oob": True}
    total = render_to_string("chat/_total.html", transcript_view.total(conversation_id) | {"oob": True})
    return title + render_to_string("chat/_run.html", context) + render_to_string("chat/_ended.html", context) + total


def growing(message_id: str, blocks: list[str], tail: str) -> str:
    done = f'<div id="m-{message_id}-done" hx-swap-oob="beforeend">{"".join(blocks)}</div>' if blocks else ""
    return f'{done}<div id="m-{message_id}-tail" hx-swap-oob="innerHTML">{tail}</div>'


def composed() -> str:
    """The message was taken: the composer may be emptied."""
    return '<div id="composer-signal" hx-swap-oob="innerHTML"><span data-clear-composer></span></div>' + flash("")


def refilled(taken: TakenBack) -> str:
    """Return what puts a message that was taken back into the composer, with its files."""
    files = canonical.pretty([transcript_view.chip(each) for each in taken.attachments])
    text = f'<span data-refill-composer data-files="{escape(files)}">{escape(taken.content)}</span>'
    return f'<div id="composer-signal" hx-swap-oob="innerHTML">{text}</div>'


def flash(text: str) -> str:
    """Return a sentence for the page, in its language where it has a translation."""
    text = translated(text)
    return f'<div id="flash" hx-swap-oob="innerHTML">{f"<p>{escape(text)}</p>" if text else ""}</div>'


def outcomes(told: list[Outcome]) -> str:
    """Return the outcomes of several answers."""
    all_counted = all(outcome.counted for outcome in told)
    html = render_to_string("approvals/_outcomes.html", {"outcomes": told, "all_counted": all_counted})
    return f'<div id="flash" hx-swap-oob="innerHTML">{html}</div>'


def too_late(conversation_id: UUID, viewer: Actor, settled: ToolCall) -> str:
    """The other person, tab or deadline was first: say so, and take the card away."""
    status = _(Status(settled.status).label).lower()
    words = _("This call was already answered: {status}. Your answer did not count.").format(status=status)
    return asks(conversation_id, viewer) + flash(words)
