"""A model server that plays a script by the Responses API: real HTTP, as tests/scripted_model.py does by the other.

    model.enqueue(calls(("echo", {"text": "hi"})), text("Done."))

A request that the strictest server would refuse fails the test.
"""

import itertools
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pytest_django import Settings

from tests.scripted_model import Cut, Gate, Json, Part, Reply, ScriptedModel, sse

_numbers = itertools.count(1)
COUNTS: Final = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 64},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 12},
    "total_tokens": 120,
}


# -- Items of an output ------------------------------------------------------------------------------------------------


def message(text: str, **more: Any) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": _id("msg"), "role": "assistant", "status": "completed", "content": content, **more}


def call(name: str, arguments: Any, **more: Any) -> Json:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    said = {"type": "function_call", "id": _id("fc"), "call_id": _id("call"), "name": name, "arguments": written}
    return {**said, "status": "completed", **more}


def reasoning(*summaries: str, secret: str | None = "sealed", **more: Any) -> Json:
    summary = [{"type": "summary_text", "text": each} for each in summaries]
    return {"type": "reasoning", "id": _id("rs"), "summary": summary, "encrypted_content": secret, **more}


def _id(prefix: str) -> str:
    return f"{prefix}_{next(_numbers)}"


# -- Replies -----------------------------------------------------------------------------------------------------------


def event(kind: str, **more: Any) -> bytes:
    """One event as it is sent: its name twice, as OpenAI does it."""
    return f"event: {kind}\n".encode() + sse({"type": kind, **more})


def output(*items: Json, **more: Any) -> Reply:
    """A whole answer of these items, each told in pieces."""
    told = [part for index, item in enumerate(items) for part in streamed(item, index)]
    return Reply((*begin(), *told, completed(*items, **more)))


def text(*parts: str | Gate) -> Reply:
    """An answer without calls. Each text is one delta; a gate holds it there."""
    whole = message("".join(part for part in parts if isinstance(part, str)))
    return Reply((*begin(), *spoken(whole, parts, 0), *_ended(whole, 0), completed(whole)))


def calls(*wanted: tuple[str, Json | str]) -> Reply:
    return output(*(call(name, arguments) for name, arguments in wanted))


def begin() -> list[bytes]:
    response: Json = {"id": "resp_1", "object": "response", "status": "in_progress", "output": [], "error": None}
    return [event("response.created", response=response), event("response.in_progress", response=response)]


def completed(*items: Json, how: str = "completed", usage: Json | None = COUNTS, **more: Any) -> bytes:
    whole = {"id": "resp_1", "object": "response", "status": how, "output": list(items), "usage": usage, "error": None}
    return event(f"response.{how}", response=whole | more)


def streamed(item: Json, index: int) -> Iterator[bytes]:
    """The events that tell one item, in pieces of five characters."""
    match item["type"]:
        case "message":
            said = item["content"][0].get("text", "")
            yield from spoken(item, _pieces(said), index)  # type: ignore[misc]
        case "function_call":
            yield added(item | {"arguments": "", "status": "in_progress"}, index)
            for piece in _pieces(item["arguments"]):
                yield argued(item, piece, index)
            whole = {"item_id": item["id"], "output_index": index, "arguments": item["arguments"]}
            yield event("response.function_call_arguments.done", **whole)
        case _:
            yield added(item | {"summary": [], "encrypted_content": None}, index)
            for number, part in enumerate(item["summary"]):
                at = {"item_id": item["id"], "output_index": index, "summary_index": number}
                yield event("response.reasoning_summary_part.added", **at, part={"type": "summary_text", "text": ""})
                for piece in _pieces(part["text"]):
                    yield event("response.reasoning_summary_text.delta", **at, delta=piece)
                yield event("response.reasoning_summary_text.done", **at, text=part["text"])
    yield from _ended(item, index)


def added(item: Json, index: int) -> bytes:
    return event("response.output_item.added", output_index=index, item=item)


def argued(item: Json, piece: str, index: int) -> bytes:
    at = {"item_id": item["id"], "output_index": index}
    return event("response.function_call_arguments.delta", **at, delta=piece)


def spoken(item: Json, parts: Any, index: int) -> Iterator[Part]:
    yield added(item | {"content": [], "status": "in_progress"}, index)
    at = {"item_id": item["id"], "output_index": index, "content_index": 0}
    yield event("response.content_part.added", **at, part={"type": "output_text", "text": ""})
    for part in parts:
        yield part if isinstance(part, Gate) else event("response.output_text.delta", **at, delta=part)


def _ended(item: Json, index: int) -> Iterator[bytes]:
    yield event("response.output_item.done", output_index=index, item=item)


def _pieces(written: str) -> Iterator[str]:
    for start in range(0, len(written), 5):
        yield written[start : start + 5]


