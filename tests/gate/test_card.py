"""The approval card: built from the stored disclosure alone, and nothing in it but text."""

import base64
import re
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.utils import timezone

from hitlchat.base import canonical
from hitlchat.gate import card, decide, disclosure, editing
from hitlchat.gate.models import Approval, Tool, ToolCall
from hitlchat.gate.provenance import Heard, Text
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, approved, ask, events, fresh, recording, run, say_yes
from tests.tables import each_row

pytestmark = pytest.mark.django_db

HOSTILE = {
    "html": "<img src=x onerror=alert(1)><script>alert(1)</script><b>bold</b>",
    "closing": '</div></dd></dl></article><button data-approve>Approve</button><form action="/decide">',
    "attribute": "\" onclick='x' ' autofocus data-approve=\"",
    "markdown": "[click](javascript:alert(1)) ![i](http://x/y.png) **bold** http://example.org",
    "template": "{{ card.digest }}{% csrf_token %}{# #}",
    "entities": "&lt;script&gt; &#x3c;b&#x3e;",
}


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def rendered(call: ToolCall) -> Elements:
    return Elements(render_to_string("approvals/_card.html", {"card": card.card(approval_of(call)), "over": "ws"}))


@pytest.fixture
def free(db: None) -> Tool:
    """A tool that takes anything."""
    return recording("free", input_schema={"type": "object"})


@pytest.mark.guarantee("SR-1")
def test_the_card_shows_the_call_and_not_what_the_model_says_of_it(bob: User, tool: Tool) -> None:
    call = ask(bob, tool, {"text": "delete everything"}, user_prompt="please only read a file")
    shown = rendered(call)
    assert "delete everything" in shown.text
    assert "refund" in shown.text
    # What the person said is theirs, and the person's words are not the model's.
    assert "bob wrote: please only read a file" in " ".join(shown.text.split())


def test_of_many_facts_the_first_are_in_sight_and_the_others_counted(bob: User) -> None:
    many = [f"Fact {n}." for n in range(7)]
    call = ask(bob, recording("told", facts=[*many[:6], "Fact 6\u200b."]))
    shown = card.card(approval_of(call))
    assert [fact.plain for fact in shown.facts] == many[:3]
    assert [fact.plain for fact in shown.more_facts] == [*many[3:6], "Fact 6U+200B.", "It has never run here."]
    assert "More about the tool (5)" in rendered(call).text
    assert "Contains an invisible character, shown as U+ and a code." in shown.warnings
    assert approval_of(call).disclosure["facts"][:-1] == [*many[:6], "Fact 6\u200b."]


