"""`hmac`, `secrets` and `uuid`. What draws at random needs the capability `random`."""

import hmac
import secrets
import uuid
from collections.abc import Sequence
from typing import Any

from hitlchat.sandbox.helpers.module import HelperModule

DIGESTS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "blake2s", "sha3_256", "sha3_512")
TOKEN_BYTES = 4096


def digest(key: bytes, msg: bytes, digest: str) -> bytes:
    if digest not in DIGESTS:
        raise ValueError(f"digest() takes the name of one of {', '.join(DIGESTS)}")
    return hmac.digest(key, msg, digest)


def token_bytes(nbytes: int | None = None) -> bytes:
    return secrets.token_bytes(_few(nbytes))


def token_hex(nbytes: int | None = None) -> str:
    return secrets.token_hex(_few(nbytes))


def token_urlsafe(nbytes: int | None = None) -> str:
    return secrets.token_urlsafe(_few(nbytes))


def choice(seq: Sequence[Any]) -> Any:
    return secrets.choice(seq)


def randbelow(exclusive_upper_bound: int) -> int:
    return secrets.randbelow(exclusive_upper_bound)


def randbits(k: int) -> int:
    if isinstance(k, int) and k > TOKEN_BYTES:
        raise ValueError(f"randbits() gives at most {TOKEN_BYTES} bits")
    return secrets.randbits(k)


def _few(nbytes: int | None) -> int | None:
    if isinstance(nbytes, int) and nbytes > TOKEN_BYTES:
        raise ValueError(f"tokens have at most {TOKEN_BYTES} bytes")
    return nbytes


def parsed(hex: str) -> str:  # noqa: A002
    """The identifier in its usual form. ValueError: it is none."""
    return str(uuid.UUID(hex))


def uuid3(namespace: str, name: str) -> str:
    return str(uuid.uuid3(uuid.UUID(namespace), name))


def uuid4() -> str:
    return str(uuid.uuid4())


def uuid5(namespace: str, name: str) -> str:
    return str(uuid.uuid5(uuid.UUID(namespace), name))


HMAC = HelperModule(
    "hmac",
    {"compare_digest": hmac.compare_digest, "digest": digest},
    """def compare_digest(a: str | bytes, b: str | bytes) -> bool: ...
def digest(key: bytes, msg: bytes, digest: str) -> bytes: ...
""",
)
SECRETS = HelperModule(
    "secrets",
    {
        "choice": choice,
        "compare_digest": hmac.compare_digest,
        "randbelow": randbelow,
        "randbits": randbits,
        "token_bytes": token_bytes,
        "token_hex": token_hex,
        "token_urlsafe": token_urlsafe,
    },
    "from typing import Any, Sequence\n\ndef compare_digest(a: str | bytes, b: str | bytes) -> bool: ...\n",
    chance=frozenset(["choice", "randbelow", "randbits", "token_bytes", "token_hex", "token_urlsafe"]),
    chance_stubs="""def choice(seq: Sequence[Any]) -> Any: ...
def randbelow(exclusive_upper_bound: int) -> int: ...
def randbits(k: int) -> int: ...
def token_bytes(nbytes: int | None = None) -> bytes: ...
def token_hex(nbytes: int | None = None) -> str: ...
def token_urlsafe(nbytes: int | None = None) -> str: ...
""",
)
SPACES = ("NAMESPACE_DNS", "NAMESPACE_OID", "NAMESPACE_URL", "NAMESPACE_X500")
UUID = HelperModule(
    "uuid",
    {"UUID": parsed, "uuid3": uuid3, "uuid4": uuid4, "uuid5": uuid5},
    '''def UUID(hex: str) -> str:
    """The identifier in its usual form. Identifiers are texts here."""
def uuid3(namespace: str, name: str) -> str: ...
def uuid5(namespace: str, name: str) -> str: ...
'''
    + "".join(f"{name}: str\n" for name in SPACES),
    {name: str(getattr(uuid, name)) for name in SPACES},
    chance=frozenset(["uuid4"]),
    chance_stubs="def uuid4() -> str: ...\n",
)
