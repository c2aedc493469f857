"""Detection of secrets by their looks (SR-44): the one place for it, for all that leaves the record.

Looks are the names of secrets as keys and in texts, headers with credentials, addresses with a password, private keys,
and tokens with a known beginning. Other secrets are not found. The record itself and the tools have everything as it
is; secrets that are stored here are hidden by their value before that (masking.py).

Every repetition in a pattern is bounded or cannot meet what follows it, so that no text takes long to be looked at.
Needs neither Django's settings nor a database.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from hitlchat.base.lookalikes import fold, words
from hitlchat.secrets.masking import HIDDEN, Mask

# Of keys, with `_` between their words.
_KEY: Final = re.compile(
    r"passw(?:or)?d|passwort|kennwort|passphrase|passcode|(?:^|_)pwd|secret|credential|api_?key|access_?key|"
    r"account_?key|private_?key|signing_?key|encryption_?key|ssh_?key|authori[sz]ation|bearer|cookie|session_?id|"
    r"signature|connection_?string|conn_?str|database_?url|token(?!i[sz])|(?:^|_)(?:auth|pass|dsn|jwt|otp|pin|cvv|cvc)(?:_|$)"
)
_KEY_IN_DOUBT: Final = re.compile(r"(?:^|_)(?:key|session)(?:_|$)")
_COUNTED: Final = re.compile(
    r"(?:max|min|num|total|prompt|completion|input|output)_?tokens?|tokens?_?(?:used|left|per|limit|count)"
)
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")

_SCHEMES: Final = r"(?:bearer|basic|digest|negotiate|token)"
_NAME: Final = (
    r"(?:passw(?:or)?d|passwort|kennwort|passphrase|passcode|pwd|secret|credential|api[_ -]?key|access[_ -]?key|"
    r"account[_ -]?key|private[_ -]?key|session[_-]?id|signature|auth(?![a-z])|(?<=[_-])pass(?![a-z])|"
    # A number of tokens is none.
    r"token(?!i[sz])(?!s[\"']?\s{0,3}[:=]\s{0,3}\d{1,9}\b))[\w.-]{0,40}"
)
_BEGINNINGS: Final = (
    r"[spr]k[-_][\w-]{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{10,}|hf_\w{16,}|"
    r"npm_\w{16,}|pypi-[\w-]{30,}|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|whsec_[\w+/=-]{16,}|hitl_[a-z]{1,20}_[\w-]{16,}|"
    r"eyJ[\w-]{4,}\.[\w-]{4,}(?:\.[\w-]*)?"
)
_IS: Final = r"(?:=>|:=|[:=])"
# Each has the part to hide as its group `s`. Their order counts: the next one does not see what one hides.
_SURE: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?P<s>(?s:.+?))(?:(?=-----END )|\Z)",
        r"(?i:(?<![\w-])(?:(?:proxy-)?authorization|(?:set-)?cookie|x-[\w-]{0,40}(?:key|token))[\"']?[ \t]{0,8}[:=]"
        rf"[ \t]{{0,8}}[\"']?(?:{_SCHEMES}[ \t]{{1,8}})?)(?P<s>[^\r\n\"']+)",
        r"(?<![\w-])(?i:bearer|negotiate)[ \t]{1,8}(?P<s>[\w.~+/=-]{6,})",
        # A word of prose has neither capitals nor digits within it.
        r"(?<![\w-])(?i:basic|digest|token)[ \t]{1,8}(?P<s>(?=[\w.~+/-]{0,500}[A-Z0-9=])[\w.~+/=-]{6,})",
        # Of `host:8080/path@x` the number is a port.
        r"(?<![\w+.-])[A-Za-z][\w+.-]{0,30}://[^\s/:@\"']{0,200}:(?!\d{1,5}/)(?P<s>[^\s@\"']{1,500})@",
        rf"(?i:{_NAME}\\?[\"']?\s{{0,8}}{_IS}\s{{0,8}}\\?\")(?P<s>[^\"\\\r\n]+)",
        rf"(?i:{_NAME}[\"']?\s{{0,8}}{_IS}\s{{0,8}}')(?P<s>[^'\r\n]+)",
        rf"(?i:{_NAME}\s{{0,8}}{_IS}[ \t]{{0,8}}(?:{_SCHEMES}[ \t]{{1,8}})?)(?![\"'\\\s])(?P<s>[^\s;,&\"'}}]+)",
        rf"(?i:(?<![\w-])--?(?:\w{{1,20}}-){{0,3}}{_NAME}[ \t]{{1,3}})"
        r"(?P<s>\"[^\"\r\n]+|'[^'\r\n]+|[^\s\"'-][^\s\"']*)",
        rf"(?<![\w-])(?P<s>{_BEGINNINGS})",
    )
)
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_IN_DOUBT: Final = tuple(
    re.compile(pattern)
    for pattern in (
        # A whole heredoc: it may hold anything.
        r"(?sm:<<-?[ \t]{0,8}(?P<q>['\"]?)(?P<end>\w{1,40})(?P=q)(?P<s>[^\n]{0,500}\n.*?)(?:^\s{0,40}(?P=end)\b|\Z))",
        r"://(?P<s>[^/\s@]{1,700})@",
        rf"(?i:\b(?:key|session|otp|pin|cvv|cvc|dsn|jwt)[\"']?\s{{0,5}}{_IS}\s{{0,5}})(?P<s>[^\s,;&]+)",
        r"(?i:\b(?:bearer|basic)\s{1,5})(?P<s>[\w.~+/=-]{4,})",
        r"\b(?P<s>(?:[spr]k[-_]|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|A[KS]IA|AIza|whsec_|hitl_|eyJ)[\w.-]{6,})",
        r"(?i:\bpass(?:word|phrase|code)\s{1,5}(?:is\s{1,5})?)(?P<s>[^\s,;&]+)",
        # A long run of letters and digits mixed, save ids.
        rf"(?<![\w+/=-])(?P<s>(?!{_UUID}(?![\w-]))(?=[\w+/=-]{{0,500}}[0-9])(?=[\w+/=-]{{0,500}}[A-Za-z])[\w+/=-]{{20,}})",
    )
)
# Nothing is found in a text with none of these, as nearly all are.
_SUSPECT: Final = re.compile(
    r"(?i:pass|kennw|pwd|secret|credential|key|token|bearer|basic|digest|negotiate|auth|cookie|session|"
    r"signature)|://|[spr]k[-_]|gh[pousr]_|github_pat_|glpat-|xox|hf_|npm_|pypi-|A[KS]IA|AIza|whsec_|hitl_|eyJ"
)
# Keys and reasons are short, and the same in very many rows.
_SHORT: Final = 100


def hidden(text: str, *, in_doubt: bool = False) -> str:
    """Return `text` with HIDDEN for parts that look like a secret; with `in_doubt` also for those that may be one."""
    for pattern in _patterns(text, in_doubt):
        text = "".join(part for part, _ in _parts(pattern, text))
    return text


def is_secret(key: str, item: Any, *, in_doubt: bool = False) -> bool:
    """Return whether the value under this key is secret, by its name; an empty one, a switch or a count is not."""
    if item in (None, "", [], {}) or isinstance(item, bool) or not named(key, in_doubt=in_doubt):
        return False
    return not (isinstance(item, int | float) and key.lower().endswith("tokens"))


def named(key: str, *, in_doubt: bool = False) -> bool:
    name = _words(key) if len(key) <= _SHORT else _HUMPS.sub("_", key).lower()
    if in_doubt and _KEY_IN_DOUBT.search(name):
        return True
    return _KEY.search(name) is not None and _COUNTED.fullmatch(name) is None


class Cover:
    """Hides the secrets of `values` wherever they stand: also where one is no more than a word in a sentence."""

    def __init__(self, *values: Any) -> None:
        found = {secret for value in values for secret in _secrets(value)}
        self._mask = Mask(found) if found else None

    def value(self, value: Any) -> Any:
        """The same JSON value with HIDDEN for secrets, at any depth."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): HIDDEN if is_secret(key, item) else self.value(item) for key, item in value.items()}
        return [self.value(item) for item in value] if isinstance(value, list) else value

    def text(self, text: str) -> str:
        text = hidden(text)
        return self._mask.text(text) if self._mask else text


