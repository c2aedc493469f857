"""HTTP to untrusted servers: only to checked addresses, with bounded answers and a token that is renewed."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import lru_cache, partial
from typing import Protocol

import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp_types import CONNECTION_CLOSED

from hitlchat.outbound import guard
from hitlchat.outbound.addresses import origin_of
from hitlchat.secrets.masking import Mask
from hitlchat.upstreams.client.link import CURRENT, Link, short
from hitlchat.upstreams.client.results import Unreadable, openings, whole_characters
from hitlchat.upstreams.client.spec import VERSION, ServerSpec

# The extension of a request that must not be sent, with the reason.
NO_TOKEN = "hitlchat.no_token"  # noqa: S105  names it, and is none
# How long a stream may be silent; the calls on it have deadlines of their own.
SILENT_SECONDS = 330.0
# Overhead of one event beside its message.
FRAME_BYTES = 4096
SSE_BYTES = 1024 * 1024 - 1
SESSION = "mcp-session-id"
FAILED = 400
# The SDK sends back any name, and its session is broken if that fails.
_SESSION_NAME = re.compile(r"[\x21-\x7e]{1,4096}")


class NoToken(Exception):
    """No token can be sent, and why. `http_status`: 401 if someone has to sign in, None if waiting may help."""

    def __init__(self, reason: str, http_status: int | None = None) -> None:
        super().__init__(reason)
        self.http_status = http_status


class Tokens(Protocol):
    def hidden(self) -> tuple[str, ...]:
        """Return every secret seen so far."""

    async def current(self) -> str:
        """Return the token to send; empty if requests go without. Raises: NoToken"""

    async def renewed(self, refused: str) -> str:
        """Return another token than the one that the server has just refused. Raises: NoToken"""

    async def lacks(self, scopes: str) -> None:
        """Note missing rights, for which the server refused a request."""


class Bearer(httpx2.Auth):
    def __init__(self, tokens: Tokens, url: str) -> None:
        self._tokens, self._origin = tokens, origin_of(str(httpx2.URL(url)))

    def hidden(self) -> tuple[str, ...]:
        return self._tokens.hidden()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if origin_of(str(request.url)) != self._origin:
            yield request
            return
        try:
            token = await self._tokens.current()
            response = yield _with(request, token)
            if response.status_code == 401 and token:
                response = yield _with(request, await self._tokens.renewed(token))
        except NoToken as why:
            yield _without(request, why)
            return
        if response.status_code == 401 and token:
            yield _without(request, NoToken("the server rejects the sign-in, although it is new", 401))
        elif response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope":
            scopes = short(extract_field_from_www_auth(response, "scope") or "", 300)
            if scopes:
                await self._tokens.lacks(scopes)
            if exchange := CURRENT.get():
                wanted = f" (it asks for {scopes})" if scopes else ""
                exchange.lose(f"the sign-in does not give the right to do this{wanted}")


def masking(spec: ServerSpec, auth: httpx2.Auth | None) -> Callable[[], Mask]:
    """Return a function that returns the current mask of a connection: a renewed token is hidden too."""
    mask = lru_cache(1)(lambda hidden: Mask((*spec.hidden, *hidden)))
    return lambda: mask(auth.hidden() if isinstance(auth, Bearer) else ())


class Cut(httpx2.StreamError):
    """The rest of a response was cut off, by the server or here."""


def most_bytes(spec: ServerSpec) -> int:
    """Return how large a message may be, with its overhead. The SDK's older transport has a bound of its own."""
    wanted = spec.limits.message_bytes + FRAME_BYTES
    return min(wanted, SSE_BYTES) if spec.transport == "sse" else wanted


