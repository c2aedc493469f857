"""What a shipped tool finds around it: the real host functions, save for the store, the network and the clock."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from jsonschema import validate

from hitlchat.gate.schema import with_defaults
from hitlchat.sandbox import HostFunction, Report, run
from tools_studio import source
from tools_studio.capabilities import ALL_NAMES, Capabilities, parse
from tools_studio.language.annotations import coerce
from tools_studio.language.signature import read
from tools_studio.library.catalogue import TOOLS
from tools_studio.variables import Resolved

BY_NAME = {tool.name: tool for tool in TOOLS}
SECRETS = {"SIGNING_KEY": "key", "WEBHOOK_URL": "https://chat.example.com/hooks/4711"}


@dataclass
class World:
    """`answers` are what hosts answer, by the beginning of the address; `asked` and `posted` what went out."""

    store: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    posted: list[tuple[str, Any]] = field(default_factory=list)

    def call(self, name: str, /, **arguments: Any) -> Report:
        """Run a tool with exactly what it declares."""
        granted = parse(BY_NAME[name].capabilities)
        return self._called(name, "run", granted, arguments, self._offered(granted))

    def look(self, name: str, /, **arguments: Any) -> Report:
        """Run its preview, which may only read."""
        granted = parse(BY_NAME[name].capabilities)
        reads = granted.read_only()
        refusing = source.for_preview(granted, "group", Resolved({}, SECRETS, {}))
        return self._called(name, "preview", reads, arguments, refusing | self._offered(reads))

    def _called(
        self,
        name: str,
        entry: str,
        granted: Capabilities,
        arguments: dict[str, Any],
        grants: Mapping[str, HostFunction],
    ) -> Report:
        source = BY_NAME[name].source
        schema = read(source).input_schema
        filled = with_defaults(schema, arguments)
        validate(filled, schema)
        values = coerce(schema, filled)
        powers = granted.powers()
        return asyncio.run(run(source, values, entry=entry, grants=grants, powers=powers, offered=ALL_NAMES))

    def _offered(self, granted: Capabilities) -> dict[str, HostFunction]:
        real = source.offered(granted, "group", Resolved({}, SECRETS, {}))
        ours = {**self._keeping(), "fetch": self._fetch, "webhook": self._webhook, "now": _now}
        return {name: ours.get(name, function) for name, function in real.items()}

    def _keeping(self) -> dict[str, Callable[..., Awaitable[Any]]]:
        async def get(key: str, default: Any = None) -> Any:
            return self.store.get(key, default)

        async def put(key: str, value: Any) -> None:
            self.store[key] = value

        async def delete(key: str) -> bool:
            return self.store.pop(key, None) is not None

        async def keys(prefix: str = "") -> list[str]:
            return sorted(key for key in self.store if key.startswith(prefix))

        return {"store.get": get, "store.set": put, "store.delete": delete, "store.keys": keys}

    async def _fetch(self, url: str, method: str = "GET", **said: Any) -> dict[str, Any]:
        self.asked.append((url, said.get("params") or {}))
        assert method == "GET"
        body = next((body for start, body in self.answers.items() if url.startswith(start)), None)
        if body is None:
            return {"status": 404, "headers": {}, "text": "", "json": None}
        status, answer = body if isinstance(body, tuple) else (200, body)
        return {"status": status, "headers": {}, "text": "", "json": answer}

    async def _webhook(self, target: str, data: Any) -> dict[str, Any]:
        self.posted.append((target, data))
        return {"status": 200}


async def _now(timezone: str = "UTC") -> datetime:
    return datetime(2026, 1, 31, 23, 30, tzinfo=UTC).astimezone(ZoneInfo(timezone))


def fault(report: Report) -> str:
    """The words that a run ended with."""
    assert report.fault is not None, report.result
    return report.fault.message


def result(report: Report) -> Any:
    """What a run gave, which must not have failed."""
    assert report.fault is None, report.fault
    return report.result


def shown(report: Report, expected: Any) -> Any:
    """As much of an object as `expected` speaks of; anything else as it is."""
    found = result(report)
    if isinstance(found, dict) and isinstance(expected, dict):
        return {key: found.get(key) for key in expected}
    return found
