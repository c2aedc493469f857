"""The Responses API over the wire: what a server is asked by it, what it answers, and what may be wrong with that."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.agent import conversations, endpoints, request, routes, runner, titles, usage
from hitlchat.agent.answer import MOST_REQUESTED, Tokens
from hitlchat.agent.endpoints import Draft
from hitlchat.agent.model_client import LARGEST_EVENT, ModelTrouble
from hitlchat.agent.models import Message, MessageState, Role, RunStatus
from hitlchat.agent.responses import MOST_ITEMS
from hitlchat.gate.status import Status
from tests import attaching, forks, responses_api
from tests import scripted_model as chat
from tests.agent.conftest import Read
from tests.agent.talk import Talk, in_database
from tests.agent.test_attachments import attach_and_ask
from tests.agent.test_dialects import wanted_by
from tests.agent.test_titles import title
from tests.conftest import signed_in
from tests.processes import Installation
from tests.recorder import Recorder, recorded_tool
from tests.responses_api import (
    ResponsesApi,
    added,
    argued,
    begin,
    call,
    calls,
    completed,
    cut_off_after,
    error_after,
    event,
    failed_after,
    message,
    output,
    reasoning,
    scripted_model,
    streamed,
    text,
    unfinished,
    whole,
)
from tests.scripted_model import Gate, Reply, hang, raw, sse, status
from tests.tables import each_row

__all__ = ["scripted_model"]

pytestmark = pytest.mark.django_db(transaction=True)

WANTED: Final = {"text": "hi", "n": 2}
WRITTEN: Final = json.dumps(WANTED)


@pytest.fixture(autouse=True)
def forgetful() -> None:
    """What one server refused says nothing of the next, which may have its address."""
    request._refused.clear()


async def tool(name: str = "look", hitl_mode: str = "DISABLED") -> None:
    await in_database(recorded_tool)(name, hitl_mode)


# -- What a server is asked --------------------------------------------------------------------------------------------


async def test_the_server_is_asked_to_keep_nothing_and_reads_all_that_was_said(
    talk: Talk, scripted_model: ResponsesApi
) -> None:
    await tool()
    scripted_model.enqueue(text("Hel", "lo."), text("Bye."))
    assert (await talk.ask("First")).status == RunStatus.DONE
    await talk.ask("Second")
    asked = scripted_model.requests[-1]
    assert [path for path, _ in scripted_model.asked] == ["/v1/responses"] * 2
    assert (asked["store"], asked["include"]) == (False, ["reasoning.encrypted_content"])
    assert asked["instructions"].startswith("You are the assistant in hitlchat.")
    assert [(item["role"], item["content"]) for item in asked["input"]] == [
        ("user", "First"),
        ("assistant", "Hello."),
        ("user", "Second"),
    ]
    (offered,) = asked["tools"]
    assert (offered["name"], offered["strict"]) == ("look", False)


async def test_a_call_is_made_once_and_its_result_goes_back_under_its_id(
    talk: Talk, recorder: Recorder, scripted_model: ResponsesApi
) -> None:
    await tool()
    wanted = call("look", WANTED)
    scripted_model.enqueue(output(message("Let me look."), wanted), text("Looked."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert recorder.entered == [("look", WANTED)]
    said, asked, came = scripted_model.input[1:]
    assert (said["role"], said["content"]) == ("assistant", "Let me look.")
    assert (asked["call_id"], asked["name"], asked["arguments"]) == (wanted["call_id"], "look", wanted["arguments"])
    assert came == {"type": "function_call_output", "call_id": wanted["call_id"], "output": f"look did {WANTED}"}
    first = (await talk.messages(Role.ASSISTANT))[0]
    used = (await in_database(usage.of_messages)(talk.conversation.pk, [first.pk]))[first.pk]
    assert Tokens(used.input, used.output, used.cached, used.reasoning) == Tokens(100, 20, 64, 12)


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_call_that_needs_a_yes_waits_for_it(
    talk: Talk, recorder: Recorder, scripted_model: ResponsesApi
) -> None:
    await tool("send", "REQUIRED")
    scripted_model.enqueue(calls(("send", WANTED), ("send", {"n": 3})), text("One of them."))
    await talk.say()
    first, second = await talk.asked(2)
    assert (recorder.entered, first.call.arguments) == ([], WANTED)
    await talk.approve(first)
    await talk.decline(second)
    assert (await talk.over()).status == RunStatus.DONE
    assert recorder.entered == [("send", WANTED)]
    assert scripted_model.told[0] == f"send did {WANTED}"
    assert "declined" in scripted_model.told[1]


async def test_images_go_along_as_data(
    talk: Talk, scripted_model: ResponsesApi, settings: Settings, tmp_path: Any
) -> None:
    settings.ATTACHMENTS_DIR = tmp_path / "attachments"
    scripted_model.enqueue(text("A grey one."))
    await attach_and_ask(talk, "What is it?", ("a.png", attaching.png()))
    words, name, picture = scripted_model.input[0]["content"]
    assert words == {"type": "input_text", "text": "What is it?"}
    assert '"a.png", PNG.]' in name["text"]
    assert picture["image_url"].startswith("data:image/png;base64,iVBOR")


async def test_azure_is_asked_by_this_api_with_a_header_of_its_own(
    talk: Talk, scripted_model: ResponsesApi, alice: User
) -> None:
    address = f"{scripted_model.base_url.removesuffix('/v1')}/openai/v1?api-version=preview"
    draft = Draft("azure", address, "large", key="azure-key-4711", key_header="api-key", api="responses")
    await in_database(endpoints.create)(draft, signed_in(alice))
    await in_database(conversations.change)(talk.conversation, endpoint="azure")
    scripted_model.enqueue(text("Here."))
    assert (await talk.ask()).status == RunStatus.DONE
    path, headers = scripted_model.asked[-1]
    assert path == "/openai/v1/responses?api-version=preview"
    assert {name.lower(): value for name, value in headers.items()}["api-key"] == "azure-key-4711"


async def test_what_an_endpoint_can_do_shapes_the_request(
    talk: Talk, scripted_model: ResponsesApi, alice: User
) -> None:
    await tool()
    plain = Draft("plain", scripted_model.base_url, "scripted", api="responses", parallel_calls=False)
    await in_database(endpoints.create)(plain, signed_in(alice))
    await in_database(conversations.change)(talk.conversation, endpoint="plain")
    scripted_model.enqueue(text("One at a time."))
    await talk.ask()
    assert scripted_model.requests[0]["parallel_tool_calls"] is False
    # Its model does not think, as the administrator said.
    assert "reasoning" not in scripted_model.requests[0]


async def test_a_title_is_asked_for_with_the_limit_of_this_api(
    talk: Talk, scripted_model: ResponsesApi, settings: Settings
) -> None:
    settings.CHAT_TITLES = True
    scripted_model.enqueue(text("In Leeds."), text("Parcel"))
    await talk.ask("Where is the parcel?")
    assert await title(talk) == "Parcel"
    assert scripted_model.requests[-1].get("max_output_tokens") == titles.TOKENS


async def test_an_endpoint_of_this_api_is_tested_and_lists_its_models(
    scripted_model: ResponsesApi, alice: User
) -> None:
    draft = Draft("here", scripted_model.base_url, "scripted", api="responses")
    row = await in_database(endpoints.create)(draft, signed_in(alice))
    scripted_model.enqueue(text("ready"), text("ready, too"), status(404))
    trial = await in_database(routes.test)(row)
    assert (trial.answer, trial.error) == ("ready", "")
    assert (await in_database(routes.test)(None)).answer == "ready, too"
    assert "or has no Responses API" in (await in_database(routes.test)(row)).error
    assert (await in_database(routes.listing)(row)).models == ("scripted",)


# -- What it answers ---------------------------------------------------------------------------------------------------


def _without_pieces() -> Reply:
    said = call("look", WANTED)
    return Reply((event("response.output_item.done", output_index=0, item=said), completed(said)))


def _without_beginnings() -> Reply:
    """Nor indexes, nor ids of items."""
    said = call("look", WANTED)
    pieces = [event("response.function_call_arguments.delta", delta=each) for each in (WRITTEN[:7], WRITTEN[7:])]
    return Reply((*pieces, event("response.output_item.done", item=said), completed(said)))


def _with_other_ids() -> Reply:
    """As some gateways do, each event has another id of the item."""
    told = [
        part.replace(b"fc_", f"x{number}_".encode()) for number, part in enumerate(streamed(call("look", WANTED), 0))
    ]
    return Reply((*told, completed(call("look", WANTED))))


def _without_items_done() -> Reply:
    told = [part for part in streamed(call("look", WANTED), 0) if b"output_item.done" not in part]
    return Reply((*told, completed()))


SERVERS: Final[dict[str, Callable[[], Reply]]] = {
    "OpenAI": lambda: output(call("look", WANTED)),
    "not streaming": lambda: whole(call("look", WANTED)),
    "without pieces": _without_pieces,
    "without beginnings": _without_beginnings,
    "with other ids": _with_other_ids,
    "without items done": _without_items_done,
    "with the mark of the other API": lambda: Reply((*output(call("look", WANTED)).parts, chat.DONE)),
    "with another order of keys": lambda: output(call("look", json.dumps(WANTED, sort_keys=True))),
    "with events of no meaning": lambda: Reply(
        (event("response.queued"), event("vendor.ping"), sse({}), *output(call("look", WANTED)).parts)
    ),
}


async def test_the_call_of_each_server_is_read_as_the_model_meant_it(read: Read) -> None:
    for name, case in SERVERS.items():
        assert wanted_by(await read(case())) == [("look", WANTED)], name


async def test_calls_told_in_each_others_midst_stay_apart(read: Read) -> None:
    wanted = [call("look", {"n": n}) for n in range(3)]
    told = [list(streamed(each, index)) for index, each in enumerate(wanted)]
    mixed = [part for parts in zip(*told, strict=True) for part in parts]
    found = wanted_by(await read(Reply((*mixed, completed(*wanted)))))
    assert found == [("look", {"n": n}) for n in range(3)]


async def test_calls_of_one_id_are_two_calls(read: Read) -> None:
    answer = await read(output(*[call("look", {"n": n}, call_id="call_same") for n in range(2)]))
    assert wanted_by(answer) == [("look", {"n": 0}), ("look", {"n": 1})]
    assert len({each.id for each in answer.calls}) == 2


async def test_an_id_of_another_server_that_is_too_long_is_shortened_alike_at_both_ends(
    talk: Talk, recorder: Recorder, scripted_model: ResponsesApi
) -> None:
    await tool()
    scripted_model.enqueue(output(call("look", WANTED, call_id="x" * 180)), text("Looked."))
    assert (await talk.ask()).status == RunStatus.DONE
    (asked,), (came,) = scripted_model.sent("function_call"), scripted_model.sent("function_call_output")
    assert asked["call_id"] == came["call_id"]
    assert (await talk.calls())[0].model_call_id == "x" * 180


async def test_a_tool_that_there_is_not_is_rejected_and_the_model_told(
    talk: Talk, recorder: Recorder, scripted_model: ResponsesApi
) -> None:
    scripted_model.enqueue(calls(("no such tool!", {})), text("Sorry."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert (recorder.entered, await talk.outcomes()) == ([], [Status.REJECTED])
    assert scripted_model.sent("function_call")[0]["name"] == "no_such_tool_"


async def test_what_the_model_refuses_is_its_answer(read: Read) -> None:
    at = {"item_id": "msg_0", "output_index": 0, "content_index": 0}
    pieces = [event("response.refusal.delta", **at, delta=each) for each in ("I can", "not.")]
    refused = message("") | {"content": [{"type": "refusal", "refusal": "I cannot."}]}
    done = event("response.output_item.done", output_index=0, item=refused)
    for reply in (Reply((added(message(""), 0), *pieces, done, completed(refused))), whole(refused)):
        assert (await read(reply)).text == "I cannot."


async def test_an_answer_that_hit_its_limit_is_not_whole(read: Read) -> None:
    half = call("look", '{"text": "h', status="incomplete")
    ends = completed(half, how="incomplete", incomplete_details={"reason": "max_output_tokens"})
    answer = await read(Reply((*streamed(half, 0), ends)))
    assert (answer.finish_reason, answer.is_whole) == ("length", False)


# -- Thoughts ----------------------------------------------------------------------------------------------------------


async def test_summaries_of_thoughts_are_shown_and_the_thoughts_go_back_in_their_place(
    talk: Talk, recorder: Recorder, scripted_model: ResponsesApi
) -> None:
    await tool()
    first, second = reasoning("Look first.", "Then say."), reasoning("Twice.", secret="sealed too")
    scripted_model.enqueue(
        output(
            first, message("Let me look.", phase="commentary"), call("look", {"n": 1}), second, call("look", {"n": 2})
        ),
        text("Looked."),
        text("Still."),
    )
    assert (await talk.ask()).status == RunStatus.DONE
    await talk.ask("And now?")
    turn = (await talk.messages(Role.ASSISTANT))[0]
    assert turn.reasoning == "Look first.\n\nThen say.\n\nTwice."
    for asked in scripted_model.requests[1:]:
        sent = asked["input"][1:8]
        kinds = ["reasoning", "message", "function_call", "reasoning", "function_call", *["function_call_output"] * 2]
        assert [item["type"] for item in sent] == kinds
        assert sent[0] == {name: first[name] for name in ("type", "id", "summary", "encrypted_content")}
        assert sent[1]["phase"] == "commentary"
        assert sent[3]["encrypted_content"] == "sealed too"
    assert scripted_model.requests[0]["reasoning"] == {"summary": "auto"}


async def test_messages_of_one_answer_stand_apart_and_go_back_as_they_were(
    talk: Talk, scripted_model: ResponsesApi
) -> None:
    said = [message("I look.", phase="commentary"), reasoning("Hm."), message("Found.", phase="final_answer")]
    scripted_model.enqueue(output(*said), text("Yes."))
    await talk.ask()
    await talk.ask("Sure?")
    assert (await talk.answers())[0] == "I look.\n\nFound."
    found = [(item["content"], item.get("phase")) for item in scripted_model.sent("message")[1:3]]
    assert found == [("I look.", "commentary"), ("Found.", "final_answer")]
    assert [item["type"] for item in scripted_model.input] == ["message", "message", "reasoning", "message", "message"]


async def test_thoughts_that_come_whole_or_as_text_are_read_too(read: Read) -> None:
    open_text = event("response.reasoning_text.delta", item_id="rs", output_index=0, content_index=0, delta="Openly.")
    assert (await read(whole(reasoning("As a whole."), message("One.")))).reasoning == "As a whole."
    assert (await read(Reply((open_text, *streamed(message("Two."), 1), completed())))).reasoning == "Openly."


async def test_thoughts_are_no_answer(read: Read) -> None:
    with pytest.raises(ModelTrouble, match="The model's answer was empty"):
        await read(output(reasoning("Look first.")))


async def test_thoughts_go_to_nobody_else(
    talk: Talk, recorder: Recorder, scripted_model: ResponsesApi, settings: Settings
) -> None:
    await tool()
    scripted_model.enqueue(output(reasoning("Look first."), call("look", WANTED)), text("Looked."))
    await talk.ask()
    settings.OPENAI_API = "chat"
    scripted_model.enqueue(chat.text("By the other API."))
    assert (await talk.ask("And now?")).status == RunStatus.DONE
    assert "sealed" not in json.dumps(scripted_model.requests[-1])
    settings.OPENAI_API, settings.OPENAI_MODEL = "responses", "another"
    scripted_model.enqueue(text("By another model."))
    assert (await talk.ask("And now?")).status == RunStatus.DONE
    assert scripted_model.sent("reasoning") == []


async def test_what_a_chat_server_added_is_not_sent_by_this_api(
    talk: Talk, recorder: Recorder, scripted_model: ResponsesApi, settings: Settings
) -> None:
    await tool()
    settings.OPENAI_API = "chat"
    thinking = chat.chunk({"reasoning_content": "Hm.", "signature": "c2ln"})
    scripted_model.enqueue(Reply((thinking, *chat.calls(("look", WANTED)).parts)), chat.text("Looked."))
    assert (await talk.ask()).status == RunStatus.DONE
    settings.OPENAI_API = "responses"
    scripted_model.enqueue(text("Still."))
    assert (await talk.ask("And now?")).status == RunStatus.DONE
    assert scripted_model.told == [f"look did {WANTED}"]
    assert "c2ln" not in json.dumps(scripted_model.requests[-1])


REFUSALS: Final = {
    "OpenAI, key": (
        400,
        {"code": "invalid_encrypted_content", "message": "The encrypted content could not be verified."},
    ),
    "OpenAI, order": (400, {"message": "Item 'rs_1' of type 'reasoning' was provided without its following item."}),
    "not kept": (404, {"message": "Item with id 'rs_1' not found. Items are not persisted when `store` is false."}),
}


@pytest.mark.parametrize(
    "name",
    ["OpenAI, key", *(pytest.param(each, marks=pytest.mark.slow("more of a kind")) for each in [*REFUSALS][1:])],
)
async def test_thoughts_that_a_server_cannot_read_any_more_are_left_out_and_forgotten(
    talk: Talk, recorder: Recorder, scripted_model: ResponsesApi, name: str
) -> None:
    await tool()
    scripted_model.enqueue(output(reasoning("Look first."), call("look", WANTED)), text("Looked."))
    await talk.ask()
    code, error = REFUSALS[name]
    scripted_model.enqueue(status(code, error), text("Without."), text("And on."))
    assert (await talk.ask("And now?")).status == RunStatus.DONE
    await talk.ask("And then?")
    kept = [sum(item["type"] == "reasoning" for item in asked["input"]) for asked in scripted_model.requests]
    assert kept == [0, 1, 1, 0, 0]
    assert [asked["input"][2]["type"] for asked in scripted_model.requests[3:]] == ["function_call_output"] * 2
    assert (await talk.messages(Role.ASSISTANT))[0].reasoning == "Look first."


async def test_a_server_that_refuses_also_what_holds_no_thoughts_is_not_asked_for_ever(
    talk: Talk, scripted_model: ResponsesApi
) -> None:
    scripted_model.enqueue(output(reasoning("Hm."), message("One.")))
    await talk.ask()
    refusal = status(*REFUSALS["OpenAI, key"])
    scripted_model.enqueue(refusal, refusal, refusal)
    run = await talk.ask("And now?")
    assert "refused the request (400). It says: “The encrypted content could not be verified.”" in run.error
    # Nothing says that the thoughts were the reason.
    assert await Message.objects.exclude(echo="").acount() == 1


UNSUPPORTED: Final = {
    "include": ({"message": "Encrypted content is not supported with this model.", "param": "include"}, "include"),
    "summary": (
        {
            "message": "Your organization must be verified to generate reasoning summaries.",
            "param": "reasoning.summary",
        },
        "reasoning",
    ),
}


async def test_halves_that_come_apart_are_one_character(read: Read) -> None:
    pieces = (event("response.output_text.delta", output_index=0, delta=half) for half in ("\ud83c", "\udf78."))
    assert (await read(Reply((*pieces, completed())))).text == "\N{COCKTAIL GLASS}."


@pytest.mark.parametrize("name", UNSUPPORTED)
async def test_what_a_model_does_not_support_it_is_asked_without_from_then_on(
    talk: Talk, scripted_model: ResponsesApi, name: str
) -> None:
    error, part = UNSUPPORTED[name]
    scripted_model.enqueue(status(400, error), text("Without."), text("Again."))
    assert (await talk.ask()).status == RunStatus.DONE
    await talk.ask("More")
    assert [part in asked for asked in scripted_model.requests] == [True, False, False]


# -- Trouble -----------------------------------------------------------------------------------------------------------

NO_STREAM: Final = "did not send a Responses API stream"
TOO_LONG: Final = {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}
EARLY: Final = "ended its answer before it was complete"


def of_item(item: Any) -> Reply:
    return Reply((event("response.output_item.done", output_index=0, item=item), completed()))


def with_two_arguments() -> Reply:
    said = call("look", {"n": 1})
    parts = (added(said, 0), argued(said, '{"n": 10}', 0), *of_item(said).parts)
    return Reply(parts)


def with_endless_arguments() -> Reply:
    said = call("look", "")
    return Reply((added(said, 0), *[argued(said, "x" * 100_000, 0)] * 11))


TROUBLES: Final[dict[str, tuple[Reply, str]]] = {
    "wrong key": (status(401, {"message": "Incorrect API key"}), "did not accept the key (401). Check OPENAI_API_KEY."),
    "unknown": (
        status(404, {"message": "Not Found"}),
        "does not know “scripted” or this address, or has no Responses API",
    ),
    "quota": (status(429, {"message": "slow down"}), "a limit or quota is used up (429). Wait"),
    "failure": (status(500, {"message": "oops"}), "The model server failed (500). Try again in a moment."),
    "refused": (status(400, {"message": "bad tool"}), "refused the request (400). It says: “bad tool”."),
    "too long": (status(400, TOO_LONG), "longer than the model can read. Start a new conversation."),
    "too long, as it says later": (failed_after(**TOO_LONG), "longer than the model can read."),
    "error in the stream": (
        error_after("Half", message="overloaded", code="x"),
        "broke off its answer: It says: “overlo",
    ),
    "error in an error": (
        error_after("Half", error={"message": "overloaded"}),
        "broke off its answer: It says: “overlo",
    ),
    "failed in the end": (
        failed_after("Half", code="server_error", message="Oh."),
        "broke off its answer: It says: “Oh.”.",
    ),
    "failed silently": (
        Reply((*begin(), completed(how="failed"))),
        "broke off its answer: It says: “the response is failed",
    ),
    "connection lost": (cut_off_after("Half"), "cannot be reached"),
    "ended early": (unfinished("Half"), EARLY),
    "cancelled": (whole(), "The model's answer was empty (stop)"),
    "a call without an end": (Reply((added(call("look", ""), 0), completed())), EARLY),
    "no events": (raw(b"<html>Welcome to nginx</html>"), EARLY),
    "no JSON": (raw(b"data: {oops\n\n"), NO_STREAM),
    "no text": (raw(b"data: \xff\xfe\n\n"), NO_STREAM),
    "no object": (raw(b"data: [1]\n\n"), NO_STREAM),
    "too deep": (raw(b"data: " + b"[" * 1_000_000 + b"\n\n"), NO_STREAM),
    "stream of the other API": (chat.text("Hello."), EARLY),
    "item that is none": (of_item([1]), NO_STREAM),
    "item without anything": (of_item({}), "The model's answer was empty (stop)"),
    "text that is none": (Reply((event("response.output_text.delta", output_index=0, delta=[1]),)), NO_STREAM),
    "index that is none": (Reply((event("response.output_text.delta", output_index=[], delta="x"),)), NO_STREAM),
    "content that is none": (of_item(message("x") | {"content": ["x"]}), NO_STREAM),
    "summary that is none": (of_item(reasoning() | {"summary": "x"}), NO_STREAM),
    "response that is none": (Reply((event("response.completed", response=[1]),)), NO_STREAM),
    "output that is none": (Reply((completed(output={"a": 1}),)), NO_STREAM),
    "arguments as an object": (of_item(call("look", "") | {"arguments": {"n": 1}}), NO_STREAM),
    "arguments of two kinds": (with_two_arguments(), NO_STREAM),
    "a call of two names": (Reply((added(call("look", ""), 0), *of_item(call("send", {})).parts)), NO_STREAM),
    "one large event": (raw(b"data: " + b"x" * (LARGEST_EVENT + 1)), "One event of the model server's answer has more"),
    "endless text": (text(*["x" * 100_000] * 11), "1,000,000 characters"),
    "endless arguments": (with_endless_arguments(), "1,000,000 characters"),
    "endless thoughts": (output(*[reasoning(secret="s" * 200_000) for _ in range(6)]), "1,000,000 characters"),
    "too many calls": (calls(*[("look", {"n": 1})] * 200), f"more than {MOST_REQUESTED} calls at once"),
    "too many parts": (output(*[message("")] * (MOST_ITEMS + 1)), f"more than {MOST_ITEMS} parts"),
}


@each_row("reply, expected", TROUBLES.values(), ids=TROUBLES)
async def test_trouble_says_what_to_do_and_is_no_answer(read: Read, reply: Reply, expected: str) -> None:
    with pytest.raises(ModelTrouble) as trouble:
        await read(reply)
    assert expected in str(trouble.value)


async def test_half_a_call_is_not_made(talk: Talk, recorder: Recorder, scripted_model: ResponsesApi) -> None:
    await tool()
    parts = list(streamed(call("look", WANTED), 0))
    scripted_model.enqueue(Reply((*begin(), *parts[:3])), Reply((*begin(), *parts)), text("Here again."))
    for _ in range(2):
        run = await talk.ask()
        assert EARLY in run.error
        assert (await talk.notices())[-1] == run.error
    assert (recorder.entered, await talk.calls()) == ([], [])
    assert (await talk.ask("Again")).status == RunStatus.DONE


async def test_arguments_as_large_as_may_be_are_read(read: Read) -> None:
    large = call("look", {"text": "x" * 900_000})
    told = (added(large | {"arguments": ""}, 0), argued(large, large["arguments"], 0), *of_item(large).parts)
    assert wanted_by(await read(Reply(told))) == [("look", {"text": "x" * 900_000})]


async def test_a_stream_that_stalls_is_given_up_and_what_it_wrote_stays(
    talk: Talk, scripted_model: ResponsesApi, settings: Settings
) -> None:
    settings.MODEL_ANSWER_SECONDS = 1
    scripted_model.enqueue(Reply((*unfinished("Half of").parts, Gate())), hang())
    assert "did not finish its answer within 1 seconds" in (await talk.ask("First")).error
    (written,) = await talk.messages(Role.ASSISTANT)
    assert (written.content, written.state) == ("Half of", MessageState.CUT)
    assert "did not finish its answer" in (await talk.ask("Second")).error


async def test_a_run_that_failed_is_counted_and_tried_again(talk: Talk, scripted_model: ResponsesApi) -> None:
    scripted_model.enqueue(failed_after("Half", code="server_error", message="Oh."), text("In Rotterdam."))
    await talk.ask("Where is my parcel?")
    assert (await in_database(usage.of_conversation)(talk.conversation.pk)).tokens == 120
    await in_database(runner.retry)(talk.conversation)
    assert (await talk.over()).status == RunStatus.DONE
    assert [item["content"] for item in scripted_model.input] == ["Where is my parcel?"]


@pytest.mark.slow("starts a program; another setting that is refused")
@pytest.mark.embedded
def test_an_api_that_there_is_not_is_refused_at_the_start(installation: Installation) -> None:
    code, _, errors = forks.run(("manage.py", "check"), installation.variables(OPENAI_API="grpc"), timeout=120)
    assert code != 0
    assert "OPENAI_API is 'grpc'; expected chat or responses" in errors


def test_this_module_has_its_own_server() -> None:
    assert scripted_model is responses_api.scripted_model
