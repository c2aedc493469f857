"""The model client: which server answers, its bytes counted before anything parses them, its errors in words."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote
from uuid import UUID

import httpx2
from django.conf import settings
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_noop

from hitlchat.agent import refusal
from hitlchat.base.canonical import storable
from hitlchat.base.sentences import translatable
from hitlchat.outbound import guard
from hitlchat.outbound.guard import NotReachable

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
# Of an answer in many small pieces so many bytes are read until others get their turn; each costs as much as some more.
TURN: Final = 4 * 2**10
PIECE_COSTS: Final = 256
_ENDS: Final = (b"\n\n", b"\r\n\r\n", b"\r\r")
_LONGEST_END: Final = 4
NO_KEY: Final = "none"
SHORTEST_SECRET: Final = 5
DEMO_PATH = "/demo-model/v1"
BEARER: Final = "Authorization"
CHAT, RESPONSES = "chat", "responses"
OPENAI: Final = ("api.openai.com", "https://api.openai.com")
LONGEST_DETAIL = 300
# How the common servers say it; there is no code that all of them use.
TOO_LONG = (
    *("context length", "context size", "context window", "too long", "maximum context", "too many tokens"),
    "maximum number of tokens",
)
TOO_LONG_CODE: Final = "context_length_exceeded"
# As servers say that they take no images, which have no code for it either.
OF_IMAGES = ("image", "vision", "multimodal", "multi-modal")
# A request that was refused for what it holds, and not for who asks or when.
REFUSED: Final = frozenset({400, 413, 415, 422})
NO_STREAM: Final = {
    CHAT: gettext_noop("The model server did not send a Chat Completions stream. Check its version."),
    RESPONSES: gettext_noop(
        "The model server did not send a Responses API stream. Check its version, or use Chat Completions."
    ),
}


class OutOfBounds(Exception):
    """The rest of the answer is not read; the message says why, and what to do."""


async def bound(response: httpx2.Response) -> None:
    """Have the body of `response` counted. A hook of the client, called before anything of the body is read."""
    response.stream = _Counted(response)


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        self._stream, self._is_packed, self._is_error = response.stream, guard.is_packed(response), response.is_error
        # A list of models is one object, and is read as such.
        self._as_it_is = response.is_error or response.request.method == "GET"
        self._all, self._event, self._end = 0, 0, b""
        self._is_whole: bool | None = None
        self._read: AsyncGenerator[bytes, None] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        self._read = self._bounded()
        return self._read

    async def _bounded(self) -> AsyncGenerator[bytes, None]:
        if self._is_packed:
            raise OutOfBounds(
                "The model server compresses its answers although it was asked not to. Turn off compression there."
            )
        turn = 0
        async for chunk in self._stream:
            for piece in (chunk[start : start + PIECE] for start in range(0, len(chunk), PIECE)):
                if self._is_error and self._all + len(piece) > LARGEST_ERROR:
                    return
                self._count(piece)
                # Some servers do not stream however they are asked: their one object becomes one event, on one line.
                begins = b""
                if self._is_whole is None and piece.strip():
                    self._is_whole = piece.lstrip().startswith((b"{", b"[")) and not self._as_it_is
                    begins = b"data: " if self._is_whole else b""
                # Within the texts of JSON there are no line breaks.
                yield begins + (piece.translate(None, b"\r\n") if self._is_whole else piece)
                turn += len(piece) + PIECE_COSTS
                if turn >= TURN:
                    turn = 0
                    await asyncio.sleep(0)
        if self._is_whole:
            yield _ENDS[0]

    def _count(self, piece: bytes) -> None:
        self._all += len(piece)
        joined = self._end + piece
        # Most pieces end where an event does.
        ends = len(joined) if joined.endswith(_ENDS) else max(map(joined.rfind, _ENDS))
        self._event = len(joined) - ends if ends >= 0 else self._event + len(piece)
        self._end = joined[-(_LONGEST_END - 1) :]
        if self._event > LARGEST_EVENT:
            raise OutOfBounds(f"One event of the model server's answer has more than {LARGEST_EVENT:,} bytes.")
        if self._all > LARGEST_ANSWER:
            raise OutOfBounds(f"The model server's answer has more than {LARGEST_ANSWER:,} bytes.")

    async def aclose(self) -> None:
        # Whoever reads no further leaves it to the garbage collector, which may find it while it is being closed.
        if self._read is not None:
            await self._read.aclose()
        await self._stream.aclose()


@dataclass(frozen=True)
class Endpoint:
    """One model at one server, with all that a request to it takes.

    `stored`: the row of an administrator, whose address is checked whenever it is connected to.
    `thinks`: its model reasons first, and takes limits by the newer name alone. `api`: which of the two it speaks.
    """

    base_url: str
    api_key: str = field(repr=False)
    model: str
    is_demo: bool = False
    stored: UUID | None = None
    key_header: str = BEARER
    allow_private: bool = False
    thinks: bool = False
    parallel_calls: bool = True
    api: str = CHAT

    @property
    def name(self) -> str:
        return f"{self.model} at {self.shown_url}"

    @property
    def reader(self) -> str:
        """Return who can read what it adds to its answers: one model at one server, by one API."""
        return f"{self.name} by {self.api}" if self.api != CHAT else self.name

    @property
    def shown_url(self) -> str:
        """Return the address for people who chat, without the name and password that some operators put there."""
        scheme, _, rest = self.base_url.rpartition("://")
        authority, slash, path = rest.partition("/")
        shown = authority.rpartition("@")[2] + slash + path.partition("?")[0].partition("#")[0]
        return (f"{scheme}://{shown}" if scheme else shown) or "api.openai.com"

    @property
    def has_key(self) -> bool:
        return self.api_key != NO_KEY

    @property
    def limit_name(self) -> str:
        """Return the name of the limit of an answer: OpenAI's models that think take no other than the newer one."""
        if self.api == RESPONSES:
            return "max_output_tokens"
        return "max_completion_tokens" if self.thinks or self.shown_url.startswith(OPENAI) else "max_tokens"

    def hide(self, text: str) -> str:
        """Return what a server says without what belongs to the operator: some servers repeat the key."""
        # What the address says about who asks, as written and as meant.
        userinfo = self.base_url.partition("://")[2].partition("/")[0].rpartition("@")[0]
        parts = {self.api_key, userinfo, userinfo.partition(":")[2]}
        secrets = [part for part in parts | {unquote(part) for part in parts} if len(part) >= SHORTEST_SECRET]
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "[key]")
        return text


