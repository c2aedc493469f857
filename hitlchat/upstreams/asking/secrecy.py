"""Does a question ask for a secret? No server needs one in a form: MCP forbids it, and sends people to a page for it.

Found by words, however they are spelt or disguised. What is not found here is still answered by a person, who reads
whose question it is.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from hitlchat.upstreams.asking.fields import Field
from hitlchat.upstreams.judge.scan.folding import fold, words

# Wherever they stand, also in the middle of a word.
_ANYWHERE = (
    *(
        "password",
        "passwort",
        "passwd",
        "pass ?phrase",
        "pass ?code",
        "kennwort",
        "mot de passe",
        "contraseña",
        "senha",
    ),
    *("wachtwoord", "пароль", "密码", "密碼", "パスワード", "비밀번호", "secret", "credential", "mnemonic"),
    *("api ?key", "access ?key", "private ?key", "ssh ?key", "signing ?key", "encryption ?key", "session ?(?:id|key)"),
    *("(?:auth|access|api|refresh|bearer|session|id) ?token", "(?:seed|recovery) ?(?:phrase|words?|codes?|key)"),
    *("card ?number", "(?:verification|security|login|sign.?in|authenticat\\w+|authoris\\w+|authoriz\\w+) ?code"),
    *("one ?time ?(?:code|pass)", "two ?factor"),
)
_AS_WORDS = ("tokens?", "pins?", "pwd", "otp", "totp", "cvv", "cvc", "jwt", "2fa", "mfa", "bearer", "cookies?", "tan")
# A number can be no password, but it can be one of these.
_NUMERIC = ("pins?", "otp", "totp", "cvv", "cvc", "2fa", "tan", "pass ?code", "card ?number")
_NUMERIC_ANYWHERE = ("(?:verification|security|login|sign.?in|authenticat\\w+) ?code", "one ?time ?code")


def _pattern(anywhere: Iterable[str], as_words: Iterable[str]) -> re.Pattern[str]:
    # Folded as the texts will be.
    parts = [fold(each).text for each in anywhere]
    return re.compile(f"{'|'.join(parts)}|\\b(?:{'|'.join(as_words)})\\b")


_SECRET = _pattern((*_ANYWHERE, *_NUMERIC_ANYWHERE), (*_AS_WORDS, *_NUMERIC)).pattern
# “Do not give us your PIN”: nothing but such words may stand between, so that only this is taken for a warning.
_WARNING = re.compile(
    r"\b(?:do \*{0,2}not\*{0,2}|don't|never|\*{1,2}never\*{1,2}) (?:ever )?"
    r"(?:give|enter|send|share|tell|type|provide|include|paste|use) (?:(?:us|me|them|anyone|any|your|the|a|real) )*"
    rf"(?:{_SECRET})"
)
_IN_TEXT = _pattern(_ANYWHERE, _AS_WORDS)
_IN_NUMBER = _pattern(_NUMERIC_ANYWHERE, _NUMERIC)


def secret_field(message: str, fields: Iterable[Field], schema: Mapping[str, Any]) -> str:
    """The name of the first field that seems to ask for a secret, or "" if none does.

    What is only chosen from what the server knows already is no secret. Where something can be typed in, the message
    counts too, but for a warning not to give one.
    """
    for field in fields:
        pattern = _patterns(field)
        if pattern is None:
            continue
        raw = schema.get("properties", {}).get(field.name, {})
        if raw.get("format") == "password" or raw.get("writeOnly") is True:
            return field.name
        texts = (field.name, field.title, field.description, str(raw.get("format", "")), message)
        if any(pattern.search(_WARNING.sub(" ", fold(words(text)).text)) for text in texts):
            return field.name
    return ""


def _patterns(field: Field) -> re.Pattern[str] | None:
    match field.kind:
        case "text":
            return _IN_TEXT
        case "integer" | "number":
            return _IN_NUMBER
        case _:
            return None
