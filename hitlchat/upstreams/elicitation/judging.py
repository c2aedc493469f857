"""Questions that no person should be tricked by: those that ask for a secret, or lead to no public address.

Does a question ask for a secret? No server needs one in a form: MCP forbids it, and sends people to a page for it.

Found by words, however they are spelt or disguised. What is not found here is still answered by a person, who reads
whose question it is.
"""

import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit
from uuid import UUID

from hitlchat.base import canonical
from hitlchat.outbound import addresses
from hitlchat.secrets.masking import HIDDEN
from hitlchat.upstreams.client import Question
from hitlchat.upstreams.elicitation.fields import Field, Unusable, fields_of
from hitlchat.upstreams.models import QuestionState, UpstreamQuestion
from hitlchat.upstreams.risk.scan import fold, words

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


LONGEST = 2000
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)+(?!\d+\Z|0x)(?:xn--[a-z0-9-]+|[a-z][a-z0-9-]*)")
# Kept for networks of one's own.
_INSIDE = re.compile(r"\.(?:local|localhost|internal|intranet|lan|home|corp|private|home\.arpa|test|invalid)\Z")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class NoLink(ValueError):
    """Nobody is sent there; why, in the middle of a sentence."""


@dataclass(frozen=True)
class Link:
    """`address` in ASCII, as a browser goes there; `host` with its port, if that is an unusual one."""

    address: str
    host: str
    is_encrypted: bool

    @property
    def before(self) -> str:
        return self.address.partition(self.host)[0]

    @property
    def after(self) -> str:
        return self.address.partition(self.host)[2]


def link(url: str) -> Link:
    """NoLink."""
    # What a browser takes for a slash, or leaves out, would lead it elsewhere than where this looks.
    if HIDDEN in url:
        raise NoLink("its address contains a secret of its own connection")
    if not url or len(url) > LONGEST or re.search(r"[\s\\<>\"`{}|^\x00-\x1f\x7f-\x9f]", url):
        raise NoLink("its address cannot be read")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode("ascii").lower(), parts.port
    except (ValueError, UnicodeError):
        raise NoLink("its address cannot be read") from None
    if not host:
        raise NoLink("its address cannot be read")
    if parts.scheme not in _DEFAULT_PORTS:
        raise NoLink("its address is none of the web")
    if "@" in parts.netloc:
        raise NoLink("its address has a user name in it")
    _check_public(host)
    shown = f"[{host}]" if ":" in host else host
    if port is not None and port != _DEFAULT_PORTS[parts.scheme]:
        shown += f":{port}"
    return Link(_in_ascii(parts, shown), shown, parts.scheme == "https")


def _check_public(host: str) -> None:
    if (literal := addresses.literal(host)) is not None:
        if not addresses.is_public(literal):
            raise NoLink("its address leads to a private network")
        return
    if addresses.is_local_name(host) or addresses.is_metadata_name(host) or _INSIDE.search(host):
        raise NoLink("its address leads to a private network")
    if len(host) > 253 or not _NAME.fullmatch(host):
        raise NoLink("its address cannot be read")


def _in_ascii(parts: SplitResult, host: str) -> str:
    path = quote(parts.path or "/", safe=string.punctuation)
    query = f"?{quote(parts.query, safe=string.punctuation)}" if parts.query else ""
    fragment = f"#{quote(parts.fragment, safe=string.punctuation)}" if parts.fragment else ""
    return f"{parts.scheme}://{host}{path}{query}{fragment}"


MOST_OPEN = 3
MOST_IN_ALL = 10
LONGEST_NAMED = 60


def obstacle(question: Question, earlier: list[str]) -> str:
    """Return why nobody is asked, in a sentence; "" if there is nothing against it.

    `earlier`: the states of those before.
    """
    if len(earlier) >= MOST_IN_ALL:
        return f"It is more than the {MOST_IN_ALL} that a call may ask."
    if earlier.count(QuestionState.OPEN) >= MOST_OPEN:
        return f"{MOST_OPEN} of its questions were open already."
    try:
        if question.url:
            link(question.url)
            return ""
        canonical.dumps(question.schema)
        fields = fields_of(question.schema)
    except canonical.NotJson:
        return "Nobody was asked, since its form cannot be read."
    except (Unusable, NoLink) as error:
        return f"Nobody was asked, since {error}."
    if name := secret_field(question.message, fields, question.schema):
        return f"It asked for a secret (“{name[:LONGEST_NAMED]}”). Never give passwords, keys or tokens to a question."
    return ""


def states_of(call_id: UUID) -> list[str]:
    return list(UpstreamQuestion.objects.filter(call_id=call_id).values_list("state", flat=True))