class OwnAddress:
    """The address where this process listens, learnt from the server that runs it; the demo model is asked there."""

    def __init__(self) -> None:
        self.url = ""

    def learn(self, host: str, port: int) -> None:
        if not self.url:
            reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)  # noqa: S104
            name = f"[{reachable}]" if ":" in reachable and not reachable.startswith("[") else reachable
            self.url = f"http://{name}:{port}"


own_address = OwnAddress()


def uses_demo() -> bool:
    return not (settings.OPENAI_BASE_URL or settings.OPENAI_API_KEY)


def demo_key() -> str:
    """Return a key that only this installation's processes know."""
    return salted_hmac("hitlchat.demo-model", "key", algorithm="sha256").hexdigest()


def endpoint(model: str = "") -> Endpoint:
    """Return where to ask. `model` overrides OPENAI_MODEL; the demo model has but one."""
    if uses_demo():
        return Endpoint(f"{own_address.url}{DEMO_PATH}", demo_key(), "demo", is_demo=True)
    key = settings.OPENAI_API_KEY or NO_KEY
    model = model or settings.OPENAI_MODEL or "gpt-4.1-mini"
    return Endpoint(settings.OPENAI_BASE_URL, key, model, api=settings.OPENAI_API)


def new_client(where: Endpoint) -> "AsyncOpenAI":
    """Return a client of its own, for whoever closes it. It tries nothing again by itself."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient  # noqa: PLC0415 - loading it takes a third of a second

    timeout = httpx2.Timeout(settings.MODEL_TIMEOUT_SECONDS, connect=5.0)
    hooks = {"request": [partial(_address, where)], "response": [bound]}
    more: dict[str, Any] = {"timeout": timeout, "headers": {"Accept-Encoding": "identity"}, "event_hooks": hooks}
    if where.stored:
        refused = partial(guard.refusal, allow_private=where.allow_private)
        transport = guard.Transport(refused, connections=guard.MOST_CONNECTIONS)
        # A redirect would take the key along.
        web = httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, **more)
    else:
        # By a hook, since a transport of our own would not go by the proxies that the environment names.
        web = DefaultAsyncHttpxClient(verify=guard.tls(), **more)
    address, _, query = where.base_url.partition("?")
    return AsyncOpenAI(
        base_url=address or None,
        api_key=where.api_key,
        timeout=timeout,
        max_retries=0,
        default_query=dict(parse_qsl(query)),
        http_client=web,
    )


# One for each endpoint: it keeps its connections.
client = lru_cache(maxsize=32)(new_client)


async def _address(where: Endpoint, request: httpx2.Request) -> None:
    """Have a request carry the key as its server wants it, and nothing that is meant for another one. A hook."""
    if where.key_header != BEARER:
        del request.headers[BEARER]
        request.headers[where.key_header] = where.api_key
    if where.stored:
        # The library takes these from the environment, for the server that is named there.
        for name in ("OpenAI-Organization", "OpenAI-Project"):
            request.headers.pop(name, None)


class ModelTrouble(Exception):
    """The model could not answer; the message is for the person in the conversation.

    `refused_images`: the request held images, and without them it might have been answered. `too_long`: it held more
    than the model can read.
    """

    def __init__(self, words: str, *, refused_images: bool = False) -> None:
        super().__init__(storable(words))
        self.refused_images = refused_images
        self.too_long = False


def explain(
    error: Exception, endpoint: Endpoint, *, has_images: bool = False, tools: Sequence[str] = ()
) -> ModelTrouble:
    """Return what went wrong in words for the person; what is said of images counts where the request held some.

    `tools`: the names of those in the request, in their order, of which servers tell the place.
    """
    import openai  # noqa: PLC0415 - loading it takes a third of a second

    if not isinstance(error, openai.APIError):
        return ModelTrouble(_explained(error, endpoint))
    if name := refusal.tool_in(refusal.words(error), tools) if tools else "":
        about_tool = translatable(
            f"{_explained(error, endpoint)} The cause is the tool “{name}”. To continue, remove it under "
            "Instructions, tools and limits of the conversation, or have it unpublished."
        )
        trouble = ModelTrouble(about_tool)
    else:
        trouble = (_about_images(error, endpoint) if has_images else None) or ModelTrouble(_explained(error, endpoint))
    if isinstance(error, openai.APIStatusError):
        trouble.too_long = error.status_code in (400, 413, 422) and _too_long(error)
    else:
        trouble.too_long = error.code == TOO_LONG_CODE
    return trouble


def _about_images(error: "openai.APIError", endpoint: Endpoint) -> ModelTrouble | None:
    import openai  # noqa: PLC0415 - loading it takes a third of a second

    status = error.status_code if isinstance(error, openai.APIStatusError) else None
    if status in (401, 403, 429) or isinstance(error, openai.APIConnectionError):
        return None
    detail = _detail(error, endpoint)
    if any(words in f"{error.code} {detail}".lower() for words in OF_IMAGES):
        words = translatable(
            f"“{endpoint.model}” did not accept the images. Try again without them, or choose another model. {detail}"
        )
        return ModelTrouble(words, refused_images=True)
    if status in REFUSED:
        words = translatable(
            f"{_explained(error, endpoint)} The conversation contains images: it may work without them."
        )
        return ModelTrouble(words, refused_images=True)
    return None


def _explained(error: Exception, endpoint: Endpoint) -> str:
    import openai  # noqa: PLC0415 - loading it takes a third of a second

    match error:
        case OutOfBounds():
            return translatable(f"{error} The rest was not read.")
        case TimeoutError():
            return translatable(
                f"The model server at {endpoint.shown_url} did not finish its answer within "
                f"{settings.MODEL_ANSWER_SECONDS} seconds. Try again, or increase MODEL_ANSWER_SECONDS."
            )
        case openai.APITimeoutError():
            return translatable(
                f"The model server at {endpoint.shown_url} took too long. Try again, or check its load."
            )
        case openai.APIConnectionError():
            return _unreachable(error, endpoint)
        case openai.APIStatusError():
            return _status(error, endpoint)
        case openai.APIError() if error.code == TOO_LONG_CODE:
            return _length(error, endpoint)
        case openai.APIError():
            return translatable(f"The model server broke off its answer: {_detail(error, endpoint)} Try again.")
        case _:
            return NO_STREAM[endpoint.api]


def refused_address(error: BaseException | None) -> NotReachable | None:
    """Return why the address may not be asked, if that is what is behind the error."""
    while error is not None and not isinstance(error, NotReachable):
        error = error.__cause__
    return error


def _unreachable(error: Exception, endpoint: Endpoint) -> str:
    if (refused := refused_address(error)) is not None:
        return translatable(f"Nothing was sent to the model server at {endpoint.shown_url}: {refused}.")
    address = gettext_noop("its address on the Models page") if endpoint.stored else "OPENAI_BASE_URL"
    return translatable(
        f"The model server at {endpoint.shown_url} cannot be reached. Check that it runs and that {address} is right,"
        " then try again."
    )


def _status(error: "openai.APIStatusError", endpoint: Endpoint) -> str:
    detail = _detail(error, endpoint)
    match error.status_code:
        case 401 | 403:
            key_place = gettext_noop("its key on the Models page") if endpoint.stored else "OPENAI_API_KEY"
            return translatable(
                f"The model server did not accept the key ({error.status_code}). Check {key_place}. {detail}"
            )
        case 404 if endpoint.api == RESPONSES:
            return translatable(
                f"The model server does not know “{endpoint.model}” or this address, or has no Responses "
                f"API. Check its model and address, or use Chat Completions. {detail}"
            )
        case 404:
            place = gettext_noop("its model on the Models page") if endpoint.stored else "OPENAI_MODEL"
            return translatable(
                f"The model server does not know “{endpoint.model}” or this address. Check {place}. {detail}"
            )
        case 429:
            return translatable(
                f"The model server reports that a limit or quota is used up (429). Wait, then try again. {detail}"
            )
        case 400 | 413 | 422 if _too_long(error):
            return _length(error, endpoint)
        case status if status >= 500:
            return translatable(f"The model server failed ({status}). Try again in a moment. {detail}")
        case status:
            return translatable(f"The model server refused the request ({status}). {detail}")


def _length(error: "openai.APIError", endpoint: Endpoint) -> str:
    detail = _detail(error, endpoint)
    return translatable(f"The conversation is longer than the model can read. Start a new conversation. {detail}")


def _too_long(error: "openai.APIStatusError") -> bool:
    text = f"{error.code} {error.message} {refusal.words(error)}".lower().replace("_", " ")
    return error.status_code == 413 or any(words in text for words in TOO_LONG)


def _detail(error: "openai.APIError", endpoint: Endpoint) -> str:
    """Return what the server says, cut, and without what is secret."""
    text = endpoint.hide(" ".join((refusal.words(error) or error.message or "").split()))
    cut = text if len(text) <= LONGEST_DETAIL else text[:LONGEST_DETAIL] + "…"
    return f"It says: “{cut}”." if cut else ""
