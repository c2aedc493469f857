"""`fetch` and `webhook` for tools: a request within the tool's policy, and its redirects as far as that allows."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from httpx2 import URL, InvalidURL

from hitlchat.outbound.addresses import is_local, is_public, literal
from hitlchat.sandbox import HostFunction
from tools_studio.capabilities import Fetch
from tools_studio.network.policy import FetchPolicy, Place, Resolver, no_values, parse, place_of
from tools_studio.network.request import (
    Asked,
    Credential,
    body_of,
    credential_of,
    headers_of,
    method_of,
    seconds_of,
    url_of,
)
from tools_studio.network.wire import Wire, answer_of, sending

STATUSES = (301, 302, 303, 307, 308)


def target_of(status: int, headers: list[tuple[bytes, bytes]]) -> bytes | None:
    """Return what the answer names as the next place, if it is a redirect."""
    if status not in STATUSES:
        return None
    return next((value for name, value in headers if name.lower() == b"location"), None)


def following(policy: FetchPolicy, asked: Asked, status: int, location: bytes) -> Asked:
    """The next request; the policy is still to be asked about its place.

    ValueError: it leads nowhere. PermissionError: following it would give away what belongs to the first origin.
    """
    here = asked.place
    try:
        url = parse(str(asked.url.join(location.decode()))).copy_with(fragment=None)
    except (ValueError, InvalidURL):
        raise ValueError(f"{here.host} redirects to a place that is no proper url") from None
    there = place_of(url)
    if here.scheme == "https" and there.scheme == "http" and not policy.covers(there):
        raise PermissionError(f"{here.host} redirects to plain http, which is followed only to hosts listed as {there}")
    onward = (asked.reading() if _asks_anew(asked.method, status) else asked).elsewhere(url)
    if there != here and onward.method not in ("GET", "HEAD"):
        raise PermissionError(
            f"{here.host} redirects a {onward.method} to another origin, {there}: only GET and HEAD are followed there"
        )
    policy.require_method(onward.method)
    return onward


def _asks_anew(method: str, status: int) -> bool:
    """Return whether the next request is a GET, whatever this one was."""
    return (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST")


async def fetch(
    policy: FetchPolicy,
    url: str,
    method: str = "GET",
    *,
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    json: Any = None,
    auth: str | Mapping[str, str] | None = None,
    timeout: float | None = None,  # noqa: ASYNC109
) -> dict[str, Any]:
    """Ask `url` and return `{"status", "headers", "text", "json"}`.

    With no redirects granted they come back as they are. `auth` names a secret that is added here, out of the tool's
    sight. `timeout` is in seconds: 10 unless said, and at most what the policy has.

    PermissionError: the policy forbids it. ValueError: the request is wrong or the answer cannot be used.
    TimeoutError: no whole answer in time.
    """
    verb, target, sent = method_of(method), url_of(url, params), headers_of(headers)
    body = None if json is None else body_of(json)
    seconds = seconds_of(timeout, policy.timeout_seconds)
    policy.require_method(verb)
    credential = credential_of(policy, auth)
    asked = Asked(verb, target, sent, body, credential)
    _require_room(asked)
    try:
        return await _within(seconds, policy, asked)
    except (ValueError, PermissionError, TimeoutError) as error:
        raise _unspoken(error, credential) from None


async def _within(seconds: float, policy: FetchPolicy, asked: Asked) -> dict[str, Any]:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await _follow(policy, asked)
    except TimeoutError:
        if not limit.expired():
            raise
        raise TimeoutError(f"{asked.place.host} gave no whole answer within {seconds:g} s") from None


async def _follow(policy: FetchPolicy, asked: Asked) -> dict[str, Any]:
    """Send one request after the other, each as if it were the first."""
    first, wire = asked.place.host, Wire.within(policy.max_bytes)
    for left in range(policy.redirects, -1, -1):
        host = asked.place.host
        async with sending(policy, asked, wire, host) as response:
            location = target_of(response.status_code, response.headers.raw) if policy.redirects else None
            if location is None:
                return await _answer(response, policy, asked, host)
        if left:
            asked = following(policy, asked, response.status_code, location)
    raise ValueError(f"{first} redirects more often than the {policy.redirects} times that this tool may follow")


async def _answer(response: Any, policy: FetchPolicy, asked: Asked, host: str) -> dict[str, Any]:
    try:
        return await answer_of(response, policy.max_bytes, asked.credential)
    except ValueError as error:
        raise ValueError(f"the answer of {host} {error}") from None


def _require_room(asked: Asked) -> None:
    """ValueError: the tool sets by itself what `auth` is to add."""
    if asked.credential is None:
        return
    if twice := sorted(asked.credential.headers.keys() & asked.headers.keys()):
        raise ValueError(f"the header {twice[0]!r} is set by auth: leave it out of headers")
    if twice := sorted(asked.credential.query.keys() & asked.url.params.keys()):
        raise ValueError(f"the parameter {twice[0]!r} is set by auth: leave it out of the url and params")


def _unspoken(error: Exception, credential: Credential | None) -> Exception:
    """The same error without what the credential would give away: servers choose the hosts of their redirects."""
    said = credential.mask.text(str(error)) if credential else str(error)
    kind = next(kind for kind in (PermissionError, TimeoutError, ValueError) if isinstance(error, kind))
    return kind(said)


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
        return response.status_code


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


def grants(
    granted: Fetch | None,
    webhook_targets: Collection[str] = (),
    value: Resolver = no_values,
    *,
    read_only: bool = False,
) -> dict[str, HostFunction]:
    """Return what of the two is granted, by name. `value` finds the variables that `auth=` and `webhook` name.

    With `read_only` requests are those that read, and nothing is sent to webhooks: what an effect preview gets.
    """
    functions: dict[str, HostFunction] = {}
    if granted is not None:
        policy = FetchPolicy.of(granted, value)
        functions["fetch"] = partial(fetch, policy.read_only() if read_only else policy)
    if webhook_targets and not read_only:
        functions["webhook"] = Webhooks(frozenset(webhook_targets), value).send
    return functions