def _secrets(value: Any, *, by_name: bool = False) -> Iterator[str]:
    """The texts in `value` that are to be hidden; with `by_name` all of them."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _secrets(item, by_name=by_name or is_secret(key, item))
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item, by_name=by_name)
    elif isinstance(value, str) and by_name:
        yield value
    elif isinstance(value, str):
        for pattern in _patterns(value, in_doubt=False):
            parts = list(_parts(pattern, value))
            yield from (secret for _, secret in parts if secret)
            value = "".join(part for part, _ in parts)


def _patterns(text: str, in_doubt: bool) -> tuple[re.Pattern[str], ...]:
    if in_doubt:
        return (*_SURE, *_IN_DOUBT)
    suspect = _is_suspect(text) if len(text) <= _SHORT else _SUSPECT.search(text)
    return _SURE if suspect else ()


def _parts(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """Yield the text piece by piece, each with the secret for which it stands, or ""."""
    at = 0
    for match in pattern.finditer(text):
        start, end = match.span("s")
        yield text[at:start], ""
        yield HIDDEN, text[start:end]
        at = end
    yield text[at:], ""


@lru_cache(maxsize=4096)
def _is_suspect(text: str) -> bool:
    return _SUSPECT.search(text) is not None


@lru_cache(maxsize=4096)
def _words(key: str) -> str:
    return _HUMPS.sub("_", key).lower()


# Below: questions that ask a person for a secret, found by their words, however these are spelt or disguised. Others
# are still answered by a person, who reads whose question it is.
# Wherever they stand, also in the middle of a word.
_ANYWHERE = (
    *("password", "passwort", "passwd", "pass ?phrase", "pass ?code", "kennwort", "mot de passe", "contraseña"),
    *("senha", "wachtwoord", "пароль", "密码", "密碼", "パスワード", "비밀번호", "secret", "credential", "mnemonic"),
    *("api ?key", "access ?key", "private ?key", "ssh ?key", "signing ?key", "encryption ?key", "session ?(?:id|key)"),
    *("(?:auth|access|api|refresh|bearer|session|id) ?token", "(?:seed|recovery) ?(?:phrase|words?|codes?|key)"),
    *("card ?number", "(?:verification|security|login|sign.?in|authenticat\\w+|authoris\\w+|authoriz\\w+) ?code"),
    *("one ?time ?(?:code|pass)", "two ?factor"),
)
_AS_WORDS = ("tokens?", "pins?", "pwd", "otp", "totp", "cvv", "cvc", "jwt", "2fa", "mfa", "bearer", "cookies?", "tan")
# A number can be no password, but it can be one of these.
_NUMERIC = ("pins?", "otp", "totp", "cvv", "cvc", "2fa", "tan", "pass ?code", "card ?number")
_NUMERIC_ANYWHERE = ("(?:verification|security|login|sign.?in|authenticat\\w+) ?code", "one ?time ?code")


def _question_pattern(anywhere: Iterable[str], as_words: Iterable[str]) -> re.Pattern[str]:
    # Folded as the texts will be.
    parts = [fold(each).text for each in anywhere]
    return re.compile(f"{'|'.join(parts)}|\\b(?:{'|'.join(as_words)})\\b")


_ASKED = _question_pattern((*_ANYWHERE, *_NUMERIC_ANYWHERE), (*_AS_WORDS, *_NUMERIC)).pattern
# “Do not give us your PIN”: nothing but such words may stand between, so that only this is taken for a warning.
_WARNING = re.compile(
    r"\b(?:do \*{0,2}not\*{0,2}|don't|never|\*{1,2}never\*{1,2}) (?:ever )?"
    r"(?:give|enter|send|share|tell|type|provide|include|paste|use) (?:(?:us|me|them|anyone|any|your|the|a|real) )*"
    rf"(?:{_ASKED})"
)
_IN_TEXT = _question_pattern(_ANYWHERE, _AS_WORDS)
_IN_NUMBER = _question_pattern(_NUMERIC_ANYWHERE, _NUMERIC)


def seems_to_ask(texts: Iterable[str], *, number: bool = False) -> bool:
    """Return whether one of `texts` seems to ask for a secret that can be typed, but for a warning not to give one."""
    pattern = _IN_NUMBER if number else _IN_TEXT
    return any(pattern.search(_WARNING.sub(" ", fold(words(text)).text)) for text in texts)
