"""Screening of questions: form fields; none may ask for a secret (MCP forbids it) or lead to a private network."""

import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.forms import FORMATS, BadValue, Field, Kind, Option
from hitlchat.base.sentences import translatable
from hitlchat.outbound import addresses
from hitlchat.outbound.addresses import DEFAULT_PORTS
from hitlchat.secrets.detection import seems_to_ask
from hitlchat.secrets.masking import HIDDEN
from hitlchat.upstreams.client.link import Question
from hitlchat.upstreams.models import QuestionState
from hitlchat.upstreams.risk.limits import linear

MOST_FIELDS = 20
MOST_OPTIONS = 200
LONGEST_NAME = 200
LONGEST_DESCRIPTION = 1000
LONGEST_URL = 2000
MOST_OPEN = 3
MOST_IN_ALL = 10
LONGEST_NAMED = 60
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)+(?!\d+\Z|0x)(?:xn--[a-z0-9-]+|[a-z][a-z0-9-]*)")
# Top-level names for networks of one's own.
_INSIDE = re.compile(r"\.(?:local|localhost|internal|intranet|lan|home|corp|private|home\.arpa|test|invalid)\Z")
_BOUNDS: dict[Kind, tuple[str, str]] = {
    "text": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "many": ("minItems", "maxItems"),
}
_KINDS: dict[str, Kind] = {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean"}


class Unusable(ValueError):
    """A schema makes no form, or an address must not be opened; the message is the middle of a sentence."""


def fields_of(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """Return the fields of a schema. Raises: Unusable, it is not flat, too large, or of a kind that no form has"""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise Unusable("its form cannot be read")
    if len(properties) > MOST_FIELDS:
        raise Unusable(f"its form has {len(properties):,} fields, and at most {MOST_FIELDS} are shown")
    if not all(isinstance(name, str) and name in properties for name in required):
        raise Unusable("its form requires a field that it does not have")
    return tuple(_field(name, part, required=name in required) for name, part in properties.items())


def _field(name: str, part: Any, *, required: bool) -> Field:
    if not isinstance(part, dict) or not name or len(name) > LONGEST_NAME or storable(name) != name:
        raise Unusable("its form has a field that cannot be read")
    kind, options = _kind(part)
    least, most = (_bound(part, keyword) for keyword in _BOUNDS.get(kind, ("", "")))
    pattern, form = part.get("pattern"), part.get("format")
    field = Field(
        name=name,
        kind=kind,
        title=_text(part, "title", LONGEST_NAME) or name,
        description=_text(part, "description", LONGEST_DESCRIPTION),
        required=required,
        format=form if isinstance(form, str) and form in FORMATS else "",
        # A pattern that is not checked in linear time is left to the server.
        pattern=pattern if kind == "text" and isinstance(pattern, str) and linear(pattern) else "",
        least=least,
        most=most,
        options=options,
    )
    try:
        default = part.get("default")
        return field if default is None else replace(field, default=field.check(default))
    except BadValue:
        return field


def _kind(part: Mapping[str, Any]) -> tuple[Kind, tuple[Option, ...]]:
    kind = part.get("type")
    if kind == "array":
        items = part.get("items")
        options = _options(items) if isinstance(items, dict) else None
        if options is None:
            raise Unusable("its form has a list without choices")
        return "many", options
    if kind == "string" and (options := _options(part)) is not None:
        return "one", options
    if not isinstance(kind, str) or kind not in _KINDS:
        raise Unusable("its form has a field of an unknown type")
    return _KINDS[kind], ()


def _options(part: Mapping[str, Any]) -> tuple[Option, ...] | None:
    """Return options from `enum` (with the older `enumNames`), or from `oneOf` or `anyOf` with a title each."""
    if "enum" in part:
        values, names = part["enum"], part.get("enumNames")
        titles = names if isinstance(names, list) and isinstance(values, list) and len(names) == len(values) else values
        pairs = list(zip(values, titles, strict=True)) if isinstance(values, list) else []
    elif isinstance(each := part.get("oneOf", part.get("anyOf")), list):
        pairs = [(one.get("const"), one.get("title", one.get("const"))) for one in each if isinstance(one, dict)]
    else:
        return None
    texts = [text for pair in pairs for text in pair]
    fit = all(isinstance(text, str) and len(text) <= LONGEST_NAME and storable(text) == text for text in texts)
    if not fit or not 0 < len(pairs) <= MOST_OPTIONS:
        raise Unusable("its form has a choice that cannot be shown")
    return tuple(Option(value, title) for value, title in pairs)


def _bound(part: Mapping[str, Any], keyword: str) -> float | None:
    found = part.get(keyword)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _text(part: Mapping[str, Any], keyword: str, longest: int) -> str:
    found = part.get(keyword)
    return storable(found)[:longest] if isinstance(found, str) else ""


def secret_field(message: str, fields: Iterable[Field], schema: Mapping[str, Any]) -> str:
    """Return the name of the first field that seems to ask for a secret; for what is typed, the message counts too."""
    for field in fields:
        raw = schema.get("properties", {}).get(field.name, {})
        if field.is_typed and (raw.get("format") == "password" or raw.get("writeOnly") is True):
            return field.name
        texts = (field.name, field.title, field.description, str(raw.get("format", "")), message)
        if field.is_typed and seems_to_ask(texts, number=field.is_number):
            return field.name
    return ""


@dataclass(frozen=True)
class Link:
    """An address that a person may open: `address` in ASCII, as a browser goes there; `host` with an unusual port."""

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
    """Return the address as it is shown and opened. Raises: Unusable"""
    if HIDDEN in url:
        raise Unusable("its address contains a secret of its own connection")
    # Browsers read some of these as slashes and drop others, and so would open another address than this one.
    if not url or len(url) > LONGEST_URL or re.search(r"[\s\\<>\"`{}|^\x00-\x1f\x7f-\x9f]", url):
        raise Unusable("its address cannot be read")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode("ascii").lower(), parts.port
    except (ValueError, UnicodeError):
        raise Unusable("its address cannot be read") from None
    if not host:
        raise Unusable("its address cannot be read")
    if parts.scheme not in DEFAULT_PORTS:
        raise Unusable("its address is not a web address")
    if "@" in parts.netloc:
        raise Unusable("its address has a user name in it")
    _check_public(host)
    shown = f"[{host}]" if ":" in host else host
    if port is not None and port != DEFAULT_PORTS[parts.scheme]:
        shown += f":{port}"
    path, query, fragment = (
        quote(text, safe=string.punctuation) for text in (parts.path or "/", parts.query, parts.fragment)
    )
    return Link(urlunsplit((parts.scheme, shown, path, query, fragment)), shown, parts.scheme == "https")


def _check_public(host: str) -> None:
    if (literal := addresses.literal(host)) is not None:
        if not addresses.is_public(literal):
            raise Unusable("its address leads to a private network")
        return
    if addresses.is_local_name(host) or addresses.is_metadata_name(host) or _INSIDE.search(host):
        raise Unusable("its address leads to a private network")
    if len(host) > 253 or not _NAME.fullmatch(host):
        raise Unusable("its address cannot be read")


def obstacle(question: Question, earlier: list[str]) -> str:
    """Return why nobody is asked, in a sentence, or nothing. `earlier`: the states of those before."""
    if len(earlier) >= MOST_IN_ALL:
        return translatable(f"It is more than the {MOST_IN_ALL} that a call may ask.")
    if earlier.count(QuestionState.OPEN) >= MOST_OPEN:
        return translatable(f"{MOST_OPEN} of its questions were open already.")
    try:
        if question.url:
            link(question.url)
            return ""
        canonical.dumps(question.schema)
        fields = fields_of(question.schema)
    except canonical.NotJson:
        return "Nobody was asked, since its form cannot be read."
    except Unusable as error:
        return translatable(f"Nobody was asked because {error}.")
    if name := secret_field(question.message, fields, question.schema):
        return translatable(
            f"The server asked for a secret (“{name[:LONGEST_NAMED]}”). Never enter passwords, keys or tokens."
        )
    return ""
