"""One POST to a webhook, signed after Standard Webhooks 1.0, to checked addresses only; redirects are not followed.

Signatures after the Standard Webhooks specification 1.0: HMAC-SHA256 over id, time and body.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import asyncio
import base64
import hmac
import secrets
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

import httpcore2
import httpx2
from django.conf import settings
from django.utils import timezone

from hitlchat.base.visible import see
from hitlchat.notices.models import Notice, NoticeKind, Receiver
from hitlchat.notices.secrets import keys_of, url_of
from hitlchat.notices.sending.outbox import Result
from hitlchat.outbound import addresses
from hitlchat.outbound.tls import tls
from hitlchat.secrets.masking import Mask
from hitlchat.secrets.sealing import Unsealable
from hitlchat.upstreams.client.http import CheckedNetwork, NotReachable, as_sent

PREFIX = "whsec_"
# The specification asks for 24 to 64 bytes.
SECRET_BYTES = 32


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode("ascii")


def signature_headers(message_id: str, at: datetime, body: bytes, keys: Iterable[str]) -> dict[str, str]:
    """`at`: of this attempt, since receivers refuse what is old. One signature for each key that counts."""
    timestamp = str(int(at.timestamp()))
    signed = b".".join((message_id.encode(), timestamp.encode(), body))
    signatures = [f"v1,{_signature(signed, key)}" for key in keys]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(signatures),
    }


def _signature(signed: bytes, key: str) -> str:
    digest = hmac.digest(base64.b64decode(key.removeprefix(PREFIX)), signed, "sha256")
    return base64.b64encode(digest).decode("ascii")


MOST_BYTES = 16 * 1024
LONGEST_ANSWER = 200
# Looking up a name cannot be stopped: those of webhooks must not fill the threads that upstream servers need.
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="notice-lookup")


@dataclass(frozen=True)
class Sealed:
    """Of one webhook, opened for one attempt."""

    url: str
    keys: tuple[str, ...]

    @property
    def mask(self) -> Mask:
        parts = urlsplit(self.url)
        words = [word for word in (*parts.path.split("/"), parts.query, parts.path) if len(word) > 5]
        return Mask([self.url, *words, *self.keys])


async def post(notice: Notice) -> Result:
    """Send it once."""
    receiver = notice.receiver
    try:
        opened = Sealed(url_of(receiver), keys_of(receiver))
    except Unsealable as error:
        return Result(str(error), final=True)
    try:
        async with asyncio.timeout(settings.NOTICE_TIMEOUT_SECONDS), _pool(receiver) as pool:
            return await _exchange(pool, notice, opened)
    except TimeoutError:
        return Result(f"It gave no whole answer within {settings.NOTICE_TIMEOUT_SECONDS} seconds.")
    except NotReachable as error:
        return Result(f"{error}.")
    except httpcore2.ConnectError as error:
        return Result(opened.mask.text(f"It could not be reached: {error}.")[:300])
    except (httpcore2.TimeoutException, httpcore2.NetworkError):
        return Result("The connection broke.")
    except httpx2.InvalidURL:
        return Result("Its address is none.", final=True)
    except (httpcore2.ProtocolError, httpcore2.UnsupportedProtocol):
        return Result("What answers there does not speak HTTP.")


def may_be_private(receiver: Receiver) -> bool:
    return receiver.allow_private and settings.NOTICE_ALLOW_PRIVATE


def _pool(receiver: Receiver) -> httpcore2.AsyncConnectionPool:
    network = CheckedNetwork(addresses, allow_private=may_be_private(receiver), threads=_THREADS)
    return httpcore2.AsyncConnectionPool(ssl_context=tls(), max_connections=1, network_backend=network)


async def _exchange(pool: httpcore2.AsyncConnectionPool, notice: Notice, opened: Sealed) -> Result:
    body = notice.body.encode()
    headers = {
        **signature_headers(notice.message_id, timezone.now(), body, opened.keys),
        "Content-Type": "application/json",
        "User-Agent": "hitlchat",
        "Accept-Encoding": "identity",
    }
    answer = await pool.handle_async_request(as_sent(httpx2.Request("POST", opened.url, headers=headers, content=body)))
    try:
        said = await _beginning(answer) if notice.kind == NoticeKind.TEST else ""
    finally:
        await answer.aclose()
    shown = see(opened.mask.text(said)).plain[:LONGEST_ANSWER]
    return _judged(answer.status, shown)


def _judged(status: int, answer: str) -> Result:
    if 200 <= status < 300:
        return Result(status=status, answer=answer)
    if 300 <= status < 400:
        return Result("It answered with a redirect, and none is followed.", status, answer=answer)
    if status == 410:
        return Result("It answered 410 Gone: it wants no more notices.", status, final=True, gone=True, answer=answer)
    return Result(f"It answered {status}.", status, answer=answer)


async def _beginning(answer: httpcore2.Response) -> str:
    """For who looks at a test. Of other answers only the status counts, so that a long one costs nothing."""
    content = b""
    async for chunk in answer.aiter_stream():
        content += chunk
        if len(content) > MOST_BYTES:
            break
    return content[:MOST_BYTES].decode("utf-8", "replace").strip()
