"""The dialects of model servers over the wire: what each product really sends, and how it says that something is wrong.

The bodies are as the products write them, cut to what matters. Text that only looks like a call is none in any of them.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
from django.contrib.auth.models import User

from hitlchat.agent import conversations, endpoints, refusal, request, runner
from hitlchat.agent.answer import Answer, Tokens
from hitlchat.agent.endpoints import Draft
from hitlchat.agent.model_client import ModelTrouble
from hitlchat.agent.models import Message, MessageState, Role, Run, RunStatus
from hitlchat.chat import fragments
from hitlchat.gate.sources import ToolResult
from hitlchat.gate.status import Status
from tests.agent.conftest import Read
from tests.agent.talk import Talk, in_database
from tests.conftest import signed_in
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import DONE, Json, Reply, ScriptedModel, raw, sse, text
from tests.tables import each_row
from tests.waiting import stored

pytestmark = pytest.mark.django_db(transaction=True)

WANTED: Final = {"text": "hi", "n": 2}
WRITTEN: Final = json.dumps(WANTED)


def chunks(*deltas: Json, finish: str = "tool_calls", done: bool = True, **more: Any) -> Reply:
    """A stream of these deltas, with `more` in its last chunk."""
    choices: list[Json] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices[-1]["finish_reason"] = finish
    bodies: list[Json] = [{"id": "x", "object": "chat.completion.chunk", "choices": [each]} for each in choices]
    bodies[-1] |= more
    return raw(b"".join(map(sse, bodies)) + (DONE if done else b""))


def call(arguments: Any = WRITTEN, **more: Any) -> Json:
    return {"type": "function", "function": {"name": "look", "arguments": arguments}, **more}


def with_counts(reply: Reply, counts: Json) -> Reply:
    """The same with a last chunk that has counts and no choices."""
    body = b"".join(part for part in reply.parts if isinstance(part, bytes)).removesuffix(DONE)
    return raw(body + sse({"id": "x", "choices": [], "usage": counts}) + DONE)


@dataclass(frozen=True)
class Dialect:
    """A stream that asks for the one call, the tokens that it tells, and the thoughts that come with it."""

    reply: Callable[[], Reply]
    tokens: Tokens | None
    thoughts: str = ""


def _openai() -> Reply:
    begin, end = WRITTEN[:7], WRITTEN[7:]
    deltas: tuple[Json, ...] = (
        {"role": "assistant", "content": None, "tool_calls": [call("", index=0, id="call_abc")]},
        {"tool_calls": [{"index": 0, "function": {"arguments": begin}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": end}}]},
        {},
    )
    counts = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 12},
    }
    return with_counts(chunks(*deltas), counts)


def _azure() -> Reply:
    """What was asked is judged first, in a chunk without choices."""
    judged = sse({"choices": [], "id": "", "object": "", "prompt_filter_results": [{"prompt_index": 0}]})
    rest = _openai().parts
    return Reply((judged, *rest))


def _ollama() -> Reply:
    deltas = (
        {"role": "assistant", "content": "", "reasoning": "Look "},
        {"role": "assistant", "content": "", "reasoning": "first."},
        {"role": "assistant", "content": "", "tool_calls": [call(index=0, id="call_1")]},
        {"role": "assistant", "content": ""},
    )
    return with_counts(chunks(*deltas), {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120})


def _vllm() -> Reply:
    """The arguments come whole and the reason is a mere stop; counts of details are null."""
    deltas: tuple[Json, ...] = (
        {"role": "assistant", "content": ""},
        {"reasoning_content": "Look first."},
        {"tool_calls": [call("", index=0, id="chatcmpl-tool-1")]},
        {"tool_calls": [{"index": 0, "function": {"arguments": WRITTEN}}]},
        {"content": ""},
    )
    counts = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": None}
    return with_counts(chunks(*deltas, finish="stop"), counts)


def _mistral() -> Reply:
    """The call comes whole, without type or index 0 said first, its counts in the last chunk, its thoughts as parts."""
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "Look first."}]}]
    one = {"id": "D681PevKs", "function": {"name": "look", "arguments": WRITTEN}, "index": 0}
    counts = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    deltas = ({"role": "assistant", "content": thinking}, {"content": "", "tool_calls": [one]})
    return chunks(*deltas, usage=counts)


def _gemini() -> Reply:
    """No index, an id that may be empty, a signature to send back, and counts in every chunk."""
    one = call(id="", extra_content={"google": {"thought_signature": "c2ln"}})
    counts = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    first = sse({"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [one]}}], "usage": counts})
    last = {"choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": "stop"}], "usage": counts}
    return raw(first + sse(last) + DONE)


def _anthropic() -> Reply:
    deltas: tuple[Json, ...] = (
        {"role": "assistant", "content": ""},
        {"tool_calls": [{"index": 0, "id": "toolu_01", "type": "function", "function": {"name": "look"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": WRITTEN}}]},
        {},
    )
    return with_counts(chunks(*deltas), {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120})


def stream(*bodies: bytes | Json, done: bool = True) -> Reply:
    """These bodies as events, and what is bytes as it is."""
    return raw(b"".join(each if isinstance(each, bytes) else sse(each) for each in bodies) + (DONE if done else b""))


def delta(finish: str | None = None, **said: Any) -> Json:
    return {"choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def part(name: str | None = None, arguments: Any = None, **more: Any) -> Json:
    """One piece of a call."""
    function = {"name": name, "arguments": arguments}
    one = {"function": {key: value for key, value in function.items() if value is not None}, **more}
    return delta(tool_calls=[one])


def old(name: str | None = None, arguments: Any = None) -> Json:
    function = {"name": name, "arguments": arguments}
    return delta(function_call={key: value for key, value in function.items() if value is not None})


END: Final = delta("tool_calls")
GROWING: Final = [WRITTEN[:size] for size in (1, 5, 9, 14, len(WRITTEN))]
NESTED: Final = ['{"text": "hi", ', '"n": ', "2}"]

# What else servers write, each as events. Whoever reads one otherwise makes another call, none, or two.
MORE: Final[dict[str, tuple[bytes | Json, ...]]] = {
    "function_call in pieces": (
        old("look", ""),
        old(None, WRITTEN[:6]),
        old(None, WRITTEN[6:]),
        delta("function_call"),
    ),
    "function_call, name repeated": (old("look", WRITTEN[:6]), old("look", WRITTEN[6:]), delta("function_call")),
    "function_call whole": (
        {"choices": [{"message": {"function_call": {"name": "look", "arguments": WRITTEN}}, "finish_reason": "stop"}]},
    ),
    "function_call as an object": (old("look", WANTED), delta("function_call")),
    "function_call growing": (*(old("look", grown) for grown in GROWING), delta("function_call")),
    "function_call beside tool_calls": (old("look", WRITTEN), part("look", WRITTEN, index=0, id="a"), END),
    "arguments growing": (part("look", "", index=0, id="a"), *(part(None, grown, index=0) for grown in GROWING), END),
    "all growing": (
        part("lo", index=0, id="a"),
        *(part("look", grown, index=0, id="a") for grown in GROWING),
        part("look", WRITTEN, index=0, id="a"),
        END,
    ),
    "all growing, without an id": (part("lo", index=0), *(part("look", grown, index=0) for grown in GROWING), END),
    "all growing, without id and index": (part("lo"), *(part("look", grown) for grown in GROWING), END),
    "all growing, and once more at the end": (*(part("look", each, index=0) for each in (*GROWING, WRITTEN)), END),
    "all of the arguments once more": (
        part("look", WRITTEN[:7], index=0, id="a"),
        part(None, WRITTEN[7:], index=0),
        part(None, WRITTEN, index=0),
        END,
    ),
    "pieces that begin alike": (
        part("look", NESTED[0], index=0, id="a"),
        *(part(None, each) for each in NESTED[1:]),
        END,
    ),
    "a name in pieces": (part("lo", index=0, id="a"), part("ok", "", index=0), part(None, WRITTEN, index=0), END),
    "a name in pieces, the id repeated": (part("lo", index=0, id="a"), part("ok", WRITTEN, index=0, id="a"), END),
    "[DONE] without a reason": (part("look", WRITTEN, index=0, id="a"),),
    "a number as id": (part("look", WRITTEN, index=0, id=7), END),
    "an index as text": (part("look", "", index="0", id="a"), part(None, WRITTEN, index="0"), END),
    "one call and no list": (delta(tool_calls={"id": "a", "function": {"name": "look", "arguments": WRITTEN}}), END),
    "null as a word": (part("look", "", index=0, id="a"), delta("null"), part(None, WRITTEN, index=0), END),
    "without one level": (delta(tool_calls=[{"id": "a", "name": "look", "arguments": WRITTEN, "index": 0}]), END),
    "parameters": (delta(tool_calls=[{"id": "a", "function": {"name": "look", "parameters": WANTED}}]), END),
    "an end in quotation marks": (part("look", WRITTEN, index=0, id="a"), b'data: "[DONE]"\n\n'),
    "messages instead of deltas": (
        {"choices": [{"message": {"role": "assistant", "content": "I look."}}]},
        {"choices": [{"message": {"tool_calls": [call(index=0, id="a")]}, "finish_reason": "tool_calls"}]},
    ),
    "a blank event": (b"data:\n\ndata: \n\n", part("look", WRITTEN, index=0, id="a"), b"data:   \n\n", END),
    "bare names of events": (b"event: ping\n\n", part("look", WRITTEN, index=0, id="a"), b"event: ping\n\n", END),
    "comments and fields": (b": here\n\nid: 1\nretry: 5\n\n", part("look", WRITTEN, index=0, id="a"), b":\n", END),
    "words that keep it open": (
        *(b"data: ping\n\ndata: null\n\ndata: {}\n\n", b'event: ping\ndata: {"type": "ping"}\n\n'),
        *({"message": "The model is being loaded."}, part("look", WRITTEN, index=0, id="a"), END),
    ),
    "a mark at the beginning": (b"\xef\xbb\xbf", part("look", WRITTEN, index=0, id="a"), END),
    "no lines between": (sse(part("look", WRITTEN, index=0, id="a")).rstrip() + b"\n" + sse(END),),
    "chunks in a list": (b"data: " + json.dumps([part("look", WRITTEN, index=0, id="a"), END]).encode() + b"\n\n",),
    "error: null": (part("look", WRITTEN, index=0, id="a") | {"error": None}, END),
}
WHOLE: Final = ("STOP", "tool_use", "end_turn", "eos", "COMPLETE", "tool-calls", "stop_sequence", "function_call")


def wanted_by(answer: Answer) -> list[tuple[str, Any]]:
    """The calls of an answer that may be acted upon."""
    assert answer.is_whole
    return [(each.name, json.loads(each.arguments or "{}")) for each in answer.calls]


async def test_what_else_servers_write_is_the_one_call_that_was_meant(read: Read) -> None:
    for name, case in MORE.items():
        assert wanted_by(await read(stream(*case))) == [("look", WANTED)], name


MESSAGES: Final = {"pieces": ["One ", "two ", "three."], "all so far": ["One ", "One two ", "One two three."]}


async def test_messages_instead_of_deltas_go_on_or_have_all_so_far(read: Read) -> None:
    for how, case in MESSAGES.items():
        told: list[Json] = [{"choices": [{"message": {"content": each}, "finish_reason": None}]} for each in case]
        told[-1]["choices"][0]["finish_reason"] = "stop"
        assert (await read(stream(*told))).text == "One two three.", how


async def test_an_end_without_a_blank_line_is_one(read: Read) -> None:
    events = b"".join(map(sse, (part("look", WRITTEN, index=0, id="a"), END))).rstrip()
    assert wanted_by(await read(raw(events))) == [("look", WANTED)]


APART: Final[dict[str, tuple[Json, ...]]] = {
    "one after the other": (part("look", WRITTEN), part("look", WRITTEN)),
    "with indexes alone": (part("look", WRITTEN, index=0), part("look", WRITTEN, index=1)),
    "an id that comes again": (part("look", WRITTEN, index=0, id="a"), part("look", WRITTEN, index=1, id="a")),
    "objects": (part("look", WANTED), part("look", WANTED)),
}


async def test_two_equal_calls_are_two(read: Read) -> None:
    for name, case in APART.items():
        assert wanted_by(await read(stream(*case, END))) == [("look", WANTED)] * 2, name


async def test_names_that_begin_alike_are_two_calls(read: Read) -> None:
    both = delta(tool_calls=[{"function": {"name": "look"}}, {"function": {"name": "look_up"}}])
    assert wanted_by(await read(stream(both, END))) == [("look", {}), ("look_up", {})]


# -- Answers that are not whole ----------------------------------------------------------------------------------------

UNKNOWN: Final = (
    "error",
    "length",
    "max_tokens",
    "MAX_TOKENS",
    "content_filter",
    "abort",
    "SAFETY",
    "pause_turn",
    "odd",
)


def test_only_what_ended_in_a_word_for_whole_is_whole() -> None:
    for word in WHOLE:
        assert Answer(finish_reason=word).is_whole, word
    for word in UNKNOWN:
        assert not Answer(finish_reason=word).is_whole, word


async def test_an_answer_that_ended_in_no_word_for_whole_is_marked_as_cut(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(stream(delta(content="Half"), delta("odd")))
    run = await talk.ask()
    assert (run.status, "before it was complete (odd)" in run.error) == (RunStatus.FAILED, True)
    (answer,) = await talk.messages(Role.ASSISTANT)
    assert (answer.content, answer.state) == ("Half", MessageState.CUT)
    assert await talk.notices() == [run.error]


async def test_what_was_not_whole_is_not_made_so_by_what_follows(read: Read) -> None:
    assert not (await read(stream(delta("length", content="Half"), delta("stop")))).is_whole


@pytest.mark.guarantee("gate:fail-closed")
async def test_nobody_is_asked_about_calls_of_an_answer_that_is_not_whole_and_the_model_is_told_once(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("send")
    cut = stream(part("send", WRITTEN, index=0, id="a"), part("send", '{"n": 1', index=1, id="b"), delta("max_tokens"))
    scripted_model.enqueue(cut, cut)
    run = await talk.ask()
    assert (run.status, "(max_tokens)" in run.error) == (RunStatus.FAILED, True)
    assert await talk.outcomes() == [Status.REJECTED] * 2
    assert len(scripted_model.requests) == 2
    assert recorder.entered == []
    scripted_model.enqueue(text("Here again."))
    await in_database(runner.retry)(talk.conversation)
    assert (await talk.over()).status == RunStatus.DONE
    assert len(scripted_model.told) == 2


async def test_a_stream_that_is_over_within_a_call_makes_none(read: Read) -> None:
    with pytest.raises(ModelTrouble, match="before it was complete"):
        await read(stream(part("look", WRITTEN[:9], index=0, id="a")))


MISSHAPEN: Final[dict[str, Json]] = {
    "an object as name": {"id": "a", "function": {"name": {}}},
    "a list as name": {"id": "a", "function": {"name": ["look"]}},
    "an object as id": {"id": {}, "function": {"name": "look"}},
    "an object as index": {"index": {}, "function": {"name": "look"}},
    "a number as arguments": {"id": "a", "function": {"name": "look", "arguments": 1}},
    "a text as function": {"id": "a", "function": "look"},
}


@each_row("case", MISSHAPEN.values(), ids=MISSHAPEN)
async def test_a_call_of_a_shape_that_nobody_knows_is_told_truly(read: Read, case: Json) -> None:
    with pytest.raises(ModelTrouble, match="did not send a Chat Completions stream"):
        await read(stream(delta(tool_calls=[case]), END))


# -- What goes back ----------------------------------------------------------------------------------------------------


async def test_ids_that_come_again_are_each_their_own_in_what_is_sent(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("look", "DISABLED")
    for _ in range(2):
        again = [stream(part("look", {"n": n}, index=0, id="functions.look:0"), END) for n in range(2)]
        scripted_model.enqueue(*again, text("Looked."))
        assert (await talk.ask()).status == RunStatus.DONE
    asked = [call["id"] for message in scripted_model.messages for call in message.get("tool_calls", [])]
    answered = [message["tool_call_id"] for message in scripted_model.messages if message["role"] == "tool"]
    assert (len({*asked}), asked) == (4, answered)
    before = scripted_model.requests[-2]["messages"]
    assert scripted_model.requests[-1]["messages"][: len(before)] == before


async def test_a_call_that_gave_nothing_says_so_to_the_model(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("look", "DISABLED")
    recorder.results["look"] = ToolResult("")
    scripted_model.enqueue(stream(part("look", "{}", index=0, id="a"), END), text("Looked."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert scripted_model.told == ["(no output)"]
    # As rows have it from before.
    for given in ("", " \n\t", "\u2003"):
        wire = json.dumps({"role": "tool", "tool_call_id": "a", "content": given}, ensure_ascii=False)
        await Message.objects.filter(role=Role.TOOL).aupdate(wire=wire)
        scripted_model.enqueue(text("Again."))
        assert (await talk.ask()).status == RunStatus.DONE
        assert scripted_model.told == ["(no output)"]


NOT_READ: Final[dict[str, Any]] = {
    "a field": (400, {"error": {"message": "unknown field reasoning_content"}}),
    "a field, by its place": (
        422,
        {"detail": [{"loc": ["body", "messages", 2, "reasoning_content"], "msg": "Extra inputs are not permitted"}]},
    ),
    "no reason": (400, {"error": {"message": "Bad Request"}}),
}


@pytest.mark.parametrize("name", NOT_READ)
async def test_a_server_that_refuses_what_it_added_itself_is_asked_without_from_then_on(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel, name: str
) -> None:
    await in_database(recorded_tool)("look", "DISABLED")
    thought = delta(reasoning_content="Look first.")
    scripted_model.enqueue(stream(thought, part("look", WRITTEN, index=0, id="a", extra_content={"x": 1}), END))
    scripted_model.enqueue(_error(*NOT_READ[name]), stream(thought, delta("stop", content="Looked.")))
    assert (await talk.ask()).error == ""
    scripted_model.enqueue(text("Again."))
    assert (await talk.ask()).error == ""
    sent = ["reasoning_content" in str(each) or "extra_content" in str(each) for each in scripted_model.requests]
    assert sent == [False, True, False, False]
    request._refused.clear()


async def test_a_server_that_refuses_also_what_holds_nothing_added_is_quoted_with_what_it_said_first(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("look", "DISABLED")
    scripted_model.enqueue(stream(delta(reasoning="Look."), part("look", WRITTEN, index=0, id="a"), END))
    scripted_model.enqueue(_error(400, {"error": "first"}), _error(400, {"error": "second"}))
    assert "“first”" in (await talk.ask()).error
    scripted_model.enqueue(text("Now."))
    await in_database(runner.retry)(talk.conversation)
    assert (await talk.over()).status == RunStatus.DONE
    assert "reasoning" in str(scripted_model.requests[-1])


def _error(code: int, body: Any) -> Reply:
    written = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Reply((written,), code, {"Content-Type": "application/json", "x-should-retry": "false"})


COUNTED: Final = Tokens(100, 20)
DETAILED: Final = Tokens(100, 20, 64, 12)
X_GROQ: Final = {"id": "req_1", "usage": {"prompt_tokens": 100, "completion_tokens": 20, "queue_time": 0.1}}
TIMINGS: Final = {"prompt_n": 100, "predicted_n": 20, "predicted_ms": 12.5}

DIALECTS: Final[dict[str, Dialect]] = {
    "OpenAI": Dialect(_openai, DETAILED),
    "Azure": Dialect(_azure, DETAILED),
    "Ollama": Dialect(_ollama, COUNTED, "Look first."),
    "vLLM": Dialect(_vllm, COUNTED, "Look first."),
    # Pieces of a call without an id after the first, and no [DONE] at the end.
    "LM Studio": Dialect(
        lambda: chunks({"tool_calls": [call("", index=0, id="1")]}, {"tool_calls": [call(index=0)]}, done=False), None
    ),
    "llama.cpp": Dialect(lambda: chunks({"tool_calls": [call(WANTED, index=0, id="")]}, {}, timings=TIMINGS), None),
    "Mistral": Dialect(_mistral, COUNTED, "Look first."),
    "Groq": Dialect(
        lambda: chunks({"reasoning": "Look first."}, {"tool_calls": [call(index=0, id="a1b2")]}, x_groq=X_GROQ),
        COUNTED,
        "Look first.",
    ),
    "Gemini": Dialect(_gemini, COUNTED),
    "Anthropic": Dialect(_anthropic, COUNTED),
}


async def test_the_call_of_each_server_is_read_as_the_model_meant_it(read: Read) -> None:
    for name, dialect in DIALECTS.items():
        answer = await read(dialect.reply())
        assert wanted_by(answer) == [("look", WANTED)], name
        assert (answer.reasoning, answer.tokens) == (dialect.thoughts, dialect.tokens), name


async def test_what_gemini_signs_goes_back_to_it(talk: Talk, recorder: Recorder, scripted_model: ScriptedModel) -> None:
    await in_database(recorded_tool)("look", "DISABLED")
    scripted_model.enqueue(_gemini(), text("Looked."))
    await talk.ask()
    (said,) = [each for each in scripted_model.messages if each["role"] == "assistant"]
    assert said["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "c2ln"}}


async def test_thoughts_that_a_server_leaves_in_the_text_are_thoughts(read: Read) -> None:
    answer = await read(text("<think>\nLook ", "first.\n</think>\n\nI see."))
    assert (answer.text, answer.reasoning) == ("I see.", "Look first.")
    answer = await read(stream(delta(content="<think>Look.</think>"), part("look", WRITTEN, index=0, id="a"), END))
    assert (answer.text, answer.reasoning, wanted_by(answer)) == ("", "Look.", [("look", WANTED)])


async def test_what_only_mentions_thoughts_is_text(read: Read) -> None:
    for said in ("Models write <think>so</think>.", "<think> begins their thoughts."):
        answer = await read(text(said))
        assert (answer.text, answer.reasoning) == (said, "")


WRITTEN_CALLS: Final = {
    "in prose": 'I would call look with {"text": "hi"}: shall I?',
    "as an example": 'Write it so:\n```json\n{"name": "look", "arguments": {}}\n```\nand send it.',
    "in a sentence about marks": "The tag <tool_call> begins a call.",
}


async def test_a_call_is_never_guessed_out_of_text(read: Read) -> None:
    for where, case in WRITTEN_CALLS.items():
        answer = await read(text(case))
        assert (answer.text, answer.calls) == (case, []), where


# -- Where and how it is asked -----------------------------------------------------------------------------------------


async def test_azure_is_asked_by_deployment_version_and_a_header_of_its_own(
    talk: Talk, scripted_model: ScriptedModel, alice: User
) -> None:
    base = scripted_model.base_url.removesuffix("/v1")
    address = f"{base}/openai/deployments/large?api-version=2024-10-21"
    draft = Draft("azure", address, "large", key="azure-key-4711", key_header="api-key")
    await in_database(endpoints.create)(draft, signed_in(alice))
    await in_database(conversations.change)(talk.conversation, endpoint="azure")
    scripted_model.enqueue(_azure_text())
    run = await talk.ask()
    assert (run.status, run.error) == (RunStatus.DONE, "")
    path, headers = scripted_model.asked[-1]
    assert path == "/openai/deployments/large/chat/completions?api-version=2024-10-21"
    lowered = {name.lower(): value for name, value in headers.items()}
    assert lowered["api-key"] == "azure-key-4711"
    assert "authorization" not in lowered


def _azure_text() -> Reply:
    return chunks({"role": "assistant", "content": "Here."}, {}, finish="stop")


@pytest.mark.parametrize(
    "error",
    [
        {
            "error": {
                "message": "Unrecognized request argument supplied: stream_options",
                "type": "invalid_request_error",
            }
        },
        {
            "detail": [
                {"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are forbidden"}
            ]
        },
    ],
)
async def test_a_server_that_knows_no_token_counts_is_asked_without_them(
    talk: Talk, scripted_model: ScriptedModel, error: Json
) -> None:
    refusal = Reply((json.dumps(error).encode(),), 400, {"Content-Type": "application/json"})
    scripted_model.enqueue(refusal, text("Without."), text("And again."))
    assert (await talk.ask()).status == RunStatus.DONE
    await talk.ask()
    assert ["stream_options" in each for each in scripted_model.requests] == [True, False, False]
    request._refused.clear()


# -- Errors ------------------------------------------------------------------------------------------------------------

LONG: Final = "longer than the model can read"
ERRORS: Final[dict[str, tuple[int, Any, str]]] = {
    "OpenAI, key": (
        401,
        {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}},
        "Incorrect API",
    ),
    "OpenAI, length": (400, {"error": {"message": "too much", "code": "context_length_exceeded"}}, LONG),
    "Azure, deployment": (
        404,
        {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}},
        "It says: “The API deployment does not exist.”.",
    ),
    "Ollama, model": (404, {"error": "model 'qwen9' not found"}, "It says: “model 'qwen9' not found”."),
    "LM Studio, model": (400, {"error": "No models loaded."}, "It says: “No models loaded.”."),
    "vLLM, length": (
        400,
        {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400},
        LONG,
    ),
    "llama.cpp, length": (
        400,
        {"error": {"code": 400, "message": "the request exceeds the available context size", "n_ctx": 4096}},
        LONG,
    ),
    "Mistral, key": (401, {"detail": "Unauthorized"}, "It says: “Unauthorized”."),
    "Mistral, field": (
        422,
        {"detail": [{"type": "missing", "loc": ["body", "tools", 0], "msg": "Field required"}]},
        "It says: “body.tools.0: Field required”.",
    ),
    "Groq, call": (
        400,
        {"error": {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<x>"}},
        "It says: “Failed to call a function.”.",
    ),
    "Gemini, key": (400, [{"error": {"code": 400, "message": "API key not valid."}}], "It says: “API key not valid.”."),
    "Gemini, length": (
        400,
        [{"error": {"code": 400, "message": "The input token count exceeds the maximum number of tokens allowed."}}],
        LONG,
    ),
    "Anthropic, length": (
        400,
        {"error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}},
        LONG,
    ),
    "a proxy": (502, "<html>Bad gateway</html>", "(502). Try again in a moment. It says: “Bad gateway”."),
    "a text alone": (400, {"error": "EXPLODED"}, "It says: “EXPLODED”."),
    "a detail": (400, {"detail": "EXPLODED"}, "It says: “EXPLODED”."),
    "a message": (400, {"message": "EXPLODED"}, "It says: “EXPLODED”."),
    "a mark and a message": (400, {"error": True, "message": "EXPLODED"}, "It says: “EXPLODED”."),
    "a list of texts": (400, ["no tools", "no images"], "It says: “no tools; no images”."),
    "a list of errors": (
        400,
        {"errors": [{"message": "no tools"}, {"message": "no images"}]},
        "“no tools; no images”.",
    ),
    "plain text": (400, b"EXPLODED", "It says: “EXPLODED”."),
    "a text in quotation marks": (400, "EXPLODED", "It says: “EXPLODED”."),
    "a page": (
        503,
        b"<!DOCTYPE html><html><head><style>x { y }</style><title>503 Service\n Unavailable</title></head></html>",
        "It says: “503 Service Unavailable”.",
    ),
    "a page without a title": (400, b"<html><body><h1>Bad &amp; Wrong</h1></body></html>", "It says: “Bad & Wrong”."),
    "a router": (
        400,
        {"error": {"message": "Provider returned error", "metadata": {"raw": '{"error": {"message": "too hot"}}'}}},
        "It says: “Provider returned error: too hot”.",
    ),
    "JSON within JSON": (400, {"message": '{"error": {"message": "EXPLODED"}}'}, "It says: “EXPLODED”."),
    "names that nobody knows": (400, {"wrong": "EXPLODED"}, "EXPLODED"),
    "nothing": (400, b"", "The model server refused the request (400)."),
}


@each_row("case", ERRORS.values(), ids=ERRORS)
async def test_each_server_is_quoted_in_its_own_words(read: Read, case: tuple[int, Any, str]) -> None:
    code, body, expected = case
    with pytest.raises(ModelTrouble) as trouble:
        await read(_error(code, body))
    assert expected in str(trouble.value)


IN_STREAMS: Final[dict[str, bytes]] = {
    "an error": sse({"error": {"message": "EXPLODED"}}),
    "a text": sse({"error": "EXPLODED"}),
    "an event": b'event: error\ndata: {"message": "EXPLODED"}\n\n',
    "an event in words": b"event: error\ndata: EXPLODED\n\n",
    "an object": sse({"object": "error", "message": "EXPLODED", "code": 500}),
    "a detail": sse({"detail": "EXPLODED"}),
    "a message and then the end": sse({"message": "EXPLODED"}),
    "beside a choice": sse({"error": {"message": "EXPLODED"}, "choices": [{"delta": {}, "finish_reason": "error"}]}),
    "in a list": b'data: [{"error": {"message": "EXPLODED"}}]\n\n',
}


@each_row("case", IN_STREAMS.values(), ids=IN_STREAMS)
async def test_a_failure_in_a_stream_is_quoted_too(read: Read, case: bytes) -> None:
    for begins in [b"", sse(delta(content="Half"))]:
        with pytest.raises(ModelTrouble, match="It says: “EXPLODED”"):
            await read(raw(begins + case))


@each_row("name", ["error", "detail", "message"])
async def test_an_error_that_comes_as_if_it_were_an_answer_is_quoted(read: Read, name: str) -> None:
    with pytest.raises(ModelTrouble, match="It says: “EXPLODED”"):
        await read(Reply((json.dumps({name: "EXPLODED"}).encode(),), headers={"Content-Type": "application/json"}))


PLACES: Final = {
    "brackets": "tools[1].function.parameters: allOf is not supported at the top level",
    "dots": "Invalid input: tools.1.custom.input_schema: allOf",
    "slashes": "#/tools/1/function/parameters is no schema",
    "Python": "('body', 'tools', 1, 'function')",
    "Gemini": "GenerateContentRequest.tools[0].function_declarations[1].parameters: missing field",
    "arrows": "tools -> 1 -> function -> parameters",
    "words": "The tool at index 1 has no schema",
    "its name": "Invalid schema for function 'odd': object schema missing properties",
}


async def test_a_refusal_of_one_tool_says_which_and_where_to_take_it_out(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    for name, said in PLACES.items():
        assert refusal.tool_in(said, ["look", "odd"]) == "odd", name
    await in_database(recorded_tool)("look")
    await in_database(recorded_tool)("odd")
    scripted_model.enqueue(_error(400, {"error": {"message": PLACES["dots"]}}))
    run = await talk.ask()
    assert [tool["function"]["name"] for tool in scripted_model.requests[-1]["tools"]] == ["look", "odd"]
    assert PLACES["dots"] in run.error
    assert "The cause is the tool “odd”. To continue, remove it" in run.error


def test_a_refusal_that_is_about_no_tool_names_none() -> None:
    for said in ["too many tools: 1 is the most", "tools[9] is odd", "messages.1.tool_calls.0 is odd"]:
        assert refusal.tool_in(said, ["look", "odd"]) == ""


async def test_every_object_of_a_schema_goes_out_with_its_properties(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    inner = {"any": {"type": "object"}, "properties": {"const": {"type": "object"}}}
    schemas = {"bare": {"type": "object"}, "empty": {}, "inner": {"type": "object", "properties": inner}}
    for name, schema in schemas.items():
        await in_database(recorded_tool)(name, input_schema=schema)
    scripted_model.enqueue(text("Hi."))
    await talk.ask()
    sent = {each["function"]["name"]: each["function"]["parameters"] for each in scripted_model.requests[-1]["tools"]}
    bare = {"type": "object", "properties": {}}
    assert sent["bare"] == sent["empty"] == bare
    assert sent["inner"]["properties"] == inner | {"any": bare}


# -- Once more ---------------------------------------------------------------------------------------------------------


async def test_a_server_that_wants_more_time_than_anybody_waits_is_not_asked_again(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    slow = Reply((b"{}",), 429, {"Content-Type": "application/json", "retry-after": "3600"})
    scripted_model.enqueue(slow)
    assert "(429)" in (await talk.ask()).error
    assert len(scripted_model.requests) == 1


async def test_while_a_server_is_waited_for_pages_say_why_and_the_run_can_be_stopped(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(Reply((b"{}",), 429, {"Content-Type": "application/json", "retry-after": "59"}))
    run = await talk.say()
    rows = Run.objects.filter(pk=run.pk).exclude(retrying="")
    await stored(rows.exists, "the run says that it waits")
    shown = await in_database(fragments.run)(talk.conversation.pk)
    assert "a limit or quota is used up (429)" in shown
    assert "Retrying in a moment." in shown
    await talk.stop()
    assert "Retrying in a moment" not in await in_database(fragments.run)(talk.conversation.pk)


async def test_what_was_stored_says_nothing_of_a_retry_that_is_over(talk: Talk, scripted_model: ScriptedModel) -> None:
    busy = Reply((b"{}",), 503, {"Content-Type": "application/json", "retry-after-ms": "1"})
    scripted_model.enqueue(busy, text("Now."))
    run = await talk.ask()
    assert (run.status, run.retrying) == (RunStatus.DONE, "")
    assert await Message.objects.filter(role=Role.NOTICE).acount() == 0
