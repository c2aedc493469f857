"""Cards for those who do not see them, or see them in the colours of their system."""

import re
from typing import Final

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.alone import Alone, asked
from tests.browser.chatting import approve_button, decline_button, settle, stop_clock
from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser

LOOK: Final = """button => {
  const { color, borderTopColor, opacity } = getComputedStyle(button);
  return [color, borderTopColor, opacity];
}"""
CHOICES: Final = """<div class="seg"><label><input type="radio" name="a" checked>One</label>
<label><input type="radio" name="a">One</label></div>"""
RING: Final = "button => getComputedStyle(button).outlineStyle + getComputedStyle(button).outlineWidth"


def names(alone: Alone) -> list[str]:
    """What the browser tells a screen reader of each button and of what opens something."""
    nodes = alone.page.context.new_cdp_session(alone.page).send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "DisclosureTriangle"}
    return [str(each["name"]["value"]) for each in nodes if each.get("role", {}).get("value") in roles]


def test_where_several_cards_wait_no_two_buttons_have_the_same_name_and_a_warning_describes_each_yes(
    alone: Alone,
) -> None:
    twice = {"text": "one"}
    question = {"question": "Which a\u202eb?", "fields": []}
    asks = [asked(question, tool="ask_user") for _ in range(2)]
    chat = alone.chat(asked(twice), asked(twice), *asks, together=True)
    settle(alone.page)
    chat.modal.locator("[data-batch] summary").first.click()
    found = [name for name in names(alone) if re.match("Approve|Decline|Answer|More", name)]
    assert len(found) == 4 * 3 + 2 + 3
    assert sorted(set(found)) == sorted(found)
    expect(chat.cards.last.locator("[data-approve]")).to_have_accessible_description(re.compile("direction override"))

    question_of_server = alone.question()
    for button in question_of_server.locator("[data-answers] button").all():
        expect(button).to_have_accessible_name(re.compile("The server counter asks you$"))
        expect(button).to_have_accessible_description(re.compile(r"Go on\?"))


def meter(alone: Alone, card: Locator) -> bytes:
    """A picture of what stands before the words of the risk."""
    box = card.locator(".risk").bounding_box()
    assert box
    return alone.page.screenshot(clip={"x": box["x"] + 4, "y": box["y"] + 4, "width": 28, "height": box["height"] - 8})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_forced_colours_the_risk_the_focus_and_what_does_not_count_yet_are_seen(visit: Visit, scheme: str) -> None:
    alone = Alone(visit(Alone, forced_colors="active", color_scheme=scheme))
    chat = alone.chat()
    stop_clock(alone.page)
    alone.tell(asked({"text": "one"}, risk=1), asked({"text": "two"}, risk=4))
    low, high = chat.cards.all()
    expect(low.locator(".risk")).to_have_text("L1 Safe")
    assert meter(alone, low) != meter(alone, high)
    early = approve_button(low).evaluate(LOOK)
    alone.page.clock.run_for(2000)
    expect(low).not_to_have_attribute("data-early", "")
    assert decline_button(low).first.evaluate(LOOK) != early
    for button in (decline_button(low).first, approve_button(low)):
        button.focus()
        assert button.evaluate(RING) == "solid2px"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_forced_colours_what_is_chosen_looks_otherwise(visit: Visit, scheme: str) -> None:
    alone = Alone(visit(Alone, forced_colors="active", color_scheme=scheme))
    alone.begin()
    alone.page.locator("main").evaluate("(main, html) => { main.innerHTML = html; }", CHOICES)
    one, other = (each.screenshot() for each in alone.page.locator("main .seg label").all())
    assert one != other


@pytest.mark.parametrize("place", ["transcript", "window"])
def test_a_card_that_was_answered_elsewhere_is_told_of_and_one_answered_here_is_not(alone: Alone, place: str) -> None:
    alone.page.add_init_script(f"localStorage.setItem('hitlchat-cards', '{place}')")
    one, two, three = (asked({"text": word}) for word in ("one", "two", "three"))
    chat = alone.chat(one, two, three)
    chat.asked(3)
    heard = alone.page.locator("main > [data-announce], dialog [data-announce]").filter(has_text="No longer waiting")
    alone.tell(one, two)
    expect(heard).to_have_text(re.compile("^No longer waiting: Echo: text three"))
    expect(heard).to_have_attribute("role", "status")
    assert heard.evaluate("region => !region.closest('dialog') === !document.querySelector('dialog:modal')")
    chat.decline(chat.asked(2))
    heard.evaluate("region => { region.textContent = ''; }")
    alone.tell(two)
    chat.asked()
    alone.page.clock.run_for(2000)
    expect(heard).to_have_count(0)


def test_on_its_own_page_a_call_that_was_answered_elsewhere_is_looked_for_and_told_of(alone: Alone) -> None:
    page, card = alone.page, alone.approval(asked({"text": "one"}))
    told = page.locator("main > [role=status]")
    expect(told).to_be_empty()
    became = (
        '<div role="status"><p class="row"><b>Echo: text one</b></p><p class="decided">Approved by alice.</p></div>'
    )
    page.route("**/outcome?settled", lambda asked_for: asked_for.fulfill(body=became))
    settle(page)
    page.evaluate("document.body.dispatchEvent(new CustomEvent('inbox-news', { detail: { gone: [] } }))")
    expect(card).to_have_count(0)
    expect(told).to_have_text("Echo: text one · Approved by alice.")
