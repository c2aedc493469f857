"""The pages of the Studio, of servers and of MCP clients in German, filled and empty."""

import html
from collections import Counter
from datetime import UTC, date, datetime
from io import BytesIO
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client
from django.utils.translation import gettext, override
from pytest_django import Settings

from hitlchat.agent import asking, conversations, runs
from hitlchat.agent.models import Conversation
from hitlchat.base import forms, sentences
from hitlchat.base.forms import Field
from hitlchat.base.moments import span
from hitlchat.gate import card, decide, oversight, perform, question, schema
from hitlchat.gate.grants import scope
from hitlchat.gate.loosening import Guard, weaker
from hitlchat.gate.models import Grant, HitlMode
from hitlchat.gate.submit import CHANGED, EDITED, FAILED, CallRequest, submit
from hitlchat.insights import drawing
from hitlchat.insights.figures import Answers, Figures, Period, Tally
from hitlchat.mcp_server import calling, elicitation, submissions, tokens
from hitlchat.people import membership
from hitlchat.record.checking import Checked, checked_words
from hitlchat.templatetags import marks
from hitlchat.upstreams import gallery
from tests.conftest import caller, signed_in
from tests.gate.asking import approval_of, ask, recording
from tests.insights.rows import answered
from tests.tables import each_row
from tests.upstreams.shops import expose, listing, somewhere, take_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def german(alice: User) -> Client:
    client = Client(headers={"accept-language": "de"})
    client.force_login(alice)
    return client


@each_row(
    "path, words",
    [
        ("/studio/", "Ein Werkzeug ist eine Python-Funktion."),
        ("/studio/new", "Niemand kann das Werkzeug aufrufen, bevor Sie es veröffentlichen."),
        ("/studio/sandbox", "Die Wände zwischen dem Code von Werkzeugen und diesem Rechner."),
        ("/studio/import", "Bevor sich etwas ändert, sehen Sie, was mit jedem Werkzeug geschehen würde."),
        ("/servers/", "Noch keine Server"),
        ("/servers/new", "Sobald der Server verbunden ist, wählen Sie, welche seiner Werkzeuge Sie anbieten."),
        ("/servers/gallery", "Bekannte Server als Ausgangspunkt."),
        ("/servers/history", "Noch keine Ereignisse"),
        ("/servers/questions", "Nichts wartet auf"),
        ("/servers/tools", "Angebotene Werkzeuge und höchstes Risiko"),
        ("/tool-sets/", "Jedes veröffentlichte Werkzeug, auch künftige."),
        ("/tool-sets/new", "Zum Beispiel „"),
        ("/presets/", "Noch gibt es keine Vorlagen."),
        ("/presets/new", ">Auch bei jedem Aufruf über L1</option>"),
        ("/mcp-access/connect", "Adresse und Token"),
        ("/mcp-access/tokens", "Noch keine Tokens"),
        ("/mcp-access/inspector", "Kann der Client seinen Benutzer fragen?"),
        ("/people/", ">Jede Rolle</option>"),
        ("/people/", ">Aktiv oder nicht</option>"),
        ("/notices/webhooks/new", ">Signiertes JSON (Standard Webhooks)</option>"),
        ("/notices/webhooks/new", "Lässt diesen Webhook an eine private Adresse gehen, auch ohne https."),
    ],
)
def test_a_page_without_anything_in_it_is_in_german(german: Client, path: str, words: str) -> None:
    assert words in german.get(path, follow=True).content.decode()


def test_a_change_that_asks_less_names_both_modes_in_german() -> None:
    (said,) = weaker(Guard(HitlMode.REQUIRED), Guard(HitlMode.DISABLED))
    with override("de"):
        assert "„jedes Mal fragen“ wird „nie fragen“" in sentences.translated(said)


def test_what_is_counted_on_a_page_is_in_german(alice: User, german: Client) -> None:
    server = somewhere(alice)
    take_in(server, listing(buy="Buy a thing.", search="Search for things."))
    for name in ("buy", "search"):
        expose(alice, server, name)
    for path, words in (
        ("/servers/", "2 von 2 angeboten"),
        ("/servers/s/shop", "Diese Einstellungen testen"),
        ("/servers/s/shop/delete", "2 angebotene Werkzeuge verlassen sofort den Katalog."),
        ("/servers/tools", "<b>2</b>von 2 angeboten"),
    ):
        assert words in german.get(path, follow=True).content.decode(), path


def test_a_reason_that_a_person_wrote_is_shown_as_it_was_written() -> None:
    with override("de"):
        assert gettext("Safe") != "Safe" == decide.shown_reason("Safe")
        assert decide.shown_reason("Too risky") == gettext("Too risky") != "Too risky"


