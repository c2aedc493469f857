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
from tools_studio.network.policy import FetchPolicy, Resolver, no_values, parse, place_of
from tools_studio.network.request import ToolRequest, body_of, credential_of, headers_of, method_of, seconds_of, url_of
from tools_studio.network.wire import Wire, answer_of, sending

REDIRECTS = (301, 302, 303, 307, 308)
WEBHOOK_SECONDS = 10.0
# A webhook's answer is not read: only its status counts.
WEBHOOK_BYTES = 64 * 1024


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
    sight. `timeout` is in seconds: 10 unless given, and at most what the policy has.

    Raises: PermissionError, the policy forbids it; ValueError, the request is wrong or the answer cannot be used;
    TimeoutError, no whole answer in time.
    """
    verb, target, sent = method_of(method), url_of(url, params), headers_of(headers)
    body = None if json is None else body_of(json)
    seconds = seconds_of(timeout, policy.timeout_seconds)
    policy.require_method(verb)
    request = ToolRequest(verb, target, sent, body, credential_of(policy, auth))
    request.require_room()
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await _follow(policy, request)
    except (ValueError, PermissionError, TimeoutError) as error:
        kind = next(kind for kind in (PermissionError, TimeoutError, ValueError) if isinstance(error, kind))
        is_late = kind is TimeoutError and limit.expired()
        text = f"{request.place.host} gave no whole answer within {seconds:g} s" if is_late else str(error)
        # Servers choose the hosts of their redirects, and so may write the credential there.
        raise kind(request.credential.mask.text(text) if request.credential else text) from None


async def _follow(policy: FetchPolicy, request: ToolRequest) -> dict[str, Any]:
    """Send one request after the other, each as if it were the first."""
    first, wire = request.place.host, Wire.within(policy.max_bytes)
    for left in range(policy.redirects, -1, -1):
        host = request.place.host
        async with sending(policy, request, wire, host) as response:
            is_redirect = policy.redirects and response.status_code in REDIRECTS
            location = next((value for name, value in response.headers.raw if name.lower() == b"location"), None)
            if not is_redirect or location is None:
                try:
                    return await answer_of(response, policy.max_bytes, request.credential)
                except ValueError as error:
                    raise ValueError(f"the answer of {host} {error}") from None
        if left:
            request = _redirected(policy, request, response.status_code, location)
    raise ValueError(f"{first} redirects more often than the {policy.redirects} times that this tool may follow")


def _redirected(policy: FetchPolicy, request: ToolRequest, status: int, location: bytes) -> ToolRequest:
    """Return the next request; the policy is still to be asked about its place.

    Raises: ValueError, it leads nowhere; PermissionError, it would take along what belongs to the first origin.
    """
    here = request.place
    try:
        url = parse(str(request.url.join(location.decode()))).copy_with(fragment=None)
    except (ValueError, InvalidURL):
        raise ValueError(f"{here.host} redirects to a place that is no proper url") from None
    there = place_of(url)
    if here.scheme == "https" and there.scheme == "http" and not policy.covers(there):
        raise PermissionError(f"{here.host} redirects to plain http, which is followed only to hosts listed as {there}")
    becomes_get = (status == 303 and request.method != "HEAD") or (status in (301, 302) and request.method == "POST")
    onward = (request.reading() if becomes_get else request).elsewhere(url)
    if there != here and onward.method not in ("GET", "HEAD"):
        raise PermissionError(
            f"{here.host} redirects a {onward.method} to another origin, {there}: only GET and HEAD are followed there"
        )
    policy.require_method(onward.method)
    return onward


@dataclass(frozen=True)
class Webhooks:
    """The declared `targets`, names of variables whose `value` is a URL."""

    targets: Collection[str]
    value: Resolver = field(repr=False)
    seconds: float = WEBHOOK_SECONDS

    async def send(self, target: str, data: Any) -> dict[str, int]:
        """POST `data` to the URL in the variable `target` and return `{"status"}`.

        No error holds anything of the URL. Raises: PermissionError, the target is not declared, or leads where nobody
        may reach; ValueError, it has no proper URL, or did not take the data; TimeoutError, it did not answer in time.
        """
        try:
            body = body_of(data)
        except ValueError:
            raise ValueError("webhook: data must be a JSON value") from None
        if not isinstance(target, str) or target not in self.targets:
            named = ", ".join(sorted(self.targets)) or "none"
            raise PermissionError(f"webhook: {str(target)[:64]!r} is not among the targets of this tool ({named})")
        request = ToolRequest("POST", self._url(target), {}, body)
        try:
            async with asyncio.timeout(self.seconds):
                status = await _deliver(request, f"webhook {target}")
        except PermissionError:
            raise PermissionError(f"webhook {target} leads to an address that tools may not reach") from None
        except TimeoutError:
            raise TimeoutError(f"webhook {target} gave no answer within {self.seconds:g} s") from None
        if status >= 300:
            raise ValueError(f"webhook {target} answered with status {status}: the data was not taken")
        return {"status": status}

    def _url(self, target: str) -> URL:
        try:
            found = self.value(target)
        except (LookupError, ValueError) as error:
            raise ValueError(f"webhook: {error.args[0] if error.args else target}") from None
        try:
            return parse(found).copy_with(fragment=None)
        except ValueError:
            raise ValueError(f"webhook {target}: its value is no URL such as https://hooks.example.com/in") from None


async def _deliver(request: ToolRequest, called: str) -> int:
    """Return the status. Whoever set the variable has listed its place, and may mean one of a private network."""
    address = literal(request.place.host)
    if address is not None and not (is_public(address) or is_local(address)):
        raise PermissionError(called)
    policy = FetchPolicy((str(request.place),), methods=("POST",), max_bytes=WEBHOOK_BYTES)
    async with sending(policy, request, Wire.within(policy.max_bytes), called) as response:
        return response.status_code
