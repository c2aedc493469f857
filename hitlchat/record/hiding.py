"""Secrets in what is exported (SR-44): found by how they look, since arguments hold whatever a model wrote.

A value that holds one is kept back as a whole: its hash stands for it, so that the seal still fits, with how the rest
of it reads beside it. The record itself keeps what was said; an export goes further than that. What looks like nothing
in particular is not found.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from hitlchat.gate import secrecy
from hitlchat.masking import HIDDEN as DOTS
from hitlchat.masking import Mask
from hitlchat.record.commitment import HIDDEN, READS, SaltOf, below, node

# What names a secret, in keys of objects, headers, assignments and command lines.
_NAME = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[-_ ]?key|access[-_ ]?key|private[-_ ]?key|client[-_ ]?secret"
    r"|credentials?|auth(?:orization)?|cookie|session[-_ ]?id|signature)"
)
_SECRET_KEY = re.compile(rf"(?:^|[^a-z]){_NAME}s?(?:$|[^a-z])", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_KEYS_BY_SIGHT = (
    r"(?:sk|pk|rk|ghp|gho|ghs|ghu|glpat|xox[abprs]|hf|npm|pypi)[-_][a-z0-9_-]{16,}"
    # Of any length where it begins; within a longer word bounded, as one may be made of nothing but beginnings.
    r"|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|(?:(?<![\w-])eyJ[\w-]{8,}|eyJ[\w-]{8,300})\.[\w-]{8,}(?:\.[\w-]*)?"
)
_SCHEMES = r"(?:bearer|basic|digest|negotiate)"
# Each with the part to hide as the group `secret`; each quantifier is bounded, or cannot meet what follows it.
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?P<secret>(?:(?!-----BEGIN)[\s\S]){1,8000}?)(?:-----END|\Z)",
        rf"\b{_SCHEMES}\s+(?P<secret>[a-z0-9._~+/=:-]{{6,}})",
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,200}:(?P<secret>[^\s@/]{1,200})@",
        rf"{_NAME}(?:[-_]\w{{1,20}})?[\"']?\s{{0,3}}(?:=>?|:)\s{{0,3}}[\"']?(?!{_SCHEMES}\b)(?P<secret>[^\s\"',;&•]{{3,}})",
        rf"--?(?:\w{{1,20}}-){{0,3}}{_NAME}(?:\s{{1,3}}|=)[\"']?(?P<secret>[^\s\"'•]{{3,}})",
        rf"\b(?P<secret>{_KEYS_BY_SIGHT})",
    )
)
SHORT = 100
# Most texts have nothing of all this.
_MAYBE = re.compile(rf"{_NAME}|private key|{_SCHEMES}\s|://|{_KEYS_BY_SIGHT}", re.IGNORECASE)


class Cover:
    """Hides what is secret in `values` wherever it stands: also where it is no more than a word in a sentence."""

    def __init__(self, *values: Any) -> None:
        found = {secret for value in values for secret in _secrets(value)}
        self._mask = Mask(found) if found else None

    def value(self, value: Any) -> Any:
        """The same JSON value with dots for secrets, at any depth."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {
                self.text(key): DOTS if _is_told_by_name(key, item) else self.value(item) for key, item in value.items()
            }
        return [self.value(item) for item in value] if isinstance(value, list) else value

    def text(self, text: str) -> str:
        # Also what the exports of the history hide: it does not go by one way because it is kept back on the other.
        text = secrecy.masked_text(_without_secrets(text)) if _may_hold_one(text) else text
        return self._mask.text(text) if self._mask else text

    def keep_back(self, value: Any, salt_of: SaltOf, path: str = "") -> Any:
        """`value`, which is the data of an event, with what stands for a value that is hidden, as commitment.py has it.

        Its own keys, at the top, are hitlchat's, and say nothing of what is secret.
        """
        if isinstance(value, dict):
            if any(key.startswith("$") or self.text(key) != key for key in value):
                return self._stand_in(value, salt_of, path)
            return {key: self._member(key, item, salt_of, path) for key, item in value.items()}
        if isinstance(value, list):
            return [self.keep_back(item, salt_of, f"{path}/{number}") for number, item in enumerate(value)]
        return value if self.value(value) == value else self._stand_in(value, salt_of, path)

    def _member(self, key: str, item: Any, salt_of: SaltOf, path: str) -> Any:
        where = below(path, key)
        if path and _is_told_by_name(key, item):
            return self._stand_in(item, salt_of, where, reads=DOTS)
        return self.keep_back(item, salt_of, where)

    def _stand_in(self, value: Any, salt_of: SaltOf, path: str, reads: Any = None) -> dict[str, Any]:
        shown = self.value(value) if reads is None else reads
        return {HIDDEN: node(value, salt_of, path).hex(), READS: shown}


def _may_hold_one(text: str) -> bool:
    return _is_known_to(text) if len(text) <= SHORT else _is_suspect(text)


@lru_cache(maxsize=4096)
def _is_known_to(text: str) -> bool:
    """Keys and reasons are the same in very many events."""
    return _is_suspect(text)


def _is_suspect(text: str) -> bool:
    return secrecy.may_hold_one(text) or bool(_MAYBE.search(text))


@lru_cache(maxsize=4096)
def is_name_of_secret(key: str) -> bool:
    return secrecy.is_name_of_secret(key) or bool(_SECRET_KEY.search(_CAMEL.sub("_", key)))


def _is_told_by_name(key: str, item: Any) -> bool:
    """Whether what stands under this key is secret, whatever it looks like: nothing, a switch or a count is not."""
    if item in (None, "", [], {}) or isinstance(item, bool) or not is_name_of_secret(key):
        return False
    return not (isinstance(item, int | float) and key.lower().endswith("tokens"))


def _secrets(value: Any, *, told: bool = False) -> Iterator[str]:
    """The texts in `value` that are to be hidden; with `told` all of them."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _secrets(item, told=told or _is_told_by_name(key, item))
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item, told=told)
    elif isinstance(value, str) and told:
        yield value
    elif isinstance(value, str) and _may_hold_one(value):
        yield from (match["secret"] for pattern in _PATTERNS for match in pattern.finditer(value))


def _without_secrets(text: str) -> str:
    for pattern in _PATTERNS:
        text = "".join(_parts(pattern, text))
    return text


def _parts(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    at = 0
    for match in pattern.finditer(text):
        start, end = match.span("secret")
        yield text[at:start]
        yield DOTS
        at = end
    yield text[at:]