@each_row("language", ["en", "de"])
def test_a_stored_text_with_ends_of_lines_that_hide_keeps_them(language: str) -> None:
    with override(language):
        assert marks.translated("one\rtwo") == "one\rtwo"


def test_insights_speak_german_in_pictures_and_advice(alice: User, german: Client) -> None:
    for _ in range(5):
        answered(alice, "send", no=True)
    found = german.get("/insights/").content.decode()
    for words in (
        "4 Wochen",
        "Anfragen pro Tag",
        "5 Anfragen in 4 Wochen: 0 genehmigt, 5 abgelehnt, 0 abgelaufen.",
        "send wurde 5 von 5 Mal abgelehnt.",
        "15 bis 30 s",
    ):
        assert words in found
    assert "Nothing to change." not in found


@each_row("language, day", [("en", "28 Oct"), ("de", "28 Okt")])
def test_a_picture_names_months_in_the_language_of_the_page(language: str, day: str) -> None:
    days = {date(2026, 10, 28): Tally(), date(2026, 10, 29): Tally()}
    figures = Figures(Period("7d", date(2026, 10, 29)), days, [], [], Answers(Counter()), [])
    with override(language):
        assert day in [each.text for each in drawing.days(figures).marks]


@each_row("language, words", [("en", "2 days 3 h"), ("de", "2 Tage 3 h")])
def test_a_span_of_days_is_in_the_language_of_the_page(language: str, words: str) -> None:
    with override(language):
        assert span(2 * 86400 + 3 * 3600) == words


def test_templates_of_new_tools_and_their_capabilities_are_in_german(german: Client) -> None:
    found = german.get("/studio/new?template=store").content.decode()
    for words in (
        "Einfache Funktion",
        "Ersetzen Sie api.example.com",
        "Es kann die Daten, die es aufbewahrt, lesen und ändern (store).",
        "bewahrt Daten zwischen Aufrufen auf",
    ):
        assert words in found


@each_row(
    "path, words",
    [
        (
            "/studio/new",
            ["Eigene</option>", "Hosts, einer pro Zeile", "Größte Antwort, in Bytes", "Höchstens 5; bei 0"],
        ),
        ("/studio/agents/new", ["Nie fragen</option>", "L2 Niedrig</option>"]),
    ],
)
def test_what_can_be_chosen_in_a_form_is_in_german(german: Client, path: str, words: list[str]) -> None:
    shown = html.unescape(german.get(path).content.decode())
    assert [each for each in words if each not in shown] == []


def test_the_risk_of_an_upstream_tool_is_explained_in_german(alice: User, german: Client) -> None:
    server = somewhere(alice)
    take_in(server, listing(send="Send a thing."))
    row = server.tools.get()
    found = german.get(f"/servers/s/shop/tools/{row.pk}").content.decode()
    assert "Werkzeug: Dem Namen nach sendet es Daten an andere." in found
    assert any(each.startswith("Tool: ") for each in row.risk_reasons)


def test_notices_are_chosen_and_confirmed_in_german(german: Client) -> None:
    assert "L2 Niedrig und höher" in german.get("/notices/").content.decode()
    assert "Mich: was ich entscheiden darf" in german.get("/notices/webhooks/new").content.decode()
    answer = german.post("/notices/arguments", {"arguments": "yes"}, follow=True)
    assert "Benachrichtigungen enthalten ab jetzt Argumente, ohne Geheimnisse." in answer.content.decode()


def test_a_change_of_a_person_is_confirmed_in_german(bob: User, german: Client) -> None:
    answer = german.post(f"/people/{bob.pk}/deactivate", {"seen": membership.state(bob)}, follow=True)
    assert "bob ist deaktiviert und überall abgemeldet." in answer.content.decode()


def in_german(text: str) -> str:
    with override("de"):
        return sentences.translated(text)


@pytest.mark.django_db(transaction=True)
def test_a_question_that_was_answered_is_told_as_one_in_the_history(
    alice: User, german: Client, settings: Settings
) -> None:
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, question.SOURCE: "hitlchat.agent.asking.PersonSource"}
    settings.HITL_ASK_USER = True
    assert asking.offered() is not None
    call = async_to_sync(submit)(CallRequest(asking.NAME, {"question": "Which colour?"}, caller(alice)))
    edited = {"answer": {"answer": "red"}}
    decide.approve(call.approval.pk, signed_in(alice), digest=call.approval.digest, edited=edited)
    listed, found = (german.get(path).content.decode() for path in ("/history/", f"/history/{call.pk}"))
    for each in (listed, found):
        assert "eantwortet von <bdi>alice</bdi>" in each
        assert "enehmigt von" not in each
    assert "Beantwortet." in found
    assert "Genehmigt." not in found
    english = Client(headers={"accept-language": "en"})
    english.force_login(alice)
    assert "answered by <bdi>alice</bdi>" in english.get("/history/").content.decode()


