"""Hashes, signatures, passwords, and what should not be in a text."""

from typing import Any

from tools_studio.library.catalogue.shipped import ShippedTool, pure

_SECURITY: dict[str, Any] = {"group": "security", "category": "Security"}
_CRYPTO: dict[str, Any] = {"group": "security", "category": "Crypto"}
# The well-known sample from the specification's web site, which opens nothing.
_SAMPLE_TOKEN = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"  # noqa: S105
    ".eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ"
    ".SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
)

SECURITY = (
    pure(
        "hash_text",
        "Hash text",
        "Hash a text (algorithm: {args.algorithm}, text: {args.text})",
        {"text": "hello", "algorithm": "sha256"},
        tags=("hash", "checksum"),
        **_CRYPTO,
    ),
    ShippedTool(
        name="sign_text",
        title="Sign text",
        prompt_template="Sign a text (text: {args.text})",
        example={"text": "order 4711 is paid"},
        tags=("hmac", "signature"),
        capabilities={"secrets": True},
        variables=(("SIGNING_KEY", True, ""),),
        set_up="give the secret SIGNING_KEY a value",
        **_CRYPTO,
    ),
    pure("read_token", "Read token", "Read the token {args.token}", {"token": _SAMPLE_TOKEN}, tags=("jwt",), **_CRYPTO),
    pure(
        "check_password",
        "Check password",
        "Check a password (password: {args.password})",
        {"password": "Tr0ub4dor3"},
        tags=("passwords",),
        **_SECURITY,
    ),
    pure(
        "make_password",
        "Make password",
        "Make a password (length: {args.length})",
        {"length": 20},
        tags=("passwords", "chance"),
        capabilities={"random": True},
        **_SECURITY,
    ),
    pure(
        "make_uuid",
        "Make UUID",
        "Make a UUID (count: {args.count})",
        {"count": 3},
        tags=("identifiers", "chance"),
        capabilities={"random": True},
        **_SECURITY,
    ),
    pure(
        "find_secrets",
        "Find secrets",
        "Find secrets (text: {args.text})",
        {"text": "host: db.example.com\npassword: not-a-real-one"},
        tags=("leaks", "search"),
        **_SECURITY,
    ),
    pure(
        "mask_personal_data",
        "Mask personal data",
        "Mask personal data (text: {args.text})",
        {"text": "Ann (ann@example.com, +44 20 7946 0958) paid from DE89 3704 0044 0532 0130 00."},
        tags=("privacy", "gdpr"),
        **_SECURITY,
    ),
)