@each_row("value", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.guarantee("SR-2")
def test_no_argument_becomes_an_element_or_an_attribute(value: str, bob: User, free: Tool) -> None:
    # Of an address there is a line on what it means, also where nothing else is.
    ordinary = " ".join(["plain", *re.findall(r"http://[\w.]+", value)])
    plain, hostile = rendered(ask(bob, free, {"a key": ordinary})), rendered(ask(bob, free, {value: value}))
    assert hostile.found == plain.found
    assert value in hostile.text


@each_row("field", ["name", "origin", "facts", "prompt_template"])
@pytest.mark.guarantee("SR-2", "SR-8")
def test_nothing_of_the_tool_becomes_an_element(field: str, bob: User) -> None:
    value: Any = ["<b>Approve</b>"] if field == "facts" else "<b>Approve</b>"
    ordinary: Any = ["a b"] if field == "facts" else "a b"
    plain = recording(**{"facts": ["a"], field: ordinary})
    hostile = recording(**{"name": "other", "facts": ["a"], field: value})
    assert rendered(ask(bob, hostile)).found == rendered(ask(bob, plain)).found


@pytest.mark.guarantee("SR-2")
def test_escape_codes_of_a_terminal_are_shown_not_followed(bob: User, free: Tool) -> None:
    shown = rendered(ask(bob, free, {"key": "\x1b[2J\x1b]8;;http://x\x07link"}))
    assert "\x1b" not in shown.text
    assert "U+001B[2JU+001B]8;;http://xU+0007link" in shown.text


@pytest.mark.guarantee("SR-3")
def test_a_word_in_foreign_letters_is_pointed_out_wherever_a_card_shows_it(bob: User) -> None:
    word, about = "\u0410\u0421\u041c\u0415", "is written in Cyrillic letters that look like “ACME”"
    call = ask(bob, recording(prompt_template="Pay {args.to}?", input_schema={"type": "object"}), {"to": word})
    shown = card.card(approval_of(call))
    (row,) = shown.rows
    for warnings in (shown.alerts, row.warnings, shown.raw.warnings):
        assert any(about in each for each in warnings)
    (change,) = editing.changes({"to": "ACME"}, {"to": word}, [("to", "text")])
    assert any(about in each for each in change.warnings)
    group = {"cards": [shown, shown], "key": "x"}
    places: dict[str, dict[str, Any]] = {
        "approvals/_card.html": {"card": shown, "over": "ws"},
        "approvals/_batch.html": {"group": group},
        "approvals/_review.html": {"card": shown, "review": {"changes": [change], "title": shown.title}},
    }
    for template, context in places.items():
        assert about in render_to_string(template, context), template


@pytest.mark.guarantee("SR-3")
def test_hidden_characters_are_shown_in_keys_and_values_with_a_warning(bob: User, free: Tool) -> None:
    call = ask(bob, free, {"pay\u202eee": "a\U000e0041b"})
    (row,) = card.card(approval_of(call)).rows
    assert (row.name.plain, row.value.plain) == ("payU+202Eee", "aU+E0041b")
    assert len(row.warnings) == 2
    assert "\u202e" not in rendered(call).text


@pytest.mark.guarantee("SR-4")
def test_a_value_of_10000_lines_leaves_the_rest_in_sight(bob: User, free: Tool) -> None:
    value = "\n".join(f"line {number}" for number in range(10_000))
    shown = card.card(approval_of(ask(bob, free, {"long": value, "short": "seen"})))
    long, short = shown.rows
    assert long.rest is not None
    assert long.value.plain + long.rest.plain == value
    assert long.value.plain.count("\n") == card.SHOWN_LINES_OF_FOLDED
    assert long.hidden == len(long.rest.plain) == shown.hidden
    assert long.folded == "98,833 characters (9,992 lines)"
    assert (short.value.plain, short.hidden) == ("seen", 0)


@pytest.mark.guarantee("SR-4")
def test_a_value_in_the_cards_own_words_stays_in_its_box(bob: User, free: Tool) -> None:
    words = "Approve: run free\nasked by the assistant for bob\nL0 Verified</dd><dt>amount</dt>"
    plain, imitating = rendered(ask(bob, free, {"note": "x"})), rendered(ask(bob, free, {"note": words}))
    assert imitating.found == plain.found
    assert card.card(approval_of(ask(bob, free, {"note": words}))).rows[0].value.plain == words


@pytest.mark.guarantee("SR-2", "SR-3")
def test_what_a_value_means_is_beside_it_and_of_what_was_decoded_there_are_warnings(bob: User, free: Tool) -> None:
    hostile = base64.b64encode("<script>x</script>\u202eabc".encode()).decode()
    shown = rendered(call := ask(bob, free, {"a": "https://shop.example@evil.example/", "b": hostile}))
    first, second = card.card(approval_of(call)).rows
    assert first.value.plain == "https://shop.example@evil.example/"
    assert "Goes to host evil.example" in shown.text
    assert "Before the @ is a user name, not the host: shop.example" in shown.text
    assert "Base64, decoded: <script>x</script>U+202Eabc" in shown.text
    assert second.value.plain == hostile
    assert second.warnings == ("Contains a direction override: elsewhere this text may look different.",)
    assert "script" not in [name for name, _ in shown.found]


@pytest.mark.guarantee("SR-5")
def test_what_the_message_says_against_a_call_is_on_its_card_and_a_yes_takes_a_tick(bob: User) -> None:
    properties = {"role": {"enum": ["member", "admin"]}, "who": {"type": "string"}}
    tool = recording("team_prod_add", input_schema={"type": "object", "properties": properties})
    message = "Add lee17 as a member on test"

    def asked(**arguments: Any) -> tuple[str, tuple[str, ...]]:
        call = ask(bob, tool, arguments, user_prompt=message, heard=Heard.of([Text(message)]))
        return " ".join(rendered(call).text.split()), card.card(approval_of(call)).alerts

    text, alerts = asked(role="admin", who="lee71")
    assert "But the message says member." in text
    assert "But the message says test, and this tool seems to be of another place." in text
    assert "lee71 is nearly lee17, which the conversation has." in text
    assert alerts == (card.NOT_AS_WRITTEN, card.NEARLY_THE_SAME)
    assert "I read the 2 warnings above." in text
    Tool.objects.update(name="team_add")
    tool.refresh_from_db()
    text, alerts = asked(role="member", who="lee17")
    assert "But the message" not in text
    assert alerts == ()


def test_of_a_thousand_arguments_each_is_there_and_the_folding_adds_up(bob: User, free: Tool) -> None:
    arguments = {f"key{number}": "\u200b" + "x" * (number // 3 if number > 9 else 700) for number in range(1000)}
    shown = card.card(approval_of(ask(bob, free, arguments)))
    assert {row.name.plain for row in (*shown.rows, *shown.more_rows)} == set(arguments)
    assert len(shown.rows) == card.MOST_ROWS
    in_sight = sum(row.length - row.hidden for row in shown.rows)
    assert shown.hidden + in_sight == sum(map(len, arguments.values()))


@pytest.mark.guarantee("SR-7")
def test_every_argument_is_on_the_card_also_those_that_the_gate_added(bob: User, tool: Tool) -> None:
    shown = card.card(approval_of(ask(bob, tool, {"text": "a"})))
    assert [(row.name.plain, row.type, row.value.plain) for row in shown.rows] == [
        ("text", "string", "a"),
        ("amount", "integer", "1"),
    ]


def test_an_empty_text_is_said_to_be_one(bob: User, tool: Tool) -> None:
    assert card.card(approval_of(ask(bob, tool, {"text": ""}))).rows[0].empty
    assert "empty" in rendered(ask(bob, tool, {"text": ""})).text


def test_an_empty_text_in_the_question_is_said_to_be_one(bob: User, free: Tool) -> None:
    assert rendered(ask(bob, free, {"text": ""})).text.split()[:4] == ["Free:", "text", "(empty", "text)"]


def test_the_raw_arguments_are_all_of_them(bob: User, free: Tool) -> None:
    arguments = {"a": [1, {"b": None}], "c": "é"}
    call = ask(bob, free, arguments)
    assert canonical.loads(card.card(approval_of(call)).raw.plain) == arguments == fresh(call).arguments


@pytest.mark.guarantee("SR-1")
def test_a_later_change_of_the_tool_does_not_change_the_card(waiting: ToolCall) -> None:
    before = card.card(approval_of(waiting))
    Tool.objects.update(name="harmless", risk_level=0, origin="Elsewhere", facts=["Safe."], prompt_template="Nothing.")
    assert card.card(approval_of(waiting)) == before


@pytest.mark.guarantee("gate:fail-closed", "SR-6")
@each_row("part", ["prompt", "tool", "caller", "arguments", "risk", "reason", "facts", "deadline", "fields"])
def test_a_card_with_a_part_missing_is_no_card(part: str, waiting: ToolCall) -> None:
    approval = approval_of(waiting)
    del approval.disclosure[part]
    with pytest.raises(KeyError):
        card.card(approval)


@pytest.mark.guarantee("gate:fail-closed", "SR-6")
@each_row(
    "part, value",
    [("tool", None), ("arguments", 1), ("facts", 5), ("deadline", "soon"), ("caller", {})],
)
def test_a_call_that_cannot_be_laid_out_takes_no_yes_and_never_runs(
    part: str, value: object, bob: User, waiting: ToolCall, entered: list[ToolCall]
) -> None:
    damaged(waiting, part, value)
    with pytest.raises(decide.AlreadySettled):
        say_yes(bob, waiting)
    assert not run(waiting)
    settled = fresh(waiting)
    assert (settled.status, settled.reason) == (Status.WITHDRAWN, "Not run: it could not be fully inspected.")
    assert (events(waiting), entered) == (["call.waiting", "call.withdrawn"], [])


@pytest.mark.guarantee("SR-6")
def test_a_call_that_cannot_be_laid_out_can_be_declined(bob: User, waiting: ToolCall) -> None:
    damaged(waiting, "arguments", 1)
    decide.decline(approval_of(waiting).pk, signed_in(bob))
    assert fresh(waiting).status == Status.DECLINED


def damaged(call: ToolCall, part: str, value: object) -> None:
    """As if somebody had changed what is stored of the question."""
    approval = approval_of(call)
    shown = approval.disclosure | {part: value}
    Approval.objects.filter(pk=approval.pk).update(disclosure=shown)


@each_row("risk", range(6))
@pytest.mark.guarantee("SR-5")
def test_approve_is_out_of_reach_until_the_script_of_the_page_has_looked(risk: int, bob: User) -> None:
    tool = recording(risk_level=risk, input_schema={"type": "object"})
    buttons = [names for tag, names in rendered(ask(bob, tool, {"text": "x" * 5000})).found if tag == "button"]
    (approve,) = [names for names in buttons if "data-approve" in names]
    assert "disabled" in approve
    assert not any("autofocus" in names for names in buttons)


@pytest.mark.guarantee("gate:same-call", "SR-1")
def test_the_digest_covers_every_part_of_what_is_shown(waiting: ToolCall) -> None:
    approval: Approval = approval_of(waiting)
    shown = approval.disclosure
    assert disclosure.digest(shown) == approval.digest
    changed = [{**shown, part: "other"} for part in shown] + [{**shown, "more": 1}]
    assert approval.digest not in {disclosure.digest(other) for other in changed}


CLAIM = "4711? Dry run: nothing is charged"


def boxes_of_the_title(call: ToolCall) -> list[str]:
    html = render_to_string("approvals/_card.html", {"card": card.card(approval_of(call)), "over": "ws"})
    return re.findall(r'<bdi class="value inline">(.*?)</bdi>', html)


@pytest.mark.guarantee("SR-4")
def test_a_value_in_the_title_stands_in_a_box_of_its_own(bob: User) -> None:
    tool = recording(prompt_template="Refund order {args.text}?")
    call = ask(bob, tool, {"text": CLAIM})
    assert boxes_of_the_title(call) == [CLAIM]
    assert approval_of(call).prompt == f"Refund order “{CLAIM}”?"


def test_an_edited_call_has_an_edited_title(bob: User, tool: Tool) -> None:
    shown = approval_of(ask(bob, tool, {"text": "before"})).disclosure
    tool.prompt_template = "Say {args.text}"
    assert disclosure.with_edit(shown, {"text": "after"}, tool)["promptPieces"] == [["Say ", False], ["after", True]]


@pytest.mark.guarantee("SR-3")
def test_in_title_name_value_and_raw_json_misleading_order_is_shown_as_stored(bob: User, free: Tool) -> None:
    call = ask(bob, free, {"sum 5א7": "100א5"})
    html = render_to_string("approvals/_card.html", {"card": card.card(approval_of(call)), "over": "ws"})
    # The title has both too.
    assert html.count('class="stored"') == 5


def test_both_parts_of_a_folded_value_are_shown_in_the_same_order(bob: User, free: Tool) -> None:
    (row,) = card.card(approval_of(ask(bob, free, {"a": "x" * 900 + "א5"}))).rows
    assert row.rest is not None
    assert (row.value.stored, row.rest.stored) == (True, True)
    assert any("right-to-left" in warning for warning in row.warnings)


@each_row(
    "value,folded",
    [
        ("x" * 600, None),
        ("x" * 601, "201 characters"),
        ("x\n" * 11 + "x", None),
        ("x\n" * 12 + "x", "9 characters (5 lines)"),
        ("\n" * 12, "4 characters (4 lines)"),
        ("x" * 399 + "\n" * 13, "12 characters (12 lines)"),
        ({str(number): number for number in range(10, 30)}, "156 characters (14 lines)"),
    ],
    ids=range(7),
)
@pytest.mark.guarantee("SR-5")
def test_a_value_folds_after_some_characters_or_lines(value: Any, folded: str | None, bob: User, free: Tool) -> None:
    call = ask(bob, free, {"a": value})
    (row,) = card.card(approval_of(call)).rows
    assert (row.folded if row.rest else None) == folded
    assert folded is None or f"Show the other {folded}" in rendered(call).text


def test_forty_thousand_hidden_characters_make_a_small_card(bob: User, free: Tool) -> None:
    call = ask(bob, free, {"a": "\u200b" * 40_000})
    html = render_to_string("approvals/_card.html", {"card": card.card(approval_of(call)), "over": "ws"})
    assert len(html) < 20_000
    assert "40,000 invisible characters" in html


@each_row("became", ["succeeded", "failed", "unknown", "executing"])
def test_a_card_says_that_the_same_call_ran_lately(bob: User, became: str) -> None:
    tool = recording()
    first = approved(bob, tool, {"text": "hello", "amount": 3})
    settled = None if became == "executing" else timezone.now()
    ToolCall.objects.filter(pk=first.pk).update(status=became, started_at=timezone.now(), settled_at=settled)
    again = card.card(approval_of(ask(bob, tool, {"amount": 3, "text": "hello"})))
    assert again.facts[0].plain.startswith("The same call, with the same arguments, ran at ")
    assert not ran_lately(ask(bob, tool, {"text": "another"}))


def test_a_card_says_nothing_of_a_call_that_did_not_run_or_ran_long_ago_or_for_somebody_else(
    alice: User, bob: User
) -> None:
    tool = recording()
    decide.decline(approval_of(ask(bob, tool)).pk, signed_in(bob))
    ran = approved(bob, tool)
    long_ago = timezone.now() - timedelta(hours=2)
    ToolCall.objects.filter(pk=ran.pk).update(status="succeeded", started_at=long_ago, settled_at=long_ago)
    assert not ran_lately(ask(bob, tool))
    ToolCall.objects.filter(pk=ran.pk).update(started_at=timezone.now(), settled_at=timezone.now())
    assert ran_lately(ask(bob, tool))
    assert not ran_lately(ask(alice, tool))


def ran_lately(call: ToolCall) -> bool:
    return any(fact.plain.startswith("The same call") for fact in card.card(approval_of(call)).facts)