def unfinished(*parts: str) -> Reply:
    """The stream ends in good order, but before the answer was complete."""
    return Reply((*begin(), *spoken(message(""), parts, 0)))


def cut_off_after(*parts: str) -> Reply:
    """The connection breaks in the middle of the answer."""
    return Reply((*unfinished(*parts).parts, Cut()))


def error_after(*parts: str, **error: Any) -> Reply:
    """The server reports an error in the middle of the answer."""
    return Reply((*unfinished(*parts).parts, event("error", **error)))


def failed_after(*parts: str, **error: Any) -> Reply:
    """The same as the end of the response."""
    return Reply((*unfinished(*parts).parts, completed(how="failed", error=error)))


def whole(*items: Json) -> Reply:
    """The response as one object, of a server that does not stream."""
    found = {"id": "resp_1", "object": "response", "status": "completed", "output": list(items), "usage": COUNTS}
    return Reply((json.dumps(found).encode(),), headers={"Content-Type": "application/json"})


# -- What it is asked --------------------------------------------------------------------------------------------------

KNOWN: Final = {
    *("model", "stream", "store", "include", "reasoning", "instructions", "input", "tools", "parallel_tool_calls"),
    "max_output_tokens",
}
SHAPES: Final[dict[str, set[str]]] = {
    "message": {"type", "role", "content"},
    "function_call": {"type", "call_id", "name", "arguments"},
    "function_call_output": {"type", "call_id", "output"},
    "reasoning": {"type", "id", "summary"},
}
MORE: Final = {"message": {"phase"}, "reasoning": {"encrypted_content", "content"}}
PARTS: Final = {"input_text": {"type", "text"}, "input_image": {"type", "image_url", "detail"}}
TOOL: Final = {"type", "name", "description", "parameters", "strict"}


def wrong(body: Json) -> str:
    """What the strictest server says, in short, of a request that cannot be; empty if it can."""
    if more := body.keys() - KNOWN:
        return f"unknown: {more}"
    if body["store"] is not False or body["stream"] is not True or not body["input"]:
        return "stored, not streamed, or empty"
    for tool in body.get("tools", []):
        if tool.keys() != TOOL or tool["strict"] is not False:
            return f"a tool cannot be {tool}"
    return next(filter(None, map(_wrong_item, body["input"])), "") or _wrong_order(body["input"])


def _wrong_item(item: Json) -> str:
    shape = SHAPES[item["type"]]
    if item.keys() - MORE.get(item["type"], set()) != shape:
        return f"an item cannot be {item}"
    if len(item.get("call_id", "")) > 64:
        return "call_id is longer than 64"
    if item["type"] == "function_call" and not isinstance(json.loads(item["arguments"]), dict):
        return "arguments are no object"
    return _wrong_content(item) if item["type"] == "message" else ""


def _wrong_content(item: Json) -> str:
    content = item["content"]
    if isinstance(content, str):
        return "" if content.strip() else "an empty message"
    if item["role"] != "user" or any(part.keys() != PARTS[part["type"]] for part in content):
        return f"content cannot be {content}"
    images = [part["image_url"] for part in content if part["type"] == "input_image"]
    return "" if all(url.startswith("data:image/") for url in images) else "an image is no data"


def _wrong_order(items: list[Json]) -> str:
    waiting: list[str] = []
    for item, behind in itertools.zip_longest(items, items[1:]):
        match item["type"]:
            case "reasoning" if behind is None or behind["type"] not in ("message", "function_call", "reasoning"):
                return f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
            case "function_call":
                waiting.append(item["call_id"])
            case "function_call_output" if item["call_id"] not in waiting:
                return f"No tool call found for function call output with call_id {item['call_id']}."
            case "function_call_output":
                waiting.remove(item["call_id"])
            case "message" if waiting and item["role"] == "user":
                return f"No tool output found for function call {waiting[0]}."
    return f"No tool output found for function call {waiting[0]}." if waiting else ""


class ResponsesApi(ScriptedModel):
    """The server with its script and what it was asked. It has the other API, too."""

    PLACE = ("/responses", "/chat/completions")

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "OPENAI_API": "responses"}

    def wrong(self, body: Json) -> str:
        return super().wrong(body) if "messages" in body else wrong(body)

    @property
    def input(self) -> list[Json]:
        """What it was last sent."""
        items: list[Json] = self.requests[-1]["input"]
        return items

    def sent(self, kind: str) -> list[Json]:
        """The items of one type in the last request."""
        return [item for item in self.input if item["type"] == kind]

    @property
    def told(self) -> list[str]:
        return [item["output"] for item in self.sent("function_call_output")]


@pytest.fixture
def scripted_model(settings: Settings) -> Iterator[ResponsesApi]:
    """This server in place of the other, where a test module has this name."""
    model = ResponsesApi()
    for name, value in model.environment.items():
        setattr(settings, name, value if name.startswith("OPENAI_") else False)
    yield model
    model.close()
