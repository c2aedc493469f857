"""What is given out of the record, without what looks like a secret (SR-44). The record itself keeps it, and tools get
it, as it is.

By its looks: the names that secrets have as members of objects and in texts, headers with credentials, addresses with
a password, connection strings, private keys, and tokens with a known beginning. What looks like none of them is not
found; secrets that are kept here are masked by their value before they get on record (masking.py).
"""

import re
from typing import Any, Final

from hitlchat.masking import HIDDEN

# Without what stands between the words of a name.
_NAMED: Final = re.compile(
    r"passw(?:or)?d|passwort|passphrase|passcode|(?:^|_)pwd|secret|credential|api_?key|access_?key|private_?key|"
    r"signing_?key|encryption_?key|authorization|bearer|cookie|connection_?string|conn_?str|(?:^|_)dsn(?:_|$)|"
    r"ssh_?key|account_?key|database_?url|session_?id|(?:^|_)(?:auth|pass|jwt|otp|pin|cvv|cvc|signature)(?:_|$)|"
    r"token(?!s_?(?:used|left|per|limit|count)|i[sz])"
)
_COUNTED: Final = re.compile(r"(?:max|min|num|total|prompt|completion|input|output)_?tokens?|tokens?_?count")
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")

# Bounded, like all below: a text that was made to take long is read in no more than its length.
_WORDS: Final = (
    r"[\w.-]{0,40}(?:passw(?:or)?d|passphrase|pwd|secret|credential|api[_-]?key|access[_-]?key|"
    r"private[_-]?key|account[_-]?key|(?:auth|access|refresh|session|id)[_-]?token|(?<![a-z])token|"
    r"(?<=[_-])pass(?![a-z]))[\w.-]{0,40}"
)
_NAME: Final = rf"(?<![\w.-]){_WORDS}"
_BEGINNINGS: Final = (
    r"[spr]k[-_][\w-]{16,}|whsec_[\w+/=-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|"
    r"A(?:KI|SI)A[0-9A-Z]{16}|"
    r"AIza[\w-]{30,}|hitl_[a-z]+_[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
)
# Each with what stays before the secret as its first group, and behind it as its second.
_IN_TEXT: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?s:(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----).*?(-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z))",
        r"((?<![\w-])(?i:bearer|basic|token)[ \t]{1,8})(?=[\w.~+/-]{0,500}[A-Z0-9=])[\w.~+/=-]{8,}()",
        r"((?<![\w-])(?i:(?:proxy-)?authorization|(?:set-)?cookie|x-[\w-]{0,40}key)[\"']?[ \t]{0,8}[:=][ \t]{0,8}"
        r"[\"']?)"
        rf"(?![ \t]*(?i:bearer|basic|token)[ \t]+{HIDDEN})[^\r\n\"']+()",
        r"((?<![\w+.-])[A-Za-z][\w+.-]{0,30}://[^\s/:@\"']{0,200}:)(?!\d{1,5}/)[^\s@\"']{1,500}(@)",
        rf"(?i:({_NAME}\\?[\"']?\s{{0,8}}(?:=>|:=|[:=])\s{{0,8}}\\?\")[^\"\\\r\n]+())",
        rf"(?i:({_NAME}[\"']?\s{{0,8}}(?:=>|:=|[:=])\s{{0,8}}')[^'\r\n]+())",
        rf"(?i:({_NAME}\s{{0,8}}(?:=>|:=|[:=])[ \t]{{0,8}})(?![\"'\\\s])[^\s;,&\"'}}]+())",
        rf"(?i:((?<![\w-])--?{_WORDS}[ \t]{{1,8}})(?![\"'-])[^\s\"']{{3,}}())",
        rf"((?<![\w-]))(?:{_BEGINNINGS})()",
    )
)
# None of them finds anything where none of these stands, which is nearly everywhere.
_SUSPECT: Final = re.compile(
    r"(?i:pass|pwd|secret|credential|key|token|bearer|basic|authorization|cookie|://|"
    r"[spr]k[-_]|whsec_|gh[pousr]_|github_pat_|glpat-|xox|akia|asia|aiza|hitl_|eyj)"
)


def may_hold_one(text: str) -> bool:
    """Whether it is worth a closer look; nearly no text is."""
    return _SUSPECT.search(text) is not None


def masked(value: Any) -> Any:
    """The same JSON value with HIDDEN in place of what looks like a secret; its keys stay."""
    if isinstance(value, str):
        return masked_text(value)
    if isinstance(value, dict):
        return {key: _hidden(item) if is_name_of_secret(key) else masked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return value


def masked_text(text: str) -> str:
    if not may_hold_one(text):
        return text
    for pattern in _IN_TEXT:
        text = pattern.sub(rf"\g<1>{HIDDEN}\g<2>", text)
    return text


def is_name_of_secret(key: str) -> bool:
    name = _HUMPS.sub("_", key).lower()
    return _NAMED.search(name) is not None and _COUNTED.fullmatch(name) is None


def _hidden(value: Any) -> Any:
    """All of it, down to each leaf; that there is nothing, or yes or no, is no secret."""
    if isinstance(value, dict):
        return {key: _hidden(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_hidden(item) for item in value]
    return value if value is None or isinstance(value, bool) or value == "" else HIDDEN
