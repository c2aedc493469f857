"""The model client: which server answers, its bytes counted before anything parses them, its errors in words."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import httpx2
from django.conf import settings
from django.utils.crypto import salted_hmac

from hitlchat.outbound.tls import tls

if TYPE_CHECKING:
    import openai
    from openai import AsyncOpenAI

# One event of the stream, however many lines it has; an answer that comes in one piece is one.
LARGEST_EVENT: Final = 2 * 2**20
# Everything: of a long answer most is what surrounds its pieces.
LARGEST_ANSWER: Final = 256 * 2**20
# Of an error only the beginning is read.
LARGEST_ERROR: Final = 64 * 2**10
# Decoding that many bytes, even of the smallest events, keeps nobody else waiting.
PIECE: Final = 16 * 2**10
_ENDS: Final = (b"\n\n", b"\r\n\r\n", b"\r\r")
_LONGEST_END: Final = 4


class OutOfBounds(Exception):
    """The rest of the answer is not read; the message says why, and what to do."""


async def bound(response: httpx2.Response) -> None:
    """Have the body of `response` counted. A hook of the client, called before anything of the body is read."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Counted(response.stream, _packed(response.headers), is_error=response.is_error)


def _packed(headers: httpx2.Headers) -> str:
    """Return how the body is packed, although it was asked for as it is; empty if it is not."""
    named = headers.get("content-encoding", "").strip().lower()
    return "" if named == "identity" else named


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, packed: str, *, is_error: bool) -> None:
        self._stream, self._packed, self._is_error = stream, packed, is_error
        self._all, self._event, self._end = 0, 0, b""
        self._is_whole: bool | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._packed:
            raise OutOfBounds("The model server packs its answers although it was asked not to. Switch that off there.")
        async for chunk in self._stream:
            for piece in _pieces(chunk):
                if self._is_error and self._all + len(piece) > LARGEST_ERROR:
                    return
                self._count(piece)
                yield self._as_stream(piece)
                await asyncio.sleep(0)
        if self._is_whole:
            yield _ENDS[0]

    def _as_stream(self, piece: bytes) -> bytes:
        """Some servers do not stream however they are asked: their one object becomes one event, on one line."""
        begins = b""
        if self._is_whole is None and piece.strip():
            self._is_whole = piece.lstrip().startswith(b"{") and not self._is_error
            begins = b"data: " if self._is_whole else b""
        # Within the texts of JSON there are no line breaks.
        return begins + (piece.translate(None, b"\r\n") if self._is_whole else piece)

    def _count(self, piece: bytes) -> None:
        self._all += len(piece)
        joined = self._end + piece
        ends = max(joined.rfind(end) for end in _ENDS)
        self._event = len(joined) - ends if ends >= 0 else self._event + len(piece)
        self._end = joined[-(_LONGEST_END - 1) :]
        if self._event > LARGEST_EVENT:
            raise OutOfBounds(f"One event of the model server's answer has more than {LARGEST_EVENT:,} bytes.")
        if self._all > LARGEST_ANSWER:
            raise OutOfBounds(f"The model server's answer has more than {LARGEST_ANSWER:,} bytes.")

    async def aclose(self) -> None:
        await self._stream.aclose()


def _pieces(chunk: bytes) -> Iterator[bytes]:
    for start in range(0, len(chunk), PIECE):
        yield chunk[start : start + PIECE]


SHORTEST_SECRET = 5  # "none" is what stands for no key
DEMO_PATH = "/demo-model/v1"


@dataclass(frozen=True)
class Endpoint:
    base_url: str
    api_key: str
    model: str
    is_demo: bool = False

    @property
    def name(self) -> str:
        """Return one model at one server: what it adds to its answers is meant for no other."""
        return f"{self.model} at {self.shown_url}"

    @property
    def shown_url(self) -> str:
        """Return the address for people who chat, without the name and password that some operators put there."""
        scheme, _, rest = self.base_url.rpartition("://")
        authority, slash, path = rest.partition("/")
        shown = authority.rpartition("@")[2] + slash + path.partition("?")[0].partition("#")[0]
        return (f"{scheme}://{shown}" if scheme else shown) or "api.openai.com"

    @property
    def provider(self) -> str:
        """Return the provider's name for traces: every server that speaks its API goes by this one."""
        return "hitlchat.demo" if self.is_demo else "openai"

    @property
    def secrets(self) -> list[str]:
        """The key, and what the address says about who asks, as written and as meant; the longest first."""
        userinfo = self.base_url.partition("://")[2].partition("/")[0].rpartition("@")[0]
        parts = {self.api_key, userinfo, userinfo.partition(":")[2]}
        both = parts | {unquote(part) for part in parts}
        return sorted((part for part in both if len(part) >= SHORTEST_SECRET), key=len, reverse=True)


