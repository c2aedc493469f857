"""Pages of one server in several languages: each draws in its own, and what is stored and told models is English."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.agent.models import Conversation
from hitlchat.gate.models import AuditEvent
from tests.agent.talk import Talk, in_database
from tests.chat.conftest import OpenTab
from tests.chat.tab import Tab, cookie_of
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import ScriptedModel, calls, text

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def send(recorder: Recorder) -> None:
    recorded_tool("send")


async def test_pages_of_two_languages_are_drawn_each_in_its_own(
    talk: Talk, open_tab: OpenTab, bobs_client: Client, scripted_model: ScriptedModel
) -> None:
    english, german = await open_tab(), await open_tab(f"{cookie_of(bobs_client)}; hitlchat_language=de")
    scripted_model.enqueue(calls(("send", {})), text("Done."))
    await german.send(type="say", content="Send it")
    card = await english.until("data-approve")
    assert "Approve<span" in card
    assert "Genehmigen" not in card
    card = await german.until("data-approve")
    assert "Genehmigen<span" in card
    assert "Approve<span" not in card
    (approval,) = await talk.asked()
    await german.send(
        type="decide", approval=str(approval.pk), digest=approval.digest, verdict="decline", reason="Not now"
    )
    await english.until("Declined by bob, signed in")
    await german.until("Abgelehnt von bob, angemeldet")
    await talk.over()


async def test_what_a_german_page_decides_is_told_models_and_stored_in_english(
    talk: Talk, open_tab: OpenTab, bobs_client: Client, scripted_model: ScriptedModel
) -> None:
    german = await open_tab(f"{cookie_of(bobs_client)}; hitlchat_language=de")
    scripted_model.enqueue(calls(("send", {})), text("Done."))
    await german.send(type="say", content="Send it")
    (approval,) = await talk.asked()
    await german.send(type="decide", approval=str(approval.pk), digest=approval.digest, verdict="decline", reason="")
    await talk.over()
    assert "The user declined this call." in str(scripted_model.requests[-1])
    events = str(await in_database(lambda: list(AuditEvent.objects.values_list("data", flat=True)))())
    for stored_text in (events, str(approval.disclosure)):
        assert "always needs approval" in stored_text
        assert "Angefragt" not in stored_text


async def test_two_people_with_one_server_are_answered_each_in_their_language(
    open_tab: OpenTab, alice: User, scripted_model: ScriptedModel
) -> None:
    english = await open_tab()
    client = await in_database(Client)()
    await in_database(client.force_login)(alice)
    theirs = await in_database(Conversation.objects.create)(owner=alice)
    german = await Tab(theirs.pk, f"{cookie_of(client)}; hitlchat_language=de").open()
    for tab, words in ((german, "Bitte zuerst etwas schreiben."), (english, "Write something first.")):
        await tab.send(type="say", content=" ")
        await tab.until(words)
    await german.close()
