"""Long conversations: their page comes in pieces, what waits first, and holds up nobody else."""

import asyncio
import threading
import time
from uuid import UUID

import pytest
from django.test import Client

from hitlchat.agent.models import Message, MessageState, Role
from hitlchat.chat import layout
from hitlchat.chat.fragments import BREAK, FRAME, frames
from hitlchat.gate.models import Approval
from tests.agent.talk import Talk, in_database
from tests.chat.conftest import OpenTab
from tests.chat.tab import Tab
from tests.chat.test_markdown import count_parsed
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import Gate, ScriptedModel, calls, text
from tests.waiting import stored

pytestmark = pytest.mark.django_db(transaction=True)

# What servers let through in one frame.
LIMIT = 2**20
PROSE = "The quick brown *fox* jumps over the dog. " * 660
TABLE = "|a" * 2400 + "\n" + "|-" * 2400 + "\n" + "a\n" * 7000
SLOW = "\\(" * 14_990


def write(talk: Talk, *answers: str, role: Role = Role.ASSISTANT) -> list[UUID]:
    """Put answers before what is said in the conversation, the first of them first."""
    first = talk.conversation.messages.count() + 1
    rows = [
        Message(conversation=talk.conversation, seq=first + at, role=role, content=f"Answer {at}.\n\n{answer}")
        for at, answer in enumerate(answers)
    ]
    return [each.pk for each in Message.objects.bulk_create(rows)]


async def everything(tab: Tab, last: str) -> list[str]:
    """The frames with the whole state, up to the one that holds `last`."""
    await tab.until(last)
    assert all(len(frame.encode()) < LIMIT for frame in tab.seen)
    return tab.seen


@pytest.fixture
async def waiting(talk: Talk, tab: Tab, scripted_model: ScriptedModel) -> Approval:
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(("send", {"text": "hi"})), text("Sent."))
    await tab.send(type="say", content="Send it")
    return await talk.only()


