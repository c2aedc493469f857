# Before it is published: give the secret SIGNING_KEY a value.
import hashlib

from hitl import secret

BLOCK = 64


def mac(key: bytes, message: bytes) -> str:
    """HMAC-SHA256, as RFC 2104 defines it."""
    padded = hashlib.sha256(key).digest() if len(key) > BLOCK else key
    padded = padded + b"\x00" * (BLOCK - len(padded))
    inner = hashlib.sha256(mixed(padded, 0x36) + message).digest()
    return hashlib.sha256(mixed(padded, 0x5C) + inner).hexdigest()


def mixed(key: bytes, number: int) -> bytes:
    return bytes.fromhex("".join([f"{byte ^ number:02x}" for byte in key]))


def run(text: str, expected: str = "") -> dict[str, str | bool]:
    """Sign a text with this tool's secret key (HMAC-SHA256), or check such a signature.

    Args:
        text: the text to sign, or that was signed
        expected: the signature to check, in hexadecimal digits; empty to make one
    """
    made = mac(secret("SIGNING_KEY").encode(), text.encode())
    if not expected:
        return {"signature": made}
    given = expected.strip().lower().removeprefix("sha256=")
    different = sum([a != b for a, b in zip(made, given.ljust(len(made))[: len(made)], strict=True)])
    return {"valid": different == 0 and len(given) == len(made)}
