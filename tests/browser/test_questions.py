"""A server asks back in the middle of a call: what the person sees of it in the chat, and what they can do."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, Route, WebSocketRoute, expect

from tests.browser import looking
from tests.browser.alone import Alone
from tests.browser.chatting import GRACE_MS, MOST_PRESSES, TYPING_MS, Chat, focused, middle, press, settle, stop_clock
from tests.browser.conftest import SharedModel, Visit
from tests.processes import STEADY, Installation, Person, Server, Servers, copy_of
from tests.scripted_model import calls, text
from tests.upstreams.asking import Counter
from tests.waiting import until

pytestmark = pytest.mark.browser

NOTE_ANSWERS: Final = """
window.answers = [];
document.addEventListener("submit", ({ target }) => {
  if (target.action.includes("/questions/")) window.answers.push(target.action);
});
"""
CAME_AGAIN: Final = "window.dispatchEvent(new Event('focus'))"


@dataclass(frozen=True)
class Shop:
    server: Server
    model: SharedModel
    bob: Person
    counter: Counter


@pytest.fixture(scope="module")
def shop(migrated: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A server of its own, connected to one that asks back; its tools run without a question of ours."""
    model, counter = SharedModel(), Counter(tmp_path_factory.mktemp("counter"), "http-2025").start()
    home = copy_of(migrated, tmp_path_factory.mktemp("shop") / "data")
    started = Servers(home)
    server = started.start(**model.environment, **STEADY)
    counter.offer(home)
    yield Shop(server, model, server.sign_in("bob"), counter)
    started.close()
    counter.kill()
    model.close()


@pytest.fixture
def model(shop: Shop) -> Iterator[SharedModel]:
    yield shop.model
    shop.model.start_over(shop.server, shop.bob)


@pytest.fixture
def page(visit: Visit, shop: Shop) -> Page:
    return visit(shop.server, shop.bob)


@pytest.fixture
def chat(page: Page, shop: Shop, model: SharedModel) -> Chat:
    return Chat(page, shop.server, shop.bob.begin("")).open()


def begin(chat: Chat, model: SharedModel, tool: str, **arguments: object) -> Locator:
    """Have the tool called; the question of its server."""
    model.enqueue(calls((f"counter_{tool}", dict(arguments))), text("Done."))
    chat.say()
    question = chat.log.locator(".call.going .question")
    expect(question.get_by_role("button", name="Send answer")).to_be_visible()
    return question


@pytest.mark.slow("a long story of questions")
@pytest.mark.guarantee("SR-36")
def test_the_question_stands_in_the_call_like_no_card_of_ours_and_what_is_answered_goes_back(
    chat: Chat, shop: Shop, model: SharedModel
) -> None:
    question = begin(chat, model, "paint")
    expect(question.get_by_role("heading")).to_have_text("The server counter asks you")
    assert focused(chat.page) == "content"
    expect(chat.modal).to_be_hidden()
    expect(question.locator("blockquote")).to_have_text("Approve: which paint shall it be?")
    expect(question.get_by_role("button", name=re.compile("Approve|Decline"))).to_have_count(0)
    assert question.get_by_role("button").all_inner_texts() == ["Don\u2019t answer", "Send answer"]
    expect(question.locator(".ask, [data-ask], [data-approve]")).to_have_count(0)
    looking.check(chat.page)
    question.get_by_role("radio", name="blue").check()
    question.get_by_label("litres").fill("12")
    press(question.get_by_role("button", name="Send answer"))
    expect(question.get_by_role("alert")).to_have_text("Not sent: one answer is not valid.")
    expect(question.get_by_text("Give a number of at most 9.")).to_be_visible()
    expect(question.get_by_role("radio", name="blue")).to_be_checked()
    question.get_by_label("litres").fill("3")
    press(question.get_by_role("button", name="Send answer"))
    chat.said("Done.")
    line = chat.call("succeeded")
    line.locator("summary").click()
    expect(line).to_contain_text("Answered by bob: colour, litres, gift. The values are not kept.")
    assert shop.counter.log[-1] == "answered accept {'colour': 'blue', 'litres': 3, 'gift': False}"


@pytest.fixture
def fingers(visit: Visit) -> Alone:
    """A page without a server, for fingers too."""
    return Alone(visit(Alone, has_touch=True))


def test_impatient_presses_send_nothing_and_a_press_of_its_own_does(fingers: Alone) -> None:
    question = fingers.question()
    press_impatiently(fingers.page, question)
    fingers.page.mouse.click(*middle(question.get_by_role("button", name="Don\u2019t answer")))
    assert len(fingers.answers) == 1


