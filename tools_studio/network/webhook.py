"""`webhook` for tools: JSON to a URL that is kept in one of the tool's variables and that the tool never sees."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from httpx2 import URL

from hitlchat.outbound.addresses import is_local, is_public, literal
from tools_studio.network.policy import FetchPolicy, Place, Resolver, parse
from tools_studio.network.request import Asked, body_of
from tools_studio.network.wire import Wire, sending

SECONDS = 10.0
# What answers is not read: only its status counts.
ANSWER_BYTES = 64 * 1024


@dataclass(frozen=True)
class Webhooks:
    """The declared `targets`, names of variables whose `value` is a URL."""

    targets: Collection[str]
    value: Resolver = field(repr=False)
    seconds: float = SECONDS

    async def send(self, target: str, data: Any) -> dict[str, int]:
        """POST `data` to the URL in the variable `target` and return `{"status"}`.

        No error holds anything of the URL. PermissionError: the target is not declared, or leads where nobody may
        reach. ValueError: it has no proper URL, or did not take the data. TimeoutError: it did not answer in time.
        """
        body = _body(data)
        if not isinstance(target, str) or target not in self.targets:
            named = ", ".join(sorted(self.targets)) or "none"
            raise PermissionError(f"webhook: {str(target)[:64]!r} is not among the targets of this tool ({named})")
        asked = Asked("POST", _url(self.value, target), {}, body)
        _require_reachable(asked.place, target)
        try:
            async with asyncio.timeout(self.seconds):
                status = await _delivered(asked, target)
        except PermissionError:
            raise _unreachable(target) from None
        except TimeoutError:
            raise TimeoutError(f"webhook {target} gave no answer within {self.seconds:g} s") from None
        if status >= 300:
            raise ValueError(f"webhook {target} answered with status {status}: the data was not taken")
        return {"status": status}


async def _delivered(asked: Asked, target: str) -> int:
    """The status; whoever keeps the variable has named the place by it."""
    policy = FetchPolicy((str(asked.place),), methods=("POST",), max_bytes=ANSWER_BYTES)
    async with sending(policy, asked, Wire.within(policy.max_bytes), f"webhook {target}") as response:
        return response.status


def _body(data: Any) -> bytes:
    try:
        return body_of(data)
    except ValueError:
        raise ValueError("webhook: data must be a JSON value") from None


def _url(value: Resolver, target: str) -> URL:
    try:
        found = value(target)
    except (LookupError, ValueError) as error:
        raise ValueError(f"webhook: {error.args[0] if error.args else target}") from None
    try:
        return parse(found).copy_with(fragment=None)
    except ValueError:
        raise ValueError(f"webhook {target}: its value is no URL such as https://hooks.example.com/in") from None


def _require_reachable(place: Place, target: str) -> None:
    """An address may be the one of a private network, if it is plainly that."""
    address = literal(place.host)
    if address is not None and not (is_public(address) or is_local(address)):
        raise _unreachable(target)


def _unreachable(target: str) -> PermissionError:
    return PermissionError(f"webhook {target} leads to an address that tools may not reach")
