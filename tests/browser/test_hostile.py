"""Arguments that want to be more than text, and pages of others that want to decide."""

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.alone import Alone, asked
from tests.browser.chatting import GRACE_MS, Chat, approve_button, decline_button, look_through, settle, stop_clock
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.looking import in_view, wear
from tests.scripted_model import calls

pytestmark = pytest.mark.browser

BASICS = (
    '<img src="http://evil.example/x" onerror="window.pwned=1"><script>window.pwned=1</script>'
    '<b id="injected" hx-get="/approvals" hx-trigger="load" ws-send>Approve: run</b><style>*{display:none}</style>'
    "</div></dd></dl></article><button data-approve>Approve</button>"
)
MARKDOWN = "# Title\n[click](javascript:window.pwned=1) ![x](http://evil.example/y) **bold** `code`\n<!-- -->"
BIDI = "pay\u202e001\u2066 to\u200b \u2060\ufeffann\U000e0041\u2028\u00ad"
LINES = "\n" * 590 + "Approve: run wipe"
VALUES = {"markup": BASICS, "markdown": MARKDOWN, "bidi": BIDI, "lines": LINES, "long": "x" * 100_000}


@pytest.mark.parametrize(
    "kind", ["markup", *(pytest.param(kind, marks=pytest.mark.slow("another kind of value")) for kind in [*VALUES][1:])]
)
@pytest.mark.guarantee("SR-2", "SR-4")
def test_whatever_a_value_holds_the_card_keeps_its_shape(alone: Alone, visit: Visit, kind: str) -> None:
    chat = alone.chat()
    alone.tell(asked({"note": VALUES[kind], "data": {VALUES[kind][:2000]: VALUES[kind]}}))
    card = chat.asked()
    parts = (card.get_by_role("heading"), card.locator(".ask-meta code"), card.locator(".risk"))
    for look in ("wide light", "narrow light"):
        wear(alone.page, look)
        assert [in_view(part) for part in (*parts, decline_button(card), approve_button(card))] == [True] * 5, look
    # In a value's box there is text, marks for hidden characters, and nothing else.
    assert card.locator(".value *:not(.esc, .quiet)").count() == 0
    assert card.locator("img, a, script:not([src]), style, #injected").count() == 0
    assert alone.page.evaluate("typeof window.pwned") == "undefined"
    # But for what the page itself reports: that the card is before its person.
    asked_for = [url for url in visit.watch(alone.page).requests if not url.endswith("/approvals/shown")]
    assert not [url for url in asked_for if "evil" in url or "/approvals" in url]


@pytest.mark.guarantee("SR-3", "SR-5")
def test_what_cannot_be_seen_is_a_code_what_is_folded_says_how_much_and_is_opened_before_a_critical_call_runs(
    alone: Alone,
) -> None:
    card = alone.approval(asked({"note": BIDI}))
    row = card.locator(".args dd").first
    # Neighbours share one mark.
    shown = ["U+202E", "U+2066", "U+200B", "U+2060 U+FEFF", "U+E0041 U+2028 U+00AD"]
    expect(row.locator(".value .esc")).to_have_text(shown)
    expect(row.locator(".suspect-note").first).to_contain_text("direction override")
    expect(card.get_by_role("heading").locator(".esc")).to_have_text(shown)

    many = {f"field_{n}": f"value {n}" for n in range(28)}
    card = alone.approval(asked({"note": "x" * 100_000, "data": {f"key {n}": n for n in range(1000)}} | many))
    settle(alone.page)
    fold = card.locator(".args dd").first.locator("details")
    expect(fold.locator("summary")).to_have_text("Show the other 99,600 characters")
    fold.locator("summary").click()
    assert len(fold.locator(".value").inner_text()) == 99_600
    look_through(card)
    expect(approve_button(card)).to_be_enabled()
    data = card.locator(".args dd").nth(1).locator("details")
    data.locator("summary").click()
    expect(data.locator(".value")).to_contain_text('"key 999": 999')
    more = card.locator("details.more > summary")
    expect(more).to_have_text("Show the other 10 arguments")
    more.click()
    expect(card.get_by_text("value 27", exact=True)).to_be_visible()

    card = alone.approval(asked({"note": "y" * 5000, "data": {"z": "z" * 5000}}, risk=5))
    settle(alone.page)
    approve = approve_button(card)
    expect(approve).to_be_disabled()
    expect(card.locator(".why-not")).to_contain_text("Unfold everything first")
    card.locator("[data-reviewed]").check()
    expect(approve).to_be_disabled()
    for fold in card.locator("[data-fold] > summary").all():
        fold.click()
    look_through(card)
    expect(approve).to_be_enabled()
    card.locator("[data-reviewed]").uncheck()
    expect(approve).to_be_disabled()
    expect(card.locator(".why-not")).to_have_text("Tick the box above first.")
    expect(decline_button(card)).to_be_enabled()


