"""Why a connection failed, in words for the administrator."""

from collections.abc import Callable
from typing import Final

import httpx2
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from hitlchat.upstreams.wire.child import NotStarted
from hitlchat.upstreams.wire.opening import NotAllowed
from hitlchat.upstreams.wire.texts import told, where

# What the SDK and the transports raise when a server is at fault; in groups as well.
EXPECTED: Final = (
    MCPError,
    SubscriptionLost,
    ValidationError,
    NotStarted,
    NotAllowed,
    httpx2.HTTPError,
    httpx2.StreamError,
    httpx2.SSEError,
    OSError,
    RuntimeError,
    ValueError,
)


def in_words(error: BaseException, hide: Callable[[str], str]) -> str:
    """Of a group the first that says something. `hide` takes secrets out."""
    match error:
        case BaseExceptionGroup():
            leaves = [each for each in error.exceptions if isinstance(each, Exception)] or error.exceptions
            return in_words(leaves[0], hide)
        case ValidationError():
            return f"the server's answer breaks the protocol: {where(error)}"
        case TimeoutError():
            return "the server did not answer in time"
        case httpx2.HTTPStatusError():
            return f"the server answered {error.response.status_code}"
        case _:
            return told(str(error), hide) or type(error).__name__
