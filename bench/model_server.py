"""A model server in a process of its own: Chat Completions, streamed, as fast as the reader takes it.

The last message says what to answer: "call NAME" with a call of that tool, "think NAME" likewise after a moment,
"stream N" with N tokens, a tool's result with a sentence.
`python -m bench.model_server` prints its port and serves until its input ends.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

from bench.home import ARGUMENTS

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
TOKENS_A_WRITE = 20
TOKENS_A_PARAGRAPH = 60
THINKING_SECONDS = 0.04
SENTENCE = ("The ", "money ", "was ", "sent ", "back ", "to ", "the ", "customer.")
DONE = "data: [DONE]\n\n"


def token(number: int) -> str:
    return f"word{number}" + ("\n\n" if number % TOKENS_A_PARAGRAPH == TOKENS_A_PARAGRAPH - 1 else " ")


def events(messages: list[dict[str, Any]]) -> Iterator[str]:
    last = messages[-1]
    order, _, rest = last["content"].partition(" ")
    yield event({"role": "assistant", "content": ""})
    if last["role"] == "user" and order in ("call", "think"):
        yield from call(f"call_{len(messages)}", rest.partition(",")[0])
    elif last["role"] == "user" and order == "stream":
        yield from (event({"content": token(number)}) for number in range(int(rest)))
        yield event({}, "stop")
    else:
        yield from (event({"content": word}) for word in SENTENCE)
        yield event({}, "stop")
    yield DONE


def call(call_id: str, name: str) -> Iterator[str]:
    first = {"index": 0, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    yield event({"tool_calls": [first]})
    written = json.dumps(ARGUMENTS)
    for start in range(0, len(written), 8):
        yield event({"tool_calls": [{"index": 0, "function": {"arguments": written[start : start + 8]}}]})
    yield event({}, "tool_calls")


def event(delta: dict[str, Any], finish: str | None = None) -> str:
    choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    about = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
    return f"data: {json.dumps({**about, 'choices': choices})}\n\n"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            messages = json.loads(await reader.readexactly(length))["messages"]
            if str(messages[-1]["content"]).startswith("think "):
                await asyncio.sleep(THINKING_SECONDS)
            writer.write(HEAD)
            for number, text in enumerate(events(messages), 1):
                data = text.encode()
                writer.write(b"%x\r\n%b\r\n" % (len(data), data))
                if number % TOKENS_A_WRITE == 0:
                    await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=2**26)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
