"""Signatures after the Standard Webhooks specification 1.0: HMAC-SHA256 over id, time and body.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import base64
import hmac
import secrets
from collections.abc import Iterable
from datetime import datetime

PREFIX = "whsec_"
# The specification asks for 24 to 64 bytes.
SECRET_BYTES = 32


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode("ascii")


def headers(message_id: str, at: datetime, body: bytes, keys: Iterable[str]) -> dict[str, str]:
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
