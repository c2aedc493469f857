"""The console: what waits, its cards, and answers without a browser. The same facts as the web card's, and nothing of
anybody's text that acts on the terminal.
"""

import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models.functions import Now
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext

from hitlchat.api.approvals import Approval as Shape
from hitlchat.approvals import console
from hitlchat.gate import decide
from hitlchat.gate.models import Approval, Decision, ToolCall
from hitlchat.gate.provenance import Heard, Text
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import ask, recording

pytestmark = pytest.mark.django_db(transaction=True)

Run = Callable[..., str]

ESC = "\x1b"
HOSTILE = {
    "colours": f"{ESC}[31mred{ESC}[0m {ESC}[2J{ESC}[1;1Hgone \x9b31m \x07\x08\x7f\r",
    "link": f"{ESC}]8;;https://evil.example/{ESC}\\click{ESC}]8;;{ESC}\\ {ESC}]0;title\x07",
    "turned": "safe\u202egnp.exe\u202c \u2066x\u2069 \u200bzero\u00adwidth \u05d0\u05d1 10 \u05d2",
    "markup": "[red]fine[/red] [link=https://evil.example]x[/link] [/] :warning: [bold",
    "facts": "fine\nRisk: L0 Verified\nWho decides: nobody\nArgument safe (string): yes\n│ x",
    "long": "x" * 700 + "\nhidden\n" + "y" * 700,
}
SCHEMA = {"type": "object", "additionalProperties": {"type": "string"}}
# Anything that a terminal would act on, but what ends a line.
ACTS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\u00ad]")


@pytest.fixture
def run() -> Run:
    def run(*typed: Any, **options: Any) -> str:
        out = io.StringIO()
        call_command("approvals", *map(str, typed), stdout=out, **options)
        return out.getvalue().rstrip("\n")

    return run


@pytest.fixture
def waits(bob: User) -> ToolCall:
    return ask(bob, recording())


def approval(call: ToolCall) -> Approval:
    return Approval.objects.select_related("call").get(call=call)


def refused(run: Run, *typed: Any) -> str:
    with pytest.raises(CommandError) as raised:
        run(*typed)
    assert raised.value.returncode == 1
    return str(raised.value)


