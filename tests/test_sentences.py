"""Sentences with values, kept in English and shown in the language of a page."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation

from hitlchat.base.sentences import read, translated
from tests.tables import each_row
from tests.upstreams.shops import listing, somewhere, take_in
from tools_studio.capabilities import parse


def german(text: str) -> str:
    with translation.override("de"):
        return translated(text)


@each_row(
    "text, shown",
    [
        ("There is already a tool named 'send'.", "Ein Werkzeug 'send' gibt es schon."),
        (
            "Not asked because the condition “a and b” is false.",
            "Nicht angefragt, weil die Bedingung „a and b“ nicht gilt.",
        ),
        ("Asked because “amount” is over 1,000.", "Angefragt, weil „amount“ über 1,000 liegt."),
        ("Can send e-mail to a@b.de, c@d.de and e@f.de.", "Es kann E-Mails senden an a@b.de, c@d.de und e@f.de."),
        (
            "alice decides. Approval requires a sign-in within the last 5 minutes.",
            "alice entscheidet. Wer genehmigt, muss sich innerhalb von 5 Minuten angemeldet haben.",
        ),
        ("Not run: the tool was deleted.", "Nicht ausgeführt: das Werkzeug wurde gelöscht."),
    ],
)
def test_a_sentence_with_values_is_shown_in_the_language_of_the_page(text: str, shown: str) -> None:
    assert german(text) == shown


@each_row(
    "text",
    ["There is already a tool named 'Safe'.", "Safe decides.", "member decides.", "Names “Low”, another server."],
)
def test_a_name_that_is_a_word_of_ours_too_stays_as_it_is(text: str) -> None:
    name = next(each for each in ("Safe", "member", "Low") if each in text)
    assert german(name) != name
    assert german(text) != text
    assert name in german(text)


def test_english_stays_as_it_was_made() -> None:
    with translation.override("en"):
        assert translated("There is already a tool named 'send'.") == "There is already a tool named 'send'."


@each_row(
    "text",
    [
        "Something that nobody here says.",
        "alice decides. Something that nobody here says.",
        "There is already a tool named 'a\rb'.",
        "There is already a tool named '" + 5_000 * "a" + "'.",
    ],
)
def test_what_is_not_wholly_known_stays_in_english(text: str) -> None:
    assert german(text) == text


def test_a_sentence_that_can_be_read_in_two_ways_is_not_translated() -> None:
    template = read("{tool} is from {server}.", "Von {server} ist {tool}.")
    assert template.values("a is from b.") == {"tool": "a", "server": "b"}
    assert template.values("a is from b is from c.") is None
    assert template.values("a is from .") == {"tool": "a", "server": ""}
    assert template.values("a is from b") is None


def test_braces_and_percent_signs_in_values_are_text() -> None:
    assert german("There is already a tool named '{user}%s'.") == "Ein Werkzeug '{user}%s' gibt es schon."


def test_what_a_tool_may_do_is_told_in_german() -> None:
    said = parse({"fetch": {"mode": "public", "hosts": ["api.example.com"], "methods": ["GET"]}}).sentences()
    assert said == ["Can read from any public host on the internet, over https, and api.example.com."]
    assert german(said[0]).startswith("Es kann lesen von: jeder öffentliche Host im Internet, über https, sowie")


@pytest.mark.django_db
def test_warnings_about_a_tool_of_a_server_are_shown_in_german_and_kept_in_english(alice: User) -> None:
    server = somewhere(alice)
    take_in(server, listing(delete_all="Deletes."))
    row = server.tools.get()
    assert "Tool: Its name says that it does something that cannot be undone (“delete”)." in row.risk_reasons
    client = Client(headers={"accept-language": "de"})
    client.force_login(alice)
    found = client.get(f"/servers/s/shop/tools/{row.pk}").content.decode()
    assert "Dem Namen nach tut es, was sich nicht rückgängig machen lässt („delete“)." in found
    row.refresh_from_db()
    assert "Tool: Its name says that it does something that cannot be undone (“delete”)." in row.risk_reasons
