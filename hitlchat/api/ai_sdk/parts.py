"""Messages of the UI message protocol, put together of chunks in the way in which the AI SDK does it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hitlchat.api.ai_sdk.chunks import Chunk

Part = dict[str, Any]
ENDS: Final = {"text-end": "text", "reasoning-end": "reasoning"}


class Parts:
    """The parts of one message. What the stream never takes back has no chunk here."""

    def __init__(self) -> None:
        self.found: list[Part] = []
        self._open: dict[str, Part] = {}
        self._tools: dict[str, Part] = {}
        self._asked: dict[str, Part] = {}

    @classmethod
    def of(cls, chunks: Iterable[Chunk]) -> list[Part]:
        parts = cls()
        for chunk in chunks:
            _READERS[chunk["type"]](parts, chunk)
        return parts.found

    def begin(self, chunk: Chunk) -> None:
        kind = chunk["type"].removesuffix("-start")
        own = {"id": chunk["id"]} if kind == "reasoning" else {}
        self._open[chunk["id"]] = self._add({"type": kind, **own, "text": "", "state": "streaming"})

    def grow(self, chunk: Chunk) -> None:
        self._open[chunk["id"]]["text"] += chunk["delta"]

    def close(self, chunk: Chunk) -> None:
        self._open.pop(chunk["id"])["state"] = "done"

    def step(self, _chunk: Chunk) -> None:
        self._add({"type": "step-start"})

    def nothing(self, _chunk: Chunk) -> None:
        """Leave the message as it is."""

    def data(self, chunk: Chunk) -> None:
        for part in self.found:
            if part["type"] == chunk["type"] and part["id"] == chunk["id"]:
                part["data"] = chunk["data"]
                return
        self._add({name: chunk[name] for name in ("type", "id", "data")})

    def call(self, chunk: Chunk) -> None:
        name = chunk["toolName"]
        kind: Part = {"type": "dynamic-tool", "toolName": name} if chunk.get("dynamic") else {"type": f"tool-{name}"}
        part = self._tools.get(chunk["toolCallId"]) or self._add({**kind, "toolCallId": chunk["toolCallId"]})
        self._tools[chunk["toolCallId"]] = part
        part |= {"state": "input-available", "input": chunk["input"]}
        if chunk["type"] == "tool-input-error":
            part |= {"state": "output-error", "errorText": chunk["errorText"]}

    def request(self, chunk: Chunk) -> None:
        part = self._asked[chunk["approvalId"]] = self._tools[chunk["toolCallId"]]
        names = {
            "approvalId": "id",
            "approvalDescriptor": "descriptor",
            "reason": "requestReason",
            "isAutomatic": "isAutomatic",
            "signature": "signature",
        }
        told = {ours: chunk[theirs] for theirs, ours in names.items() if theirs in chunk}
        part |= {"state": "approval-requested", "approval": told}

    def response(self, chunk: Chunk) -> None:
        part = self._asked[chunk["approvalId"]]
        part["state"] = "approval-responded"
        part["approval"] |= {name: chunk[name] for name in ("approved", "reason") if name in chunk}

    def output(self, chunk: Chunk) -> None:
        state = chunk["type"].removeprefix("tool-")
        told: Part = {name: chunk[name] for name in ("output", "errorText") if name in chunk}
        self._tools[chunk["toolCallId"]] |= {"state": state, **told}

    def _add(self, part: Part) -> Part:
        self.found.append(part)
        return part


_READERS: Final[Mapping[str, Callable[[Parts, Chunk], None]]] = {
    "text-start": Parts.begin,
    "text-delta": Parts.grow,
    "text-end": Parts.close,
    "reasoning-start": Parts.begin,
    "reasoning-delta": Parts.grow,
    "reasoning-end": Parts.close,
    "start-step": Parts.step,
    "finish-step": Parts.nothing,
    "data-notice": Parts.data,
    "data-call": Parts.data,
    "tool-input-available": Parts.call,
    "tool-input-error": Parts.call,
    "tool-approval-request": Parts.request,
    "tool-approval-response": Parts.response,
    "tool-output-available": Parts.output,
    "tool-output-error": Parts.output,
    "tool-output-denied": Parts.output,
}
