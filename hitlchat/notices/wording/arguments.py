"""Arguments as notices may show them: short, and without what looks like a secret (SR-44).

Nobody knows which arguments are secret, so names and shapes decide, and doubt hides: what notices carry is kept by
mail servers and chats for years. The call itself gets its arguments as they are.
"""

import re
from typing import Any

from hitlchat.gate import secrecy
from hitlchat.gate.visible import see
from hitlchat.masking import HIDDEN

MOST_ENTRIES = 20
LONGEST_VALUE = 200
DEEPEST = 4
# No more of a value is looked at: some shapes take the square of a text's length to be looked for.
LOOKED_AT = 1000

# Of names, wherever these stand in them, and where they are a word of it.
_WITHIN = (
    r"passw|passphrase|passcode|kennwort|secret|token|credential|bearer|authori[sz]ation|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|signing[_-]?key|ssh[_-]?key|connection[_-]?string|database[_-]?url"
)
_AS_WORD = r"pwd|auth|cookies?|session(?:[_-]?id)?|jwt|otp|pin|cvv|cvc|dsn|key"
_NAME = re.compile(rf"{_WITHIN}|(?<![a-z])(?:{_AS_WORD})(?![a-z])")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VALUE = r"(?:\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|[^\s,;&'\"]+)"
_SPELT = rf"(?:(?:{_WITHIN})[\w.-]{{0,40}}|\b(?:{_AS_WORD}))"
_HEADER = r"(?:proxy-)?authorization|(?:set-)?cookie|x-[a-z-]*(?:key|token)"
_BEGINNINGS = r"sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[a-z]|AKIA|ASIA|AIza|whsec|hitl|eyJ"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_HEREDOC = r"(<<-?[ \t]*(['\"]?)(\w+)\2)[^\n]*\n.*?(?:^\s*\3\b|\Z)"
# Each with what stays of it. The order counts: what one hides the next does not see.
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [^-]*-----.*?(?:-----END [^-]*-----|\Z)", re.DOTALL), HIDDEN),
    (re.compile(_HEREDOC, re.DOTALL | re.MULTILINE), rf"\1 {HIDDEN}"),
    (re.compile(rf"(?i)\b({_HEADER})\s*[:=]\s*[^\n]+"), rf"\1: {HIDDEN}"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{4,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"(://)[^/\s@]+@"), rf"\1{HIDDEN}@"),
    (re.compile(rf"(?i)({_SPELT}['\"]?\s{{0,5}}(?:=>|[:=])\s{{0,5}}){_VALUE}"), rf"\1{HIDDEN}"),
    (re.compile(rf"(?i)(--?[\w-]{{0,40}}?(?:{_WITHIN}|{_AS_WORD})[\w-]{{0,40}}\s+){_VALUE}"), rf"\1{HIDDEN}"),
    (re.compile(rf"(?i)\b(pass(?:word|phrase|code)\s+(?:is\s+)?){_VALUE}"), rf"\1{HIDDEN}"),
    (re.compile(rf"\b(?:{_BEGINNINGS})[\w.-]{{8,}}"), HIDDEN),
    # A long run of letters and digits mixed, save ids.
    (re.compile(rf"(?<![\w+/=-])(?!{_UUID}(?![\w-]))(?=[^\s]*[0-9])(?=[^\s]*[A-Za-z])[\w+/=-]{{20,}}"), HIDDEN),
)


def masked(arguments: dict[str, Any]) -> dict[str, Any]:
    """The same names with values that may be shown; of many, the first."""
    entries = list(arguments.items())
    found = {see(name).plain[:80]: _value(name, value, 1) for name, value in entries[:MOST_ENTRIES]}
    if len(entries) > MOST_ENTRIES:
        found["…"] = f"{len(entries) - MOST_ENTRIES} more"
    return found


def hidden(text: str) -> str:
    """`text`, which is short, without what in it looks like a secret."""
    for shape, stays in _SHAPES:
        text = shape.sub(stays, text)
    return secrecy.masked_text(text)


def _value(name: str, value: Any, depth: int) -> Any:
    if _NAME.search(_CAMEL.sub("_", name).lower()) or secrecy.is_name_of_secret(name):
        return HIDDEN
    match value:
        case str():
            return _text(value)
        case dict() | list() if depth >= DEEPEST:
            return "…"
        case dict():
            return {see(k).plain[:80]: _value(k, each, depth + 1) for k, each in list(value.items())[:MOST_ENTRIES]}
        case list():
            return [_value("", each, depth + 1) for each in value[:MOST_ENTRIES]]
        case _:
            return value


def _text(text: str) -> str:
    # Hidden before it is cut: of a secret that a cut went through, the rest would not be known again.
    looked_at = text if len(text) <= LOOKED_AT else text[:LOOKED_AT].rpartition(" ")[0]
    shown = see(hidden(looked_at)).plain
    if len(text) <= LOOKED_AT and len(shown) <= LONGEST_VALUE:
        return shown
    return f"{shown[:LONGEST_VALUE]}… ({max(0, len(text) - LONGEST_VALUE):,} more)"
