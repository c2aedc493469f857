"""Pages without a server: the product's own templates and scripts, with rows that no database has.

Playwright's router answers the browser. What a script holds by itself is shown
on such a page; what the server makes of an answer is shown on a real one.
"""

import json
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.test import RequestFactory
from django.utils import timezone
from playwright.sync_api import Locator, Page, Route, WebSocketRoute, expect

from hitlchat.agent.branches import Versions
from hitlchat.agent.models import Conversation, Message
from hitlchat.base.visible import see
from hitlchat.chat import fragments, layout, pages
from hitlchat.chat.transcript_view import MessageView, RunView, Waiting
from hitlchat.gate import prompt, question
from hitlchat.gate.batch import Group, overview
from hitlchat.gate.card import Card, card
from hitlchat.gate.models import Approval, Asks, ToolCall
from hitlchat.gate.oversight import Rules
from hitlchat.gate.status import Status
from hitlchat.insights.figures import Period
from hitlchat.upstreams.models import UpstreamQuestion
from hitlchat.upstreams.pages.questions import QuestionCard
from tests.browser.chatting import Chat

# What an answer says, once it got past the guard.
NOTE_ANSWERS: Final = """
window.answers = [];
document.addEventListener("submit", event => {
  const form = new FormData(event.target, event.submitter);
  // What a server asks has no verdict.
  const verdict = form.get("verdict") ?? (event.submitter?.closest("[data-answers]") ? "answer" : "");
  if (verdict) window.answers.push(verdict);
});
"""
CONVERSATION: Final = Conversation(pk=UUID(int=1))


def asked(arguments: dict[str, Any], *, tool: str = "echo", risk: int = 2, **parts: Any) -> Card:
    """Return the card of a call that waits, made by the gate of what was disclosed, with more `parts` of that."""
    until, rules = timezone.now() + timedelta(minutes=5), {"freshSignInMinutes": None, "digest": ""}
    call = ToolCall(pk=uuid4(), tool_name=tool, status=Status.WAITING, deadline=until, risk_level=risk)
    pieces = prompt.usual(tool, "", "Tests", arguments)
    shown = {
        "tool": {"name": tool, "origin": "Tests", "source": question.SOURCE if tool == "ask_user" else "recording"},
        "caller": {"kind": "chat", "user": 1, "name": "bob"},
        "arguments": arguments,
        "fields": [[name, "str"] for name in arguments],
        "prompt": prompt.plain(pieces),
        "promptPieces": pieces,
        "reason": "This tool always needs approval.",
        "risk": risk,
        "whoDecides": Rules().as_json | rules,
        "facts": [],
        "deadline": until.isoformat(),
        **parts,
    }
    return card(Approval(pk=uuid4(), call=call, disclosure=shown, digest="d" * 64))


def said(content: str, role: str = "assistant", versions: Versions | None = None) -> MessageView:
    run_id = versions.runs[versions.place - 1] if versions else None
    message = Message(pk=uuid4(), conversation=CONVERSATION, role=role, content=content, run_id=run_id)
    return layout.lay_out([MessageView(message=message, html=content, calls=[], versions=versions)])[0]


def turns(transcript: list[MessageView], earlier: int) -> str:
    return render_to_string("chat/_turns.html", {"messages": transcript, "earlier": earlier})