@each_row(
    "lines, said",
    [
        (b"nothing\n", "Nicht echt: Zeile 1 wurde verändert oder abgeschnitten: es ist kein JSON ("),
        (b"[]\n", "Nicht echt: Zeile 1 wurde verändert: sie ist nicht so geschrieben"),
        (
            b'{"n":7}\n',
            "Nicht echt: Zeile 1 trägt die Nummer 7: davor wurden Zeilen entfernt",
        ),
    ],
)
def test_what_is_wrong_with_a_file_of_the_record_is_told_in_german(german: Client, lines: bytes, said: str) -> None:
    file = BytesIO(lines)
    file.name = "record.jsonl"
    assert said in german.post("/record/check", {"file": file}).content.decode()


def test_what_was_counted_in_a_file_of_the_record_is_told_in_german() -> None:
    told = checked_words(Checked(batches=1, events=1_234, receipts=2, at="today", key="ab" * 4, hidden=1), "")
    assert [in_german(each)[:90] for each in told] == [
        "Unverändert, seit es am today geschrieben wurde: 1 Stapel, 1,234 Ereignisse, 2 Quittungen.",
        "1 Wert darin ist als geheim zurückgehalten; sein Hash steht für ihn.",
        "Unterschrieben mit dem Schlüssel abab abab",
        "Bitte mit dem notierten Fingerabdruck vergleichen: die Datei allein kann nicht sagen, wess",
    ]


@each_row("same", [False, True])
@each_row("calls", [None, 1, 3])
@each_row("condition", ["", "args.amount < 5, and more"])
def test_every_scope_of_a_grant_is_told_in_german(alice: User, same: bool, calls: int | None, condition: str) -> None:
    until = datetime(2026, 11, 22, 14, 30, tzinfo=UTC)
    given = Grant(
        tool_name="refund", approval_id=uuid4(), arguments_digest="ab" * same, conversation_id=uuid4(), calls=calls,
        condition=condition, until=until, used=1, person=alice, given_at=until,
    )  # fmt: skip
    for told in (scope.sentence(given), scope.reason(given)):
        shown = in_german(told)
        assert "refund läuft ohne Nachfrage " in shown
        assert "bis 22 Nov 14:30 UTC" in shown
        assert condition in shown
        assert not {"with", "for", "in one", "until", "while", "holds", "given"} & set(shown.split())


@each_row(
    "rule, value",
    [
        ({"type": "integer"}, "a"),
        ({"type": ["integer", "null"]}, "a"),
        ({"enum": [1, 2]}, "a, b. c"),
        ({"const": 1}, True),
        ({"minimum": 3}, 2),
        ({"exclusiveMinimum": 3}, 3),
        ({"maximum": 3}, 4.5),
        ({"exclusiveMaximum": 3}, 3),
        ({"multipleOf": 2}, 3),
        ({"minLength": 1}, ""),
        ({"minLength": 3}, "it"),
        ({"maxLength": 3}, "x" * 500),
        ({"maxLength": 0}, "x"),
        ({"pattern": "^a$"}, "b"),
        ({"format": "date"}, "tomorrow"),
        ({"minItems": 1}, []),
        ({"minItems": 2}, [1]),
        ({"maxItems": 1}, [1, 2]),
        ({"uniqueItems": True}, [1, 1]),
        ({"contains": {"const": 1}}, [2]),
        ({"required": ["b"]}, {}),
        ({"minProperties": 2}, {"b": 1}),
        ({"maxProperties": 0}, {"b": 1}),
        ({"additionalProperties": False}, {"b": 1}),
        ({"additionalProperties": False}, {"b": 1, "c": 1}),
        ({"dependentRequired": {"b": ["c"]}}, {"b": 1}),
        ({"anyOf": [{"type": "null"}]}, 1),
        ({"oneOf": [{"type": "integer"}, {"const": 1}]}, 1),
        ({"not": {"const": 1}}, 1),
    ],
    ids=str,
)
def test_what_does_not_fit_a_schema_is_told_in_german(rule: dict[str, Any], value: Any) -> None:
    with pytest.raises(schema.BadArguments) as wrong:
        schema.validate({"properties": {"a": rule}}, {"a": value})
    said = str(wrong.value)
    assert said.startswith(("a: ", "a.b: ", "a.c: "))
    assert in_german(said) != said
    assert not {"is", "was", "does", "the", "has", "should", "not", "are"} & set(in_german(said).split())


