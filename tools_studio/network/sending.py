"""One request and the head of its answer, with errors in words that name the place and nothing else of the URL."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from httpcore2 import ConnectError, NetworkError, ProtocolError, Response, TimeoutException

from hitlchat.sandbox.limits import in_words
from tools_studio.network.asked import Asked
from tools_studio.network.lookup import resolve
from tools_studio.network.policy import FetchPolicy
from tools_studio.network.wire import CONNECT_SECONDS, TooLarge, Wire, sent


@asynccontextmanager
async def sending(policy: FetchPolicy, asked: Asked, wire: Wire, called: str) -> AsyncIterator[Response]:
    """Resolve, check, send. Errors speak of the place as `called`.

    PermissionError: the policy forbids the place. ValueError: no answer, or one that cannot be used.
    TimeoutError: nobody takes the connection.
    """
    addresses = await resolve(policy, asked.place, called)
    try:
        async with sent(asked, addresses, wire) as response:
            yield response
    except TooLarge:
        limit = in_words(policy.max_bytes)
        raise ValueError(f"the answer of {called} is larger than the limit of {limit}") from None
    except TimeoutException:
        raise TimeoutError(f"{called} took no connection within {CONNECT_SECONDS:g} s") from None
    except (NetworkError, ProtocolError) as error:
        raise ValueError(f"{called} could not be asked: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "its TLS certificate is not valid for this name"
        cause = cause.__cause__ or cause.__context__
    return "the connection failed" if isinstance(error, ConnectError) else "the connection broke off"