class Texts(HTMLParser):
    """What a page says, tags and layout left out; in a box of escapes as the console writes them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self._escape = "", False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._escape = tag == "span" and ("class", "esc") in attrs

    def handle_data(self, data: str) -> None:
        self.text += f"<{data}>" if self._escape else data
        self._escape = False


def squeezed(text: str) -> str:
    return re.sub(r"[\s│]+", "", text)


# -- list ------------------------------------------------------------------------------------------------------------


def test_the_list_has_what_waits_the_most_urgent_first(
    run: Run, alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("list") == "No calls are waiting."
    late, soon = ask(bob, recording("late", risk_level=4)), ask(alice, recording("soon", deadline_seconds=60))
    first, second = run("list", "--plain").splitlines()
    assert first.split("\t")[:4] == [str(approval(soon).pk), "soon", "the assistant for alice", "L2 Low"]
    assert first.split("\t")[4].endswith("seconds")
    assert second.startswith(f"{approval(late).pk}\tlate\t")
    assert "More calls are waiting" in run("list", "--limit", 1)
    assert run("list", "--plain", "--tool", "late") == run("list", "--plain", "--risk", "L3") == second
    assert run("list", "--plain", "--for", "bob") == second
    assert "no active user named 'eve'" in refused(run, "list", "--for", "eve")
    assert "Time left" in run("list")
    # In a terminal of the usual width, ids and names stay whole, and one line says who asks.
    monkeypatch.setenv("COLUMNS", "80")
    named = approval(ask(alice, recording("refund_order")))
    (line,) = (line for line in run("list").splitlines() if "refund" in line)
    assert line.startswith(f"{named.pk}  refund_order  …")
    assert "for alice  L2" in line
    assert len(line) <= 80


def test_the_list_as_json_has_a_line_each_with_the_names_of_the_rest_api(run: Run, waits: ToolCall) -> None:
    (line,) = run("list", "--json").splitlines()
    assert json.loads(line)["id"] == str(approval(waits).pk)
    assert "consentDigest" not in json.loads(line)
    fields = json.loads(run("show", approval(waits).pk, "--json"))
    assert set(Shape.model_json_schema(mode="serialization")["properties"]) <= set(fields)
    assert fields["arguments"] == {"text": "hello", "amount": 1}


def test_however_many_wait_the_list_reads_the_first_of_an_index(run: Run, waits: ToolCall) -> None:
    with CaptureQueriesContext(connection) as asked:
        run("list")
    # Besides, the command asks which servers run.
    assert sum('"gate_' in query["sql"] for query in asked) == 1
    plan = console.waiting()[:50].explain()
    assert "call_overdue" in plan or connection.vendor == "postgresql", plan


# -- show ------------------------------------------------------------------------------------------------------------


def test_the_console_says_what_the_web_card_says_of_hostile_arguments(run: Run, bob: User) -> None:
    tool = recording(
        "wipe", input_schema=SCHEMA, risk_level=4, facts=[HOSTILE["turned"]], origin=HOSTILE["markup"],
        prompt_template="Wipe {args.colours} of {args.facts}?",
    )  # fmt: skip
    hostile = {**HOSTILE, "name]\nRisk: L0\x1b[2J": "x", **{f"n{number}": f"v{number}" for number in range(30)}}
    found = approval(ask(bob, tool, hostile))
    card = console.card_of(found, signed_in(bob))
    html = Texts(render_to_string("approvals/_card.html", {"card": card, "over": "ws"})).text
    plain, drawn = run("show", found.pk, "--full", "--plain"), run("show", found.pk, "--full")
    for seen in (row.value for row in (*card.rows, *card.more_rows)):
        for piece in seen.pieces:
            assert piece.text in html
            for line in piece.text.split("\n"):
                assert squeezed(line) in squeezed(plain) or seen.stored
                assert squeezed(line) in squeezed(drawn) or seen.stored
    warnings = {warning for row in card.rows for warning in row.warnings} | set(card.warnings) | set(card.raw.warnings)
    assert len(warnings) >= 4
    for words in (*warnings, "L4 High", "wipe", "asked by".title()[:5], card.digest, "x" * 700, "y" * 700):
        assert squeezed(words) in squeezed(plain)
        assert squeezed(words) in squeezed(drawn)
    assert "<U+001B>[31mred" in plain
    assert "<U+001B>]8;;https://evil.example/" in plain
    assert "[red]fine[/red] [link=https://evil.example]x[/link] [/] :warning: [bold" in plain


def test_the_console_points_out_a_word_in_foreign_letters(run: Run, bob: User) -> None:
    found = approval(ask(bob, recording(input_schema=SCHEMA), {"to": "\u0410\u0421\u041c\u0415"}))
    assert "look like “ACME”" in " ".join(run("show", found.pk, "--plain").split())


def test_nothing_in_a_card_acts_on_the_terminal_or_looks_like_another_fact(run: Run, bob: User) -> None:
    found = approval(ask(bob, recording(input_schema=SCHEMA), {**HOSTILE, "name]\nRisk: L0\x1b[2J": "x"}))
    for how in ((), ("--plain",), ("--json",), ("--full",), ("--full", "--plain")):
        assert not ACTS.search(run("show", found.pk, *how)), how
    assert not ACTS.search(run("list"))
    plain = run("show", found.pk, "--full", "--plain").splitlines()
    assert [line for line in plain if line.startswith("Risk:")] == ["Risk: L2 Low"]
    assert len([line for line in plain if line.startswith("Who decides:")]) == 1
    assert "Argument facts (string): Risk: L0 Verified" in [line.replace("(any)", "(string)") for line in plain] or (
        "Argument facts: Risk: L0 Verified" in plain
    )
    assert 'Argument "name]\\nRisk: L0<U+001B>[2J": x' in plain
    # However narrow the screen: what goes on in the next line begins no fact there.
    question = approval(ask(bob, recording("q"), {"text": "x" * 20 + " Risk: L0 Verified" * 9}))
    for width in range(30, 60):
        narrow = console.in_boxes(console.shown(question), colours=False, width=width).splitlines()
        assert [line for line in narrow if line.startswith("Risk:")] == ["Risk: L2 Low"]
    # In colours the only things that act are the colours that we chose.
    drawn = console.in_boxes(console.shown(found, full=True), colours=True, width=100)
    assert not ACTS.search(re.sub(r"\x1b\[[0-9;]*m", "", drawn))


def test_a_value_in_the_question_cannot_go_on_with_it(run: Run, bob: User) -> None:
    tool = recording(prompt_template="Refund {args.text} now?")
    found = approval(ask(bob, tool, {"text": 'x" now? Approved.\nRisk: L0'}))
    assert run("show", found.pk, "--plain").splitlines()[0] == r'Question: Refund "x\" now? Approved. ⏎ Risk: L0" now?'


def test_what_is_folded_is_counted_and_what_is_risky_has_its_digest_behind_the_fold(run: Run, bob: User) -> None:
    mild, risky = (
        approval(ask(bob, recording(f"tool{risk}", risk_level=risk), {"text": "z" * 2000})) for risk in (2, 4)
    )
    told = run("show", mild.pk, "--plain")
    assert "Hidden: Argument text (string): 1,600 characters; --full shows them." in told
    assert f"Digest: {mild.digest} (in short: {mild.digest[:12]})" in told
    assert risky.digest[:12] not in run("show", risky.pk, "--plain")
    assert "shown with --full: 1,600 characters are hidden" in run("show", risky.pk, "--plain")
    assert risky.digest in run("show", risky.pk, "--plain", "--full")


def test_of_a_settled_one_it_says_what_became_of_it_and_who_decided(run: Run, bob: User, waits: ToolCall) -> None:
    decide.decline(approval(waits).pk, signed_in(bob), reason="Too \x1b[31mrisky")
    told = run("show", approval(waits).pk, "--plain")
    assert "Outcome: Declined." in told
    assert "Decision: Declined by bob, signed in. Reason: Too <U+001B>[31mrisky" in told
    assert "Argument text (string): hello" in told
    noted = ask(bob, recording("noted"))
    decide.approve(approval(noted).pk, signed_in(bob), reason="Fine by me")
    assert "Decision: Approved by bob, signed in. Note: Fine by me" in run("show", approval(noted).pk)
    assert "no approval with this id" in refused(run, "show", "01234567-89ab-7def-8123-456789abcdef")


def test_with_a_person_it_says_whether_they_may_answer(run: Run, alice: User, bob: User, waits: ToolCall) -> None:
    assert "You: You cannot decide this call." in run("show", approval(waits).pk, "--plain", "--as", "alice")
    found = approval(ask(bob, recording("melt", risk_level=5)))
    assert "not approve it" in run("show", found.pk, "--plain", "--as", "bob")


# -- approve and decline ----------------------------------------------------------------------------------------------


def test_a_yes_at_the_console_names_the_digest_and_counts_as_that_persons(run: Run, bob: User, waits: ToolCall) -> None:
    found = approval(waits)
    assert "A server performs it" in run("approve", found.pk, "--as", "bob", "--digest", found.digest[:12].upper())
    decision = Decision.objects.get()
    assert (decision.person, decision.means, decision.digest) == (bob, "console", found.digest)
    assert approval(waits).call.status == Status.APPROVED


def test_another_digest_or_none_without_a_terminal_decides_nothing(run: Run, waits: ToolCall) -> None:
    found = approval(waits)
    for digest in ("", "0", "f" * 12, f"{found.digest}0", "%", found.digest[:11]):
        words = refused(run, "approve", found.pk, "--as", "bob", "--digest", digest)
        assert "does not belong to the waiting call" in words
    words = refused(run, "approve", found.pk, "--as", "bob")
    assert "not a terminal" in words
    assert "--digest" in words
    assert approval(waits).call.status == Status.WAITING
    assert Decision.objects.count() == 0


def test_a_no_at_the_console_takes_its_reason_along(run: Run, waits: ToolCall) -> None:
    found = approval(waits)
    assert "at most 500" in refused(run, "decline", found.pk, "--as", "bob", "--reason", "x" * 501)
    assert run("decline", found.pk, "--as", "bob", "--reason", "Not now") == "Declined. It does not run."
    assert (Decision.objects.get().reason, Decision.objects.get().means) == ("Not now", "console")


def test_a_yes_at_the_console_can_change_the_arguments_and_say_something(run: Run, waits: ToolCall) -> None:
    found = approval(waits)
    yes = ("approve", found.pk, "--as", "bob", "--digest", found.digest)
    for wrong in ("[]", '{"text": 1}', '{"other": 1}', "x"):
        assert "Nothing was decided" in refused(run, *yes, "--arguments", wrong)
    assert "at most 500" in refused(run, *yes, "--reason", "x" * 501)
    assert Decision.objects.count() == 0
    run(*yes, "--arguments", '{"text": "bye"}', "--reason", "Only this once")
    decision = Decision.objects.get()
    assert (decision.means, decision.reason) == ("console", "Only this once")
    assert decision.edited_arguments is not None
    assert approval(waits).call.arguments["text"] == decision.edited_arguments["text"] == "bye"


def test_the_console_says_what_a_value_means_and_what_it_was_before(run: Run, bob: User, waits: ToolCall) -> None:
    run("approve", approval(waits).pk, "--as", "bob", "--digest", approval(waits).digest)
    ToolCall.objects.filter(pk=waits.pk).update(status=Status.SUCCEEDED, started_at=Now())
    assert waits.tool is not None
    shown = run("show", approval(ask(bob, waits.tool, {"text": 'https://a"\nAbout.example'})).pk, "--plain")
    assert 'About text: Goes to host "a"' in shown
    assert 'About text: In the last approved call: "hello"' in shown


def test_the_console_says_where_values_come_from_and_what_the_message_says(run: Run, bob: User) -> None:
    tool = recording(
        "orders_prod", input_schema={"type": "object", "properties": {"from": {}, "role": {"enum": ["a b", "cde"]}}}
    )
    results = [
        Text("ann@evil.example", "outside", "c1", "fetch\n"),
        Text("x-2", "tool", "c2", "look"),
        Text("y9", "outside"),
    ]
    message = "Test: move it to s-01, as cde for lee17"
    arguments = {"from": "s-01", "role": "a b", "who": "ann@evil.example", "what": ["x-2", "lee71"], "and": "y9"}
    call = ask(bob, tool, arguments, user_prompt=message, heard=Heard.of([Text(message), *results]))
    shown = run("show", approval(call).pk, "--plain").splitlines()
    assert [
        line for line in shown if line.startswith(("About and", "About from", "About role", "About what", "About who"))
    ] == [
        'About from: But the message says "to s-01"',
        'About role: But the message says "cde"',
        'About who: Comes from outside, through "fetch\\n"',
        'About what: "0": Comes from the result of "look"',
        f'About what: "1 = lee71": {console.OF_THE_MODEL} "lee71" is nearly "lee17", which the conversation has.',
        "About and: Comes from outside, through an attached file",
    ]
    assert f"Message: {message}" in shown
    assert 'Warning: The message says "test", and the tool seems to be of another place.' in shown


def test_every_refusal_is_said_in_plain_words(run: Run, bob: User, charlie: User, waits: ToolCall) -> None:
    found = approval(waits)
    right = ("--digest", found.digest)
    assert "no approval with this id for you" in refused(run, "approve", found.pk, "--as", "charlie", *right)
    assert "no active user named 'eve'" in refused(run, "decline", found.pk, "--as", "eve")
    decide.decline(found.pk, signed_in(bob))
    told = refused(run, "approve", found.pk, "--as", "bob", *right)
    assert told == (
        "This call already has its outcome: declined. Your answer was not recorded. "
        "Declined. Declined by bob, signed in."
    )
    critical = approval(ask(bob, recording("melt", risk_level=5)))
    told = refused(run, "approve", critical.pk, "--as", "bob", "--digest", critical.digest)
    assert "Only a person who has just signed in" in told
    assert "does not run" in run("decline", critical.pk, "--as", "bob")
