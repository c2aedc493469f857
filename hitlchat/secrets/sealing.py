"""Secrets at rest: sealed with keys made from SECRET_KEY, one for each purpose, so that a stolen table tells nothing.

Keys are derived with HKDF (RFC 5869); what is sealed is a Fernet token (AES-128-CBC with HMAC-SHA256). After a change
of SECRET_KEY, name the old one in SECRET_KEY_FALLBACKS to go on reading what was sealed with it.
"""

import base64
import hmac
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Unsealable(Exception):
    """The text was not sealed here, or with a key that is no longer known."""


def seal(text: str, purpose: str) -> str:
    """`text` as a token that only `unseal` with the same purpose can read."""
    return _box(purpose, *_keys()).encrypt(text.encode()).decode("ascii")


def unseal(token: str, purpose: str) -> str:
    """The text that was sealed. Unsealable."""
    try:
        text = _box(purpose, *_keys()).decrypt(token.encode()).decode()
    except InvalidToken as error:
        raise Unsealable(
            "It was sealed with another SECRET_KEY: name that one in SECRET_KEY_FALLBACKS, or enter the secret again."
        ) from error
    # Decoding passes over what is no base64, and over what follows its end: another text of the same bytes is no token.
    if base64.urlsafe_b64encode(base64.urlsafe_b64decode(token)).decode("ascii") != token:
        raise Unsealable("It was changed after it was sealed.")
    return text


def anew(token: str, purpose: str) -> str:
    """`token` sealed with SECRET_KEY if an older key sealed it, else as it is. Unsealable."""
    text = unseal(token, purpose)
    try:
        _box(purpose, settings.SECRET_KEY).decrypt(token.encode())
    except InvalidToken:
        return seal(text, purpose)
    return token


def fingerprint(text: str, purpose: str) -> str:
    """The same for the same text and key, and of no use to guess the text without the key: 64 hexadecimal digits."""
    return _fingerprint(settings.SECRET_KEY, text, purpose)


def fingerprints(text: str, purpose: str) -> dict[str, str]:
    """Return the fingerprint by each key there is, by which key it is: they stay comparable once the key is another."""
    return {_fingerprint(key, "which key", purpose)[:16]: _fingerprint(key, text, purpose) for key in _keys()}


def _fingerprint(key: str, text: str, purpose: str) -> str:
    return hmac.digest(_derived(key, f"{purpose} fingerprint"), text.encode(), "sha256").hex()


def _keys() -> tuple[str, ...]:
    return settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS


@lru_cache(maxsize=16)
def _box(purpose: str, *keys: str) -> MultiFernet:
    return MultiFernet([Fernet(base64.urlsafe_b64encode(_derived(key, purpose))) for key in keys])


def _derived(key: str, purpose: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=f"hitlchat {purpose}".encode()).derive(key.encode())