class OwnAddress:
    """The address where this process listens, learnt from the server that runs it; the demo model is asked there."""

    def __init__(self) -> None:
        self.base_url = ""

    def learn(self, host: str, port: int) -> None:
        if not self.base_url:
            reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)  # noqa: S104
            name = f"[{reachable}]" if ":" in reachable and not reachable.startswith("[") else reachable
            self.base_url = f"http://{name}:{port}{DEMO_PATH}"


own_address = OwnAddress()


def uses_demo() -> bool:
    return not (settings.OPENAI_BASE_URL or settings.OPENAI_API_KEY)


def demo_key() -> str:
    """Return a key that only this installation's processes know."""
    return salted_hmac("hitlchat.demo-model", "key", algorithm="sha256").hexdigest()


def endpoint(model: str = "") -> Endpoint:
    """Return where to ask. `model` overrides OPENAI_MODEL; the demo model has but one."""
    if uses_demo():
        return Endpoint(own_address.base_url, demo_key(), "demo", is_demo=True)
    key = settings.OPENAI_API_KEY or "none"
    return Endpoint(settings.OPENAI_BASE_URL, key, model or settings.OPENAI_MODEL or "gpt-4.1-mini")


@lru_cache(maxsize=8)
def client(where: Endpoint) -> "AsyncOpenAI":
    """Return one client per endpoint: it keeps its connections."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient  # noqa: PLC0415 - loading it takes a third of a second

    timeout = httpx2.Timeout(settings.MODEL_TIMEOUT_SECONDS, connect=5.0)
    # By a hook, since a transport of our own would not go by the proxies that the environment names.
    web = DefaultAsyncHttpxClient(
        timeout=timeout, verify=tls(), headers={"Accept-Encoding": "identity"}, event_hooks={"response": [bound]}
    )
    return AsyncOpenAI(
        base_url=where.base_url or None, api_key=where.api_key, timeout=timeout, max_retries=2, http_client=web
    )


LONGEST_DETAIL = 300
# How the common servers say it; there is no code that all of them use.
TOO_LONG = ("context_length", "context length", "too long", "maximum context", "too many tokens")


class ModelTrouble(Exception):
    """The model could not answer; the message is for the person in the conversation."""


def explain(error: Exception, endpoint: Endpoint) -> ModelTrouble:
    import openai  # noqa: PLC0415 - loading it takes a third of a second

    match error:
        case OutOfBounds():
            return ModelTrouble(f"{error} The rest was not read.")
        case TimeoutError():
            return ModelTrouble(
                f"The model server at {endpoint.shown_url} did not end its answer within"
                f" {settings.MODEL_ANSWER_SECONDS} seconds. Try again, or set MODEL_ANSWER_SECONDS higher."
            )
        case openai.APITimeoutError():
            return ModelTrouble(
                f"The model server at {endpoint.shown_url} took too long. Try again, or check its load."
            )
        case openai.APIConnectionError():
            return ModelTrouble(
                f"The model server at {endpoint.shown_url} cannot be reached. Check that it runs and that "
                "OPENAI_BASE_URL is right, then send the message again."
            )
        case openai.APIStatusError():
            return ModelTrouble(_status(error, endpoint))
        case openai.APIError():
            return ModelTrouble(
                f"The model server broke off its answer: {_detail(error, endpoint)} Send the message again."
            )
        case _:
            return ModelTrouble(
                "The model server sent something that is no Chat Completions stream. Check its version."
            )


def _status(error: "openai.APIStatusError", endpoint: Endpoint) -> str:
    detail = _detail(error, endpoint)
    match error.status_code:
        case 401 | 403:
            return f"The model server did not accept the key ({error.status_code}). Check OPENAI_API_KEY. {detail}"
        case 404:
            return f"The model server does not know “{endpoint.model}” or this address. Check OPENAI_MODEL. {detail}"
        case 429:
            return f"The model server says that a limit or quota is used up (429). Wait, then try again. {detail}"
        case 400 | 413 | 422 if _too_long(error):
            return f"The conversation is longer than the model can read. Start a new conversation. {detail}"
        case status if status >= 500:
            return f"The model server failed ({status}). Try again in a moment. {detail}"
        case status:
            return f"The model server refused the request ({status}). {detail}"


def _too_long(error: "openai.APIStatusError") -> bool:
    text = f"{error.code} {error.message}".lower()
    return error.status_code == 413 or any(words in text for words in TOO_LONG)


def _detail(error: "openai.APIError", endpoint: Endpoint) -> str:
    """Return what the server says, without what belongs to the operator: some servers repeat the key."""
    body = error.body if isinstance(error.body, dict) else {}
    text = " ".join(str(body.get("message") or error.message or "").split())
    for secret in endpoint.secrets:
        text = text.replace(secret, "[key]")
    cut = text if len(text) <= LONGEST_DETAIL else text[:LONGEST_DETAIL] + "…"
    return f"It says: “{cut}”." if cut else ""