def test_without_a_fold_the_review_alone_is_asked_for_and_an_early_tick_counts_though_an_early_approve_does_not(
    alone: Alone,
) -> None:
    chat = alone.chat()
    stop_clock(alone.page)
    alone.tell(asked({"note": "short"}, risk=5))
    card = chat.cards
    expect(card.locator(".why-not")).to_have_text("Tick the box above first.")
    expect(approve_button(card)).to_be_disabled()
    card.locator("[data-reviewed]").click()
    approve_button(card).click(force=True)
    alone.page.clock.run_for(GRACE_MS)
    assert alone.answers == []
    expect(card.locator("[data-reviewed]")).to_be_checked()
    look_through(card)
    expect(approve_button(card)).to_be_enabled()


# -- Pages of others -------------------------------------------------------------------------------------------------


class _Blank(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>Elsewhere</title><link rel=icon href=data:,>")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A site of someone else on the same machine: another port, for which the browser sends the same cookies."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Blank) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join(40)


@pytest.mark.guarantee("SR-1", "gate:only-people")
def test_on_a_card_is_nothing_that_the_assistant_says_and_pages_of_others_get_neither_it_nor_a_socket(
    chat: Chat, model: SharedModel, house: House, visit: Visit, elsewhere: str
) -> None:
    model.enqueue(calls(("wipe", {"note": "framed"}), say="I will only read a file. <b>Safe.</b>"))
    chat.say()
    card = chat.asked()
    expect(card).not_to_contain_text("only read")
    expect(card).to_contain_text("wipe")
    expect(chat.log.locator(".said.assistant").last).to_contain_text("I will only read a file. <b>Safe.</b>")

    (waiting,) = [one for one in house.bob.pending() if one["arguments"]["note"] == "framed"]
    page = visit(house.server, house.bob)
    for path in (f"/approvals/{waiting['id']}", f"/chat/{chat.conversation}"):
        answer = page.goto(house.server.url + path)
        assert answer
        assert answer.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    visit.watch(page).expect("asked a stranger: http://127.0.0.1|frame-ancestors|X-Frame-Options|ERR_BLOCKED")
    visit.watch(page).expect("WebSocket connection to .* failed")
    page.goto(elsewhere)
    page.evaluate(
        """url => new Promise(resolve => {
          const frame = document.createElement("iframe");
          frame.onload = resolve;
          frame.src = url;
          document.body.append(frame);
        })""",
        f"{house.server.url}/approvals/{waiting['id']}",
    )
    assert page.frame_locator("iframe").locator("[data-ask]").count() == 0
    opened = page.evaluate(
        """url => new Promise(resolve => {
          const socket = new WebSocket(url);
          socket.onmessage = (event) => resolve(`told: ${event.data.slice(0, 60)}`);
          socket.onclose = () => resolve("refused");
        })""",
        f"{house.server.url.replace('http', 'ws')}/ws/conversations/{chat.conversation}",
    )
    assert opened == "refused"
    chat.stop()
    expect(chat.modal).to_be_hidden()
