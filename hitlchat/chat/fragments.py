"""The pieces of HTML that go to a conversation's page over its websocket; each says by id where it belongs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from uuid import UUID

from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.translation import gettext as _

from hitlchat.agent.runner import TakenBack
from hitlchat.base import canonical
from hitlchat.base.sentences import translated
from hitlchat.base.visible import see
from hitlchat.chat import call_view, transcript_view
from hitlchat.chat.transcript_view import MessageView, Waiting
from hitlchat.gate.actor import Actor
from hitlchat.gate.batch import Outcome
from hitlchat.gate.card import card
from hitlchat.gate.models import Approval, ToolCall
from hitlchat.gate.status import Status

# Servers let through 1 MiB in a frame, and a page draws one at a time: smaller ones leave it usable in between.
FRAME: Final = 128 * 1024
# In bytes, of a fragment that cannot be sent in pieces.
LARGEST: Final = 700 * 1024
# Between two fragments, where a frame may end. Texts have it escaped.
BREAK: Final = "<!--break-->"


def frames(html: str) -> list[str]:
    """Return the fragments in as few frames as can be, none of which is larger than FRAME unless one fragment is."""
    found, size = [list[str]()], 0
    for piece in html.split(BREAK):
        size += len(piece.encode())
        if size > FRAME and found[-1]:
            found.append([])
            size = len(piece.encode())
        found[-1].append(piece)
    return [BREAK.join(pieces) for pieces in found]


def everything(conversation_id: UUID, viewer: Actor, messages: list[MessageView], earlier: int) -> str:
    """Return the whole page, at each connect and whenever it may have missed something.

    What waits for an answer comes first, then the last messages, which are laid out already, then those above.
    """
    around = (run(conversation_id), grants(conversation_id), queued(conversation_id))
    return BREAK.join((asks(conversation_id, viewer), *around, *_turns(messages, earlier)))


def _turns(messages: list[MessageView], earlier: int) -> Iterator[str]:
    """Yield what replaces the messages on the page: the last of them, then those above as they fit into frames."""
    if not messages:
        yield f'<ol id="turns" hx-swap-oob="innerHTML">{render_to_string("chat/_turns.html")}</ol>'
    piece, apart, way = "", list[str](), "innerHTML"
    for view in reversed(messages):
        html, calls = _drawn(view, is_there=False)
        if piece and len(piece.encode()) + len(html.encode()) > FRAME:
            yield BREAK.join((f'<ol id="turns" hx-swap-oob="{way}">{piece}</ol>', *apart))
            piece, apart, way = "", [], "afterbegin"
        piece, apart = html + piece, [*apart, *calls]
    if messages:
        more = {"earlier": earlier, "conversation_id": messages[0].message.conversation_id}
        piece = render_to_string("chat/_earlier.html", more) + piece
        yield BREAK.join((f'<ol id="turns" hx-swap-oob="{way}">{piece}</ol>', *apart))


def _drawn(view: MessageView, *, is_there: bool) -> tuple[str, list[str]]:
    """Return the message, and by themselves those of its calls for which it has no room."""
    html = render_to_string("chat/_message.html", {"view": view, "oob": is_there})
    if len(html.encode()) <= LARGEST:
        return html, []
    alone = render_to_string(
        "chat/_message.html", {"view": replace(view, calls=[]), "oob": is_there, "calls_follow": True}
    )
    place = f"m-{view.message.pk}-calls"
    lines = [render_to_string("chat/_call.html", {"view": each, "oob": False}) for each in view.calls]
    return alone, [f'<div id="{place}" hx-swap-oob="beforeend">{line}</div>' for line in lines]


def asks(conversation_id: UUID, viewer: Actor) -> str:
    waiting = transcript_view.waiting(conversation_id, viewer)
    cards = render_to_string("chat/_asks.html", {"waiting": waiting})
    if len(cards.encode()) > LARGEST:
        return BREAK.join(_large_asks(waiting))
    # Cards stay as they are while they are on the page, whatever was typed into them.
    moving = [card for card in waiting.cards if card.who is not None and (card.who.moves or card.who.ages)]
    anew = "".join(render_to_string("approvals/_who.html", {"card": card, "oob": True}) for card in moving)
    talked = [card for card in waiting.cards if card.whys is not None and card.whys.exchanges]
    anew += "".join(render_to_string("approvals/_why.html", {"card": card, "oob": True}) for card in talked)
    return f'<div id="asks" hx-swap-oob="innerHTML">{cards}</div>{anew}'


def matter(approval_id: UUID, viewer: Actor, problem: str) -> str:
    """Return the part of a card that asks for a value, with what is wrong about the one that was given."""
    found = Approval.objects.select_related("call__tool").get(pk=approval_id)
    context = {"card": card(found, viewer), "problem": problem, "oob": True}
    return render_to_string("approvals/_matter.html", context)


def _large_asks(waiting: Waiting) -> Iterator[str]:
    """Yield the cards one by one. What is too large for a frame even so is answered on a page of its own."""
    way = "innerHTML"
    for each in waiting.cards:
        card = render_to_string("approvals/_card.html", {"card": each, "over": "ws"})
        if len(card.encode()) > LARGEST:
            card = render_to_string("chat/_large_card.html", {"card": each})
        yield f'<div id="asks" hx-swap-oob="{way}">{card}</div>'
        way = "beforeend"


def grants(conversation_id: UUID) -> str:
    """Return the meter of grants: what runs unasked here, and how much of that is left."""
    meter = render_to_string("grants/_meter.html", transcript_view.grants(conversation_id))
    return f'<div id="grants" hx-swap-oob="innerHTML">{meter}</div>'


def message(message_id: str, view: MessageView | None, *, is_there: bool) -> str:
    """Return a message that changed, if the page has it (`is_there`), or one to be added at the end."""
    if view is None:
        return f'<li id="m-{message_id}" hx-swap-oob="delete"></li>' if is_there else ""
    html, calls = _drawn(view, is_there=is_there)
    return BREAK.join((html if is_there else f'<ol id="turns" hx-swap-oob="beforeend">{html}</ol>', *calls))


def call(conversation_id: UUID, call_id: UUID) -> str:
    view = call_view.of_id(conversation_id, call_id)
    return render_to_string("chat/_call.html", {"view": view, "oob": True}) if view else ""


def progress(call_id: str, done: float, total: float | None, message: str) -> str:
    """Return the progress of a call that executes. Numbers only as they make sense: a server may send any."""
    whole = total if total is not None and total > 0 and 0 <= done <= total else None
    words = f"{done:,.6g} of {whole:,.6g}" if whole else ""
    shown = {"call": call_id, "done": f"{done:.6f}", "total": whole and f"{whole:.6f}", "words": words}
    return render_to_string("chat/_progress.html", shown | {"message": see(message)})


def queued(conversation_id: UUID) -> str:
    waiting = render_to_string("chat/_queued.html", {"queued": transcript_view.queued(conversation_id)})
    return f'<div id="queued" hx-swap-oob="innerHTML">{waiting}</div>'


def run(conversation_id: UUID) -> str:
    shown = transcript_view.run(conversation_id)
    context = {"run": shown, "oob": True}
    title = render_to_string("chat/_title.html", {"title": shown.title, "oob": True})
    total = render_to_string("chat/_total.html", transcript_view.total(conversation_id) | {"oob": True})
    return title + render_to_string("chat/_run.html", context) + render_to_string("chat/_ended.html", context) + total


def growing(message_id: str, blocks: list[str], tail: str) -> str:
    done = [f'<div id="m-{message_id}-done" hx-swap-oob="beforeend">{each}</div>' for each in blocks]
    return BREAK.join((*done, f'<div id="m-{message_id}-tail" hx-swap-oob="innerHTML">{tail}</div>'))


def composed() -> str:
    """The message was taken: the composer may be emptied."""
    return '<div id="composer-signal" hx-swap-oob="innerHTML"><span data-clear-composer></span></div>' + flash("")


def refilled(message: TakenBack) -> str:
    """Return what puts a message that was taken back into the composer, with its files."""
    files = canonical.pretty([transcript_view.chip(each) for each in message.attachments])
    text = f'<span data-refill-composer data-files="{escape(files)}">{escape(message.content)}</span>'
    return f'<div id="composer-signal" hx-swap-oob="innerHTML">{text}</div>'


def flash(text: str) -> str:
    """Return a sentence for the page, in its language where it has a translation."""
    text = translated(text)
    return f'<div id="flash" hx-swap-oob="innerHTML">{f"<p>{escape(text)}</p>" if text else ""}</div>'


def outcomes(found: list[Outcome]) -> str:
    all_counted = all(outcome.counted for outcome in found)
    html = render_to_string("approvals/_outcomes.html", {"outcomes": found, "all_counted": all_counted})
    return f'<div id="flash" hx-swap-oob="innerHTML">{html}</div>'


def too_late(conversation_id: UUID, viewer: Actor, settled: ToolCall) -> str:
    """The other person, tab or deadline was first: say so, and take the card away."""
    status = _(Status(settled.status).label).lower()
    words = _("This call was already answered: {status}. Your answer was not recorded.").format(status=status)
    return asks(conversation_id, viewer) + flash(words)