class Alone:
    """A page, and the answers given on it."""

    url: Final = "http://hitlchat.test"

    def __init__(self, page: Page) -> None:
        self.page = page
        self._html = ""
        self._socket: WebSocketRoute | None = None
        self._swallows = False
        self._sent: list[dict[str, Any]] = []
        page.add_init_script(NOTE_ANSWERS)
        page.route(f"{self.url}/**", self._answer)
        page.route_web_socket("**/ws/**", self._connect)

    def approval(self, shown: Card) -> Locator:
        """Open the page of one approval; its card."""
        waits = {"heading": "A call needs your answer", "card": shown, "whole": True}
        self._open("approvals/page.html", waits)
        return self.page.locator("[data-ask]")

    def question(self) -> Locator:
        """Open the page of a question of a server."""
        until, call = timezone.now() + timedelta(minutes=5), ToolCall(pk=uuid4(), tool_name="counter_paint")
        row = UpstreamQuestion(pk=uuid4(), server_name="counter", call=call, deadline=until)
        shown = QuestionCard(row, True, see("Go on?"), fields=(), link=None, outcome="", agreed_error="")
        self._open("servers/questions/question.html", {"question": shown, "section": "questions"})
        return self.page.locator("[data-elicited]")

    def file_field(self, template: str, context: dict[str, Any]) -> Locator:
        """Open a page that takes a file; its field."""
        self._open(template, context)
        return self.page.locator("input[type=file]")

    def begin(self) -> None:
        """Open the page where a conversation begins."""
        attach = {"mib": 10, "bytes": 10 * 2**20, "files": 10}
        self._open("chat/empty.html", {"section": "chat", "attach": attach, "choices": {"is_plain": True}})

    def report(self, *names: str) -> Locator:
        """Open the oversight report; the names of these people, who decided."""
        numbers = dict.fromkeys(("approved", "declined", "edited", "hurried"), 1000)
        figures = {"people": [{"name": name} | numbers for name in names], "total": {}, "answered": 1}
        sealed = {"events": 1, "unsealed": 1}
        context = {"figures": figures, "report": {"made_at": timezone.now(), "sealed": sealed}, "period": Period.of("")}
        self._open("insights/report.html", context)
        return self.page.get_by_role("region", name="Who decided").locator("tbody tr > :first-child > *")

    def inbox(self, shown: Card) -> Locator:
        """Open the inbox with one call chosen, which its list does not show; its card."""
        self._open("approvals/inbox/page.html", {"section": "inbox", "chosen": True, "picked": True, "card": shown})
        return self.page.locator("[data-ask]")

    def chat(
        self,
        *cards: Card,
        transcript: list[MessageView] | None = None,
        signed_in: bool = False,
        earlier: int = 0,
        together: bool = False,
    ) -> Chat:
        """Open a conversation in which calls wait, with more messages before place `earlier`. `signed_in`: with what is
        above and on top of every page; `together`: the calls may be answered together.
        """
        context = {
            "conversation": CONVERSATION,
            "section": "chat",
            "messages": transcript or [],
            "earlier": earlier,
            "waiting": Waiting(
                [*cards], [Group(cards, overview([{"arguments": {}}] * len(cards)))] if together else []
            ),
            "run": RunView("waiting" if cards else "", len(cards), bool(cards), UUID(int=2) if cards else None),
            "asks": {"label": Asks.TOOLS.label, "is_known": True},
            "attach": {"mib": 10, "bytes": 10 * 2**20, "files": 10},
            "choices": {"is_plain": True},
        }
        if signed_in:
            context |= {"signed_in": True, "bar": [each for each in pages.ALL if each.icon]}
        self._open("chat/page.html", context)
        chat = Chat(self.page, self, str(CONVERSATION.pk))
        expect(chat.offline).to_be_hidden()
        return chat

    def tell(self, *cards: Card) -> None:
        """Have the page told which calls wait now."""
        asks = render_to_string("chat/_asks.html", {"waiting": Waiting([*cards], [])})
        self._send(f'<div id="asks" hx-swap-oob="innerHTML">{asks}</div>')

    def say(self, view: MessageView) -> None:
        """Add a message to the transcript."""
        html = render_to_string("chat/_message.html", {"view": view, "oob": False})
        self._send(f'<ol id="turns" hx-swap-oob="beforeend">{html}</ol>')

    def redraw(self, transcript: list[MessageView], earlier: int) -> None:
        """Send the transcript as at each connect: the last messages."""
        self._send(f'<ol id="turns" hx-swap-oob="innerHTML">{turns(transcript, earlier)}</ol>')

    def take(self) -> None:
        """Tell the page that its message was taken."""
        self._send(fragments.composed())

    def lose(self) -> None:
        """End the connection, as a server does that restarts."""
        assert self._socket, "the page has not connected"
        self._socket.close(code=1012)

    def swallow(self) -> None:
        """Lose the connection without a word: what the page sends over it is not answered."""
        self._swallows = True

    @property
    def sent(self) -> list[dict[str, Any]]:
        """What the page has sent over its socket."""
        # Meanwhile Playwright takes in what has come.
        self.page.evaluate("0")
        return list(self._sent)

    @property
    def answers(self) -> list[str]:
        """What got past the guard."""
        return list(self.page.evaluate("window.answers"))

    def _send(self, html: str) -> None:
        assert self._socket, "the page has not connected"
        self._socket.send(html)

    def _open(self, template: str, context: dict[str, Any]) -> None:
        request = RequestFactory().get("/")
        request.user = AnonymousUser()
        self._html = render_to_string(template, context, request)
        self.page.goto(f"{self.url}/page")

    def _answer(self, route: Route) -> None:
        path = urlsplit(route.request.url).path
        if path.startswith(settings.STATIC_URL):
            route.fulfill(path=str(finders.find(path.removeprefix(settings.STATIC_URL))))
        elif route.request.is_navigation_request() and route.request.method == "GET":
            route.fulfill(body=self._html, content_type="text/html; charset=utf-8")
        else:
            route.fulfill(status=204)

    def _connect(self, socket: WebSocketRoute) -> None:
        self._socket, self._swallows = socket, False

        def hear(frame: str | bytes) -> None:
            if self._swallows:
                return
            if frame == "ping":
                socket.send("pong")
            else:
                self._sent.append(json.loads(frame))

        socket.on_message(hear)
