"""Secrets of a sign-in at rest: sealed together with what they are for, and of no use for anything else."""

import json
from typing import Any
from uuid import UUID

from hitlchat.secrets import sealing

PURPOSE = "upstream sign-in"


class Unreadable(Exception):
    """What was sealed cannot be read, or is for something else; in words for the administrator."""


def seal(secret: Any, kind: str, server_id: UUID, place: str) -> str:
    """`secret`: a JSON value. `kind`: what it is; `place`: where alone it may be used."""
    return sealing.seal(json.dumps([kind, str(server_id), place, secret]), PURPOSE)


def unseal(token: str, kind: str, server_id: UUID, place: str) -> Any:
    """Unreadable."""
    try:
        *bound, secret = json.loads(sealing.unseal(token, PURPOSE))
    except sealing.Unsealable as error:
        raise Unreadable(
            "It was sealed with another SECRET_KEY: name that one in SECRET_KEY_FALLBACKS, or sign in again."
        ) from error
    if bound != [kind, str(server_id), place]:
        raise Unreadable("What is kept of it is for another server or another address: sign in again.")
    return secret