@each_row("text", ["This is not a 'test'.", "Your text is too long.", "Nobody was expected."])
def test_a_sentence_of_somebody_that_ends_like_one_about_a_value_stays_as_it_is(text: str) -> None:
    assert in_german(text) == text


@each_row(
    "code, words",
    [
        ("import requests", "(die Fähigkeit 'fetch' nutzen: from "),
        ("def run(x: tuple) -> str:\n    return ''", "use list[T] instead"),
        ("def run(x: float) -> float:\n    return round(x, 2)", "rundet die Dezimalschreibweise"),
    ],
)
def test_what_the_check_of_code_advises_is_in_german(german: Client, code: str, words: str) -> None:
    given = {"name": "t", "code": code if "def run" in code else f"{code}\n\n\ndef run() -> str:\n    return ''"}
    assert words in html.unescape(german.post("/studio/inspect", given).content.decode())


def test_hints_of_forms_are_in_german() -> None:
    number = Field("n", "integer", "N", required=True, least=1, most=5)
    text = Field("t", "text", "T", required=False, most=20, format="email")
    hints = [each.hint for each in forms.views((number, text), ((), ()))]
    with override("de"):
        assert [sentences.translated_parts(each) for each in hints] == [
            "eine ganze Zahl, 1 bis 5",
            "eine E-Mail-Adresse, höchstens 20 Zeichen",
        ]


def test_the_gallery_describes_every_server_in_german(german: Client) -> None:
    found = html.unescape(german.get("/servers/gallery").content.decode())
    for entry in gallery.ALL:
        for text in (entry.summary, entry.privileges, *entry.setup):
            assert text not in found
            assert in_german(text) in found
    assert "ändert etwas" in found
    assert "changes things</span>" not in found


def test_the_gallery_is_searched_in_the_language_of_its_page(german: Client) -> None:
    found = german.get("/servers/gallery", {"q": "Rechnungen"}).content.decode()
    assert 'id="entry-stripe"' in found
    assert 'id="entry-time"' not in found


@pytest.mark.django_db(transaction=True)
def test_rules_that_spoke_are_told_in_german(alice: User, german: Client) -> None:
    call = ask(alice, recording())
    found = german.get(f"/history/{call.pk}").content.decode()
    assert "Urteile der Regeln" in found
    assert "<b>ask</b>" not in found


@each_row(
    "said",
    [
        *(CHANGED, EDITED, FAILED, card.OUT_OF_SIGHT),
        *("1 more row is left out.", "3 more rows are left out.", "1,234 more characters of the text are left out."),
        *("1 row is the same.", "3 rows are the same.", "2 more characters of long values are left out."),
    ],
)
def test_what_a_card_says_of_a_preview_is_in_german(said: str) -> None:
    assert in_german(said) != said
    assert not {"is", "are", "the", "of", "left"} & set(in_german(said).split())


@each_row(
    "why",
    [
        runs.BY_THE_PERSON,
        "the run failed",
        conversations.WHY,
        oversight.CHANGED,
        perform.NO_AUTHOR,
        membership.DEACTIVATED,
        tokens.REVOKED,
        submissions.EXPIRED,
        elicitation.NO_LONGER,
        calling.CANCELLED,
        calling.FAILED,
        "the same call was approved and runs once, as call_1; its outcome is there",
    ],
)
def test_why_a_call_was_withdrawn_is_said_in_german(why: str) -> None:
    with override("de"):
        said = sentences.translated(f"Not run: {why}.")
    assert said.startswith("Nicht ausgeführt: ")
    assert why not in said


def test_the_selection_of_what_a_conversation_asks_about_is_in_german(alice: User, german: Client) -> None:
    mine = Conversation.objects.create(owner=alice, title="Meines")
    page = german.get(f"/chat/{mine.pk}/uses").content.decode()
    assert "Wie die Werkzeuge es vorsehen</option>" in page


@pytest.mark.django_db(transaction=True)
def test_where_a_tool_comes_from_is_in_german_on_its_card(alice: User, german: Client) -> None:
    asked = approval_of(ask(alice, recording(origin="Tool Studio, version 3")))
    assert "<span>Tool Studio, Version 3</span>" in german.get(f"/approvals/{asked.pk}").content.decode()