def test_fragments_share_a_frame_as_long_as_they_fit() -> None:
    half = "x" * (FRAME // 2)
    found = frames(BREAK.join([half, half, "a", "y" * (2 * FRAME), "b", "c"]))
    assert found == [BREAK.join([half, half]), "a", "y" * (2 * FRAME), BREAK.join(["b", "c"])]
    assert frames("") == [""]


@pytest.mark.guarantee("run:survives")
@pytest.mark.parametrize(
    "answers",
    [
        [PROSE] * 8,
        pytest.param([TABLE] * 2, marks=pytest.mark.slow("more of a kind")),
        pytest.param([SLOW] * 6, marks=pytest.mark.slow("more of a kind")),
    ],
    ids=["prose", "tables", "formulas"],
)
async def test_a_card_of_a_long_conversation_comes_first_and_can_be_answered(
    talk: Talk, waiting: Approval, open_tab: OpenTab, recorder: Recorder, answers: list[str]
) -> None:
    ids = await in_database(write)(talk, *answers)
    late = await open_tab()
    seen = await everything(late, "Answer 0.")
    assert "data-approve" in seen[0]
    assert len(seen) >= len(answers) // 3
    order = [at for frame in seen for at in range(len(answers)) if f"Answer {at}." in frame]
    assert sorted(order) == list(range(len(answers)))
    # Each frame goes above what came before it.
    page = "".join(reversed(seen))
    assert sorted(ids, key=lambda pk: page.index(f'id="m-{pk}"')) == ids
    assert 'id="turns" hx-swap-oob="innerHTML"' in "".join(seen[:2])
    assert sum('id="turns" hx-swap-oob="innerHTML"' in frame for frame in seen) == 1
    await late.send(type="decide", approval=str(waiting.pk), verdict="approve", digest=waiting.digest)
    await late.until("Sent.")
    assert recorder.entered == [("send", {"text": "hi"})]


async def test_what_the_model_thought_and_what_a_person_said_fit_into_a_frame(talk: Talk, open_tab: OpenTab) -> None:
    [said] = await in_database(write)(talk, "'" * 100_000, role=Role.USER)
    [answer] = await in_database(write)(talk, "Here.")
    await Message.objects.filter(pk=answer).aupdate(reasoning="<" * 900_000)
    seen = await everything(await open_tab(), f'id="m-{said}"')
    assert f'id="m-{answer}"' in "".join(seen)
    assert "more characters are kept in the record." in "".join(seen)


async def test_large_arguments_of_many_calls_fit_into_frames(
    talk: Talk, open_tab: OpenTab, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("send", hitl_mode="DISABLED")
    large = [("send", {"text": "'" * 20_000, "n": n}) for n in range(4)]
    scripted_model.enqueue(calls(*large, dialect="whole"), text("All sent."))
    await open_tab()
    await talk.ask("Send them")
    found = await talk.calls()
    late = await open_tab()
    for each in found:
        if not any(f'id="call-{each.pk}"' in frame for frame in late.seen):
            await late.until(f'id="call-{each.pk}"')
    assert len(late.seen) > 1
    assert all(len(frame.encode()) < LIMIT for frame in late.seen)


async def test_a_card_that_is_too_large_for_a_frame_leads_to_its_own_page(
    talk: Talk, open_tab: OpenTab, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(("send", {"text": "'" * 125_000}), ("send", {"text": "hi"}), dialect="whole"))
    await open_tab()
    await talk.say("Send them")
    large, _small = await talk.asked(2)
    late = await open_tab()
    first = await late.until("Answer it on its own page")
    assert f"/approvals/{large.pk}" in first
    while "data-approve" not in "".join(late.seen):
        await late.next()
    assert all(len(frame.encode()) < LIMIT for frame in late.seen)


@pytest.mark.slow("a long answer")
async def test_an_answer_that_is_still_written_comes_in_frames_too(
    talk: Talk, open_tab: OpenTab, scripted_model: ScriptedModel
) -> None:
    gate = Gate()
    scripted_model.enqueue(text(*[f"Part {at}. {PROSE[:3000]}\n\n" for at in range(100)], gate, "The end."))
    await open_tab()
    run = await talk.say("Tell me all")
    rows = Message.objects.filter(run=run, state=MessageState.STREAMING)
    await stored(lambda: any(len(each.content) > 300_000 for each in rows.all()), "the answer is stored so far")
    late = await open_tab()
    await late.until("Part 99.")
    assert all(len(frame.encode()) < 2 * FRAME for frame in late.seen)
    gate.open()


async def test_others_are_served_while_answers_are_laid_out(talk: Talk, open_tab: OpenTab) -> None:
    await in_database(write)(talk, "- a\n")
    go_on = threading.Event()
    # As if the answer took so long.
    layout._thread.submit(go_on.wait)
    try:
        late = await open_tab()
        reading = asyncio.create_task(everything(late, "Answer 0."))
        for _ in range(20):
            await in_database(Message.objects.count)()
        assert not reading.done()
    finally:
        go_on.set()
    await reading


@pytest.mark.slow("spends all the time that a page may take, twice")
def test_a_page_takes_so_long_and_goes_on_where_it_was_when_it_is_opened_again(talk: Talk, bobs_client: Client) -> None:
    write(talk, *["- a\n" * 7000] * 70)

    def plain() -> tuple[int, float]:
        began = time.process_time()
        page = bobs_client.get(f"/chat/{talk.conversation.pk}").content.decode()
        return page.count("Shown as plain text"), time.process_time() - began

    first, took = plain()
    assert took < 5 * layout.PAGE_SECONDS
    assert 0 < first < 70
    again, _ = plain()
    assert again < first


def test_a_finished_answer_is_laid_out_once(talk: Talk, bobs_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    write(talk, *["- a\n"] * 6)
    parsed = count_parsed(monkeypatch)
    for _ in range(2):
        assert bobs_client.get(f"/chat/{talk.conversation.pk}").status_code == 200
        assert len(parsed) == 6
