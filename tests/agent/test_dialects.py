"""The dialects of model servers over the wire: what each product really sends, and how it says that something is wrong.

The bodies are as the products write them, cut to what matters. Text that only looks like a call is none in any of them.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
from django.contrib.auth.models import User

from hitlchat.agent import conversations, endpoints, request, usage
from hitlchat.agent.answer import Tokens
from hitlchat.agent.endpoints import Draft
from hitlchat.agent.models import Message, Role, Run, RunStatus
from hitlchat.chat import fragments
from tests.agent.talk import Talk, in_database
from tests.conftest import signed_in
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import DONE, Json, Reply, ScriptedModel, raw, sse, text
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


@pytest.mark.parametrize("name", DIALECTS)
async def test_the_call_of_each_server_is_made_once_as_the_model_meant_it(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel, name: str
) -> None:
    await in_database(recorded_tool)("look", "DISABLED")
    dialect = DIALECTS[name]
    scripted_model.enqueue(dialect.reply(), text("Looked."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert recorder.entered == [("look", WANTED)]
    first = (await talk.messages(Role.ASSISTANT))[0]
    assert first.reasoning == dialect.thoughts
    used = (await in_database(usage.of_messages)(talk.conversation.pk, [first.pk])).get(first.pk)
    found = used and Tokens(used.input, used.output, used.cached, used.reasoning)
    assert found == dialect.tokens


async def test_what_gemini_signs_goes_back_to_it(talk: Talk, recorder: Recorder, scripted_model: ScriptedModel) -> None:
    await in_database(recorded_tool)("look", "DISABLED")
    scripted_model.enqueue(_gemini(), text("Looked."))
    await talk.ask()
    (said,) = [each for each in scripted_model.messages if each["role"] == "assistant"]
    assert said["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "c2ln"}}


WRITTEN_CALLS: Final = {
    "in prose": 'I would call look with {"text": "hi"}: shall I?',
    "as an example": 'Write it so:\n```json\n{"name": "look", "arguments": {}}\n```\nand send it.',
    "in a sentence about marks": "The tag <tool_call> begins a call.",
}


@pytest.mark.parametrize("where", WRITTEN_CALLS)
async def test_a_call_is_never_guessed_out_of_text(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel, where: str
) -> None:
    await in_database(recorded_tool)("look", "DISABLED")
    scripted_model.enqueue(text(WRITTEN_CALLS[where]))
    assert (await talk.ask()).status == RunStatus.DONE
    assert (recorder.entered, await talk.answers()) == ([], [WRITTEN_CALLS[where]])


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
    "a proxy": (502, "<html>Bad gateway</html>", "The model server failed (502)."),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_each_server_is_quoted_in_its_own_words(talk: Talk, scripted_model: ScriptedModel, name: str) -> None:
    code, body, expected = ERRORS[name]
    headers = {"Content-Type": "application/json", "x-should-retry": "false"}
    scripted_model.enqueue(Reply((json.dumps(body).encode(),), code, headers))
    run = await talk.ask()
    assert run.status == RunStatus.FAILED
    assert expected in run.error


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
    assert "Asking once more in a moment." in shown
    await talk.stop()
    assert "Asking once more" not in await in_database(fragments.run)(talk.conversation.pk)


async def test_what_was_stored_says_nothing_of_a_retry_that_is_over(talk: Talk, scripted_model: ScriptedModel) -> None:
    busy = Reply((b"{}",), 503, {"Content-Type": "application/json", "retry-after-ms": "1"})
    scripted_model.enqueue(busy, text("Now."))
    run = await talk.ask()
    assert (run.status, run.retrying) == (RunStatus.DONE, "")
    assert await Message.objects.filter(role=Role.NOTICE).acount() == 0