@pytest.mark.slow("the same on pages of a server, or by a finger")
@pytest.mark.parametrize(
    "place,by", [("the call", "mouse"), ("the call", "finger"), ("the list", "mouse"), ("its own page", "finger")]
)
def test_of_impatient_presses_only_one_of_its_own_reaches_the_server(
    place: str, by: str, shop: Shop, model: SharedModel, visit: Visit
) -> None:
    before = len(shop.counter.log)
    page, question = waiting(place, shop, model, visit)
    press_impatiently(page, question)
    no = question.get_by_role("button", name="Don\u2019t answer")
    for _ in range(MOST_PRESSES):
        # What comes in meanwhile may move the button: then the question says what to do, which is done.
        (page.mouse.click if by == "mouse" else page.touchscreen.tap)(*middle(no))
        if page.evaluate("window.answers.length"):
            break
        page.mouse.move(1, 1)
        page.clock.run_for(2000)
    until(lambda: shop.counter.log[before:] == ["answered decline"], "the server has the answer")
    assert len(page.evaluate("window.answers")) == 1


def press_impatiently(page: Page, question: Locator) -> None:
    """Nothing is sent, and the question says what to do; then wait as long as it says."""
    settle(page)
    stop_clock(page)
    for name in ("Send answer", "Don\u2019t answer"):
        button = question.get_by_role("button", name=name)
        for begin_after, press_at in (
            (0, page.mouse.click),
            (GRACE_MS, page.mouse.click),
            (0, page.touchscreen.tap),
        ):
            x, y = middle(button)
            page.mouse.move(x, y)
            page.evaluate(CAME_AGAIN)
            page.clock.run_for(begin_after)
            for dx in (0, 12, -12, 5):
                press_at(x + dx, y)
                page.clock.run_for(520)
    assert page.evaluate("window.answers") == []
    expect(question.get_by_text("Wait two seconds, then tap once.")).to_be_visible()
    page.mouse.move(1, 1)
    page.clock.run_for(2000)


def test_a_key_that_comes_as_typing_sends_nothing_and_the_question_says_so(fingers: Alone) -> None:
    page, question = fingers.page, fingers.question()
    settle(page)
    stop_clock(page)
    question.get_by_role("button", name="Don\u2019t answer").focus()
    page.keyboard.press("x")
    page.clock.run_for(900)
    page.keyboard.press("Enter")
    assert fingers.answers == []
    expect(question.get_by_text("You typed a moment ago. Wait a second, then press the key again.")).to_be_visible()
    page.clock.run_for(TYPING_MS)
    page.keyboard.press("Enter")
    assert len(fingers.answers) == 1


def waiting(place: str, shop: Shop, model: SharedModel, visit: Visit) -> tuple[Page, Locator]:
    """A question as it waits somewhere, on a page with fingers that notes what is sent."""
    page = visit(shop.server, shop.bob, has_touch=True)
    page.add_init_script(NOTE_ANSWERS)
    question = begin(Chat(page, shop.server, shop.bob.begin("")).open(), model, "paint")
    if place != "the call":
        path = "" if place == "the list" else (question.get_attribute("id") or "").removeprefix("question-")
        page.goto(f"{shop.server.url}/servers/questions/{path}")
        question = page.locator(".question[data-elicited]")
    question.get_by_role("button", name="Send answer").scroll_into_view_if_needed()
    return page, question


@pytest.mark.slow("another story of questions")
def test_what_does_not_fit_is_told_although_the_page_was_drawn_anew_while_the_answer_was_under_way(
    chat: Chat, shop: Shop, model: SharedModel
) -> None:
    sockets: list[WebSocketRoute] = []
    answers: list[Route] = []

    def through(socket: WebSocketRoute) -> None:
        socket.connect_to_server()
        sockets.append(socket)

    def keep(answer: Route) -> None:
        answers.append(answer)

    chat.page.route_web_socket("**/ws/**", through)
    chat.page.route("**/questions/*/answer", keep)
    chat.open()
    question = begin(chat, model, "paint")
    question.get_by_label("litres").fill("12")
    with chat.page.expect_request("**/questions/*/answer"):
        press(question.get_by_role("button", name="Send answer"))
    chat.page.locator("#turns > li").last.evaluate("line => line.dataset.before = ''")
    with chat.page.expect_websocket():
        sockets[-1].close(code=1012)
    expect(chat.page.locator("[data-before]")).to_have_count(0)
    answers.pop().continue_()
    expect(question.get_by_text("Give a number of at most 9.")).to_be_visible()
    press(question.get_by_role("button", name="Don\u2019t answer"))
    chat.said("Done.")


