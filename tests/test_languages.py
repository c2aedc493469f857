"""Pages in the language of whoever looks at them; what is stored and what programs read stays in English."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import translation

from hitlchat.accounts import preferences
from hitlchat.agent import asking, offering
from hitlchat.gate import prompt
from hitlchat.templatetags import marks
from tests.tables import each_row

pytestmark = pytest.mark.django_db

GERMAN = {"accept-language": "de-AT,de;q=0.9,en;q=0.5"}


def page(client: Client, path: str = "/account", **more: Any) -> str:
    return client.get(path, follow=True, **more).content.decode()


@each_row(
    "accepts, code",
    [
        ("", "en"),
        ("de", "de"),
        ("de-AT,en;q=0.5", "de"),
        ("fr,de;q=0.8,en;q=0.9", "en"),
        ("fr, it", "en"),
        ("*", "en"),
        ("de-" * 10_000, "en"),
        ("\x00;q=zzz", "en"),
    ],
)
def test_a_browser_is_shown_the_first_language_it_asks_for_that_is_there(accepts: str, code: str) -> None:
    assert preferences.of_browser({}, accepts) == code


@each_row("code, word", [("de", "Sprache"), ("en", "Language")])
def test_what_was_chosen_in_a_browser_counts_before_what_it_asks_for(
    bob: User, client: Client, code: str, word: str
) -> None:
    client.force_login(bob)
    chosen = client.post("/language", {"language": code}, headers=GERMAN)
    assert (chosen.status_code, chosen["Location"]) == (302, "/account")
    found = page(client, headers=GERMAN)
    assert f'<html lang="{code}"' in found
    assert word in found
    client.post("/language", {"language": "browser"})
    assert '<html lang="de"' in page(client, headers=GERMAN)


@each_row("chosen", ["", "fr", '"><script>'])
def test_a_language_that_is_not_there_is_refused(bob: User, client: Client, chosen: str) -> None:
    client.force_login(bob)
    assert client.post("/language", {"language": chosen}).status_code == 400
    client.cookies["hitlchat_language"] = chosen
    assert '<html lang="en"' in page(client)


def test_an_installation_may_have_a_language_of_its_own(client: Client, settings: Any) -> None:
    settings.HITL_LANGUAGE = "de"
    assert '<html lang="de"' in page(client, "/sign-in", headers={"accept-language": "en"})
    client.cookies["hitlchat_language"] = "en"
    assert '<html lang="en"' in page(client, "/sign-in")


def test_a_language_ends_with_the_answer_it_was_for(client: Client) -> None:
    page(client, "/sign-in", headers=GERMAN)
    assert translation.get_language() == "en"


def test_programs_are_answered_in_english(bob: User, client: Client) -> None:
    client.force_login(bob)
    wrong: dict[str, Any] = {"data": {"title": 7}, "content_type": "application/json"}
    german, english = (client.post("/api/conversations", **wrong, headers=asked) for asked in (GERMAN, {}))
    assert german.status_code == english.status_code == 422
    assert german.content == english.content


def test_what_a_page_asks_of_the_api_is_refused_in_the_language_of_the_page(bob: User, client: Client) -> None:
    client.force_login(bob)
    made = client.post("/api/conversations", {}, content_type="application/json").json()["id"]

    def refused(**headers: str) -> str:
        file = SimpleUploadedFile("a.png", b"\x00\xff")
        answer = client.post(f"/api/conversations/{made}/attachments", {"file": file}, headers={**GERMAN, **headers})
        assert answer.status_code == 415
        return str(answer.json()["detail"])

    assert "kann nicht angehängt werden" in refused(**{preferences.PAGE_HEADER: "1"})
    assert "cannot be attached" in refused()


WORDS = {
    "/": "Was möchten Sie tun?",
    "/approvals/": "Nichts wartet auf eine Antwort",
    "/history/": "Noch keine Aufrufe",
    "/policies": "Noch keine Regeln",
    "/insights/": "Auswertung",
    "/grants": "Keine aktiven Dauerfreigaben",
    "/notices/": "Noch keine Webhooks",
    "/people/": "Offene Einladungen",
    "/record/": "Noch keine Siegel",
    "/account": "Passwort ändern",
}


@each_row("path", WORDS)
def test_a_page_is_german_for_who_asks_for_it_and_english_for_others(path: str, alice: User, client: Client) -> None:
    client.force_login(alice)
    german, english = page(client, path, headers=GERMAN), page(client, path)
    assert WORDS[path] in german
    assert "Abmelden" in german
    assert WORDS[path] not in english
    assert "Sign out" in english


def test_what_built_in_tools_ask_begins_in_the_language_of_the_page_and_goes_on_as_it_was_asked() -> None:
    asked = prompt.render(asking.COLUMNS["prompt_template"], "ask_user", {"question": "Who goes?"})
    found = prompt.render(offering.COLUMNS["prompt_template"], "find_tools", {"query": "mail"})
    assert [marks.asking(each) for each in (asked, found)] == [asked, found]
    with translation.override("de"):
        assert [marks.asking(each) for each in (asked, found, "The agent asks")] == [
            "Der Agent fragt: “Who goes?”",
            "Werkzeuge suchen für mail",
            "The agent asks",
        ]