def client(
    link: Link,
    headers: dict[str, str] | None = None,  # noqa: ARG001
    timeout: httpx2.Timeout | None = None,  # noqa: ARG001
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    """Return a client for a transport of the SDK, whose own headers and timeout do not count."""
    return httpx2.AsyncClient(
        transport=GuardedTransport(link),
        headers={**link.spec.headers, "Accept-Encoding": "identity", "User-Agent": f"hitlchat/{VERSION}"},
        auth=auth,
        timeout=httpx2.Timeout(guard.CONNECT_SECONDS, read=SILENT_SECONDS, pool=10.0),
        trust_env=False,
        follow_redirects=False,
    )


class GuardedTransport(guard.Transport):
    def __init__(self, link: Link) -> None:
        refused = partial(guard.refusal, allow_private=link.spec.allow_private)
        super().__init__(refused, connections=guard.MOST_CONNECTIONS, on_write=_note_sent)
        self._link = link

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if isinstance(why := request.extensions.get(NO_TOKEN), NoToken):
            return self._without_token(request, why)
        if request.method == "POST" and (exchange := CURRENT.get()):
            exchange.posts += 1
        try:
            response = await super().handle_async_request(request)
        except httpx2.TransportError as error:
            return self._lost(request, guard.in_words(error))
        response.stream = _Bounded(response, self._link)
        self._heed(request, response)
        if guard.is_packed(response):
            await response.aclose()
            reason = "the answer is compressed, although this was not requested"
            if response.status_code < FAILED and (exchange := CURRENT.get()):
                exchange.fail(Unreadable(reason))
            return self._lost(request, reason)
        if (session := response.headers.get(SESSION)) is not None and not _SESSION_NAME.fullmatch(session):
            await response.aclose()
            self._link.drop("the server gave the session a name that no header can carry")
            return self._lost(request, self._link.reason)
        return response

    def _heed(self, request: httpx2.Request, response: httpx2.Response) -> None:
        """Note a status that the SDK does not report."""
        status, exchange = response.status_code, CURRENT.get()
        if request.method == "POST" or self._link.spec.transport == "sse":
            self._link.http_status = status if status >= 400 else None
            if exchange is not None and request.method == "POST":
                exchange.turned_away(status)
        if status == 404 and SESSION in request.headers and request.method != "DELETE":
            reason = "the server no longer knows this session"
            if exchange is not None and request.method == "POST":
                exchange.lose(reason, retry=True)
            # Other calls of the session may have run: wait for their answers.
            self._link.retire(reason)
        elif status >= 400 and self._is_last_post(request):
            self._link.drop(f"the server answered {status}")

    def _lost(self, request: httpx2.Request, reason: str) -> httpx2.Response:
        exchange = CURRENT.get()
        if exchange is not None and request.method != "DELETE":
            exchange.lose(reason)
        self._link.doubted.set()
        if self._is_last_post(request):
            self._link.drop(reason)
        error = {"code": CONNECTION_CLOSED, "message": self._link.hide(reason)}
        return httpx2.Response(503, request=request, json={"jsonrpc": "2.0", "id": None, "error": error})

    def _without_token(self, request: httpx2.Request, why: NoToken) -> httpx2.Response:
        """Close the connection instead of sending a request; its status then shows that a sign-in is due."""
        if why.http_status is not None:
            self._link.http_status = why.http_status
            if exchange := CURRENT.get():
                exchange.http_status = why.http_status
            self._link.retire(str(why))
        return self._lost(request, str(why))

    def _is_last_post(self, request: httpx2.Request) -> bool:
        """Return whether none can follow: the SDK's writer for the older transport ends with the first failure."""
        return self._link.spec.transport == "sse" and request.method == "POST"


class _Bounded(httpx2.AsyncByteStream):
    """The body of a response; of an event stream, each event is a message."""

    def __init__(self, response: httpx2.Response, link: Link) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        self._stream, self._status, self._link = response.stream, response.status_code, link
        kinds = response.headers.get_list("content-type")
        self._is_events = any(kind.lower().startswith("text/event-stream") for kind in kinds)
        self._most = most_bytes(link.spec)
        self._size, self._openings, self._end = 0, 0, b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts: list[bytes] = []
        try:
            async for chunk in self._stream:
                self._count(chunk)
                parts.append(chunk)
                # No character of an event continues after a line. One of another body may, which waits for its end.
                if self._is_events and (end := max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1):
                    parts[-1] = chunk[:end]
                    yield whole_characters(b"".join(parts))
                    parts = [chunk[end:]]
        except httpx2.TransportError as error:
            reason = guard.in_words(error)
            if (exchange := CURRENT.get()) in self._link.open and exchange is not None:
                exchange.lose(reason)
            self._link.doubted.set()
            raise Cut(reason) from error
        yield whole_characters(b"".join(parts))

    def _count(self, chunk: bytes) -> None:
        self._size += len(chunk)
        self._openings += openings(chunk)
        if self._is_events:
            joined = self._end + chunk
            boundary = max(joined.rfind(mark) for mark in (b"\n\n", b"\r\n\r\n", b"\r\r"))
            if boundary >= 0:
                self._size, self._openings = len(joined) - boundary, openings(joined[boundary:])
            self._end = chunk[-3:]
        if self._size > self._most:
            self._cut(f"an answer of the server is larger than {self._most:,} bytes")
        if self._openings > self._link.spec.limits.nodes:
            self._cut(f"an answer of the server has more than {self._link.spec.limits.nodes:,} parts")

    def _cut(self, reason: str) -> None:
        exchange = CURRENT.get()
        if self._status >= FAILED and exchange in self._link.open and exchange is not None:
            # A refusal is no answer of the tool.
            exchange.lose(reason)
        self._link.too_large(reason)
        raise Cut(reason)

    async def aclose(self) -> None:
        await self._stream.aclose()


def _note_sent() -> None:
    if exchange := CURRENT.get():
        exchange.sent = True


def _with(request: httpx2.Request, token: str) -> httpx2.Request:
    if token:
        request.headers["Authorization"] = f"Bearer {token}"
    return request


def _without(request: httpx2.Request, why: NoToken) -> httpx2.Request:
    request.extensions = {**request.extensions, NO_TOKEN: why}
    return request