@pytest.mark.slow("another story of questions")
def test_it_is_in_every_tab_survives_a_reload_and_what_is_typed_survives_what_comes_in(
    chat: Chat, shop: Shop, model: SharedModel, visit: Visit
) -> None:
    sockets: list[WebSocketRoute] = []

    def through(socket: WebSocketRoute) -> None:
        socket.connect_to_server()
        sockets.append(socket)

    chat.page.route_web_socket("**/ws/**", through)
    chat.open()
    second = Chat(visit(shop.server, shop.bob), shop.server, chat.conversation).open()
    question = begin(chat, model, "paint")
    other = second.log.locator(".question")
    expect(other.get_by_role("button", name="Send answer")).to_be_visible()
    question.get_by_label("litres").fill("7")
    with chat.page.expect_websocket():
        # As a server does that restarts: all is drawn anew over the next connection.
        sockets[-1].close(code=1012)
    expect(chat.offline).to_be_hidden()
    expect(question.get_by_label("litres")).to_have_value("7")
    second.page.reload()
    expect(other.get_by_role("button", name="Send answer")).to_be_visible()
    press(other.get_by_role("button", name="Don\u2019t answer"))
    for one in (chat, second):
        one.said("Done.")
        expect(one.log.locator(".call.going")).to_have_count(0)
    assert shop.counter.log[-1] == "answered decline"


@pytest.mark.slow("another story of questions")
def test_a_password_is_never_asked_for_and_the_person_is_told_that_a_server_wanted_one(
    chat: Chat, model: SharedModel
) -> None:
    model.enqueue(calls(("counter_enter", {})), text("Done."))
    chat.say()
    chat.said("Done.")
    line = chat.call("succeeded")
    line.locator("summary").click()
    expect(line.locator(".question")).to_contain_text(
        "Declined automatically. The server asked for a secret (“password”)."
    )


@pytest.mark.slow("another story of questions")
def test_an_address_is_shown_whole_and_opened_by_the_persons_own_click_only(
    chat: Chat, shop: Shop, model: SharedModel
) -> None:
    question = begin(chat, model, "visit")
    expect(question.locator(".address b")).to_have_text("xn--pple-43d.example")
    expect(question.locator(".address")).to_have_text("https://xn--pple-43d.example/sign-in?next=/")
    expect(question).to_contain_text("encoded international host name")
    link = question.get_by_role("link", name="Open xn--pple-43d.example in a new tab")
    assert [link.get_attribute(name) for name in ("target", "rel")] == ["_blank", "noopener noreferrer"]
    looking.check(chat.page)
    press(question.get_by_role("button", name="Send answer"))
    expect(question.get_by_role("alert")).to_contain_text("Not sent")
    question.get_by_role("checkbox").check()
    press(question.get_by_role("button", name="Send answer"))
    chat.said("Done.")
    assert shop.counter.log[-1] == "answered accept"


@pytest.mark.slow("another story of questions")
def test_from_elsewhere_one_finds_the_question_by_its_page(
    chat: Chat, shop: Shop, model: SharedModel, visit: Visit
) -> None:
    begin(chat, model, "paint")
    page = visit(shop.server, shop.bob)
    page.goto(f"{shop.server.url}/")
    page.get_by_role("link", name="Server questions questions:").click()
    expect(page.get_by_role("heading", name="Server questions")).to_be_visible()
    looking.check(page)
    page.get_by_role("radio", name="red").check()
    press(page.get_by_role("button", name="Send answer"))
    expect(page.get_by_text("Nothing is waiting for you")).to_be_visible()
    chat.said("Done.")


@pytest.mark.slow("another story of questions")
def test_how_far_a_call_is_is_shown_and_it_can_be_told_to_stop(chat: Chat, shop: Shop, model: SharedModel) -> None:
    model.enqueue(calls(("counter_steps", {"seconds": 60})), text("Done."))
    chat.say()
    line = chat.log.locator(".call.going")
    expect(line.locator(".how-far")).to_contain_text(re.compile(r"\d of 10: step \d <b>\\u202e"))
    expect(line.get_by_role("progressbar")).to_be_visible()
    looking.check(chat.page)
    line.get_by_role("button", name="Stop this call").click()
    chat.said("Done.")
    expect(chat.call("unknown")).to_contain_text(
        "It was stopped by bob: the server counter was told to stop, and may have run it."
    )
    until(lambda: shop.counter.log[-1] == "cancelled", "the server heard of it")
