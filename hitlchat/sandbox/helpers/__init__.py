"""Modules that tools can import without a capability, beside those of the interpreter: as far as their work is bounded.

Their functions are below, then their names, and advice where one is missed.
"""

import calendar
import difflib
import heapq
import hmac
import html
import re
import secrets
import statistics
import string
import textwrap
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from typing import Any
from urllib import parse
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic_monty import ExternalModule

from hitlchat.sandbox.importable import HelperModule

_MISSING = (
    re.compile(r"cannot import name '(?P<member>\w+)' from '(?P<module>[\w.]+)'"),
    re.compile(r"module '(?P<module>[\w.]+)' has no attribute '(?P<member>\w+)'"),
    re.compile(r"Module `(?P<module>[\w.]+)` has no member `(?P<member>\w+)`"),
)


def monthrange(year: int, month: int) -> tuple[int, int]:
    first, days = calendar.monthrange(year, month)
    return int(first), days


def weekday(year: int, month: int, day: int) -> int:
    return int(calendar.weekday(year, month, day))


def convert(moment: datetime, zone: str) -> datetime:
    """The same moment on the clocks of `zone`. ValueError: `moment` has no zone of its own."""
    if _moment(moment).tzinfo is None:
        raise ValueError("convert() takes a moment with a time zone: zones.attach(moment, zone) gives it one")
    return moment.astimezone(_zone(zone))


def attach(moment: datetime, zone: str, fold: int = 0) -> datetime:
    """The moment when the clocks of `zone` show `moment`; with `fold=1` the later one, where they show it twice.

    ValueError: they never show it.
    """
    if _moment(moment).tzinfo is not None:
        raise ValueError("attach() takes a moment without a time zone: zones.convert(moment, zone) changes the zone")
    if fold not in (0, 1):
        raise ValueError("attach() takes fold=0 or fold=1")
    attached = moment.replace(tzinfo=_zone(zone), fold=fold)
    if attached.astimezone(UTC).astimezone(_zone(zone)).replace(tzinfo=None, fold=0) != moment.replace(fold=0):
        raise ValueError(f"{moment:%Y-%m-%d %H:%M:%S} does not exist in {zone}: the clocks are put forward over it")
    return attached


def offset(moment: datetime, zone: str) -> timedelta:
    """Return how far the clocks of `zone` are ahead of UTC at that moment."""
    return convert(moment, zone).utcoffset() or timedelta()


def abbreviation(moment: datetime, zone: str) -> str:
    """Return what people there call their time at that moment, such as CEST."""
    return convert(moment, zone).tzname() or ""


def names(prefix: str = "") -> list[str]:
    return [name for name in _all_names() if name.startswith(prefix)]


@cache
def _all_names() -> list[str]:
    return sorted(available_timezones())


def _moment(value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise TypeError(f"zones take a datetime, not {type(value).__name__}")
    return value


def _zone(name: Any) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError, AttributeError):
        raise ValueError(f"{name!r} is not a time zone name such as Europe/Berlin") from None


DAYS = "MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY"
CALENDAR = HelperModule(
    "calendar",
    {
        "isleap": calendar.isleap,
        "leapdays": calendar.leapdays,
        "monthcalendar": calendar.monthcalendar,
        "monthrange": monthrange,
        "timegm": calendar.timegm,
        "weekday": weekday,
    },
    {
        **{day: number for number, day in enumerate(DAYS.split())},
        **{name: list(getattr(calendar, name)) for name in ("day_abbr", "day_name", "month_abbr", "month_name")},
    },
)
ZONES = HelperModule(
    "zones",
    {"abbreviation": abbreviation, "attach": attach, "convert": convert, "names": names, "offset": offset},
)


MOST_VALUES = 20_000
MOST_CUTS = 1000


def _bounded(name: str) -> Any:
    function = getattr(statistics, name)

    def bounded(data: Any, *args: Any, **kwargs: Any) -> Any:
        given = [data, *args, *kwargs.values()]
        if any(isinstance(each, (list, tuple, set, frozenset, dict)) and len(each) > MOST_VALUES for each in given):
            raise ValueError(f"{name}() takes at most {MOST_VALUES} values")
        value = function(data, *args, **kwargs)
        if isinstance(value, Fraction):
            return float(value)
        return value

    return bounded


def quantiles(data: Iterable[Any], *, n: int = 4, method: Any = "exclusive") -> Any:
    if isinstance(n, int) and n > MOST_CUTS:
        raise ValueError(f"quantiles() cuts into at most {MOST_CUTS} parts")
    return _quantiles(data, n=n, method=method)


_quantiles = _bounded("quantiles")
_OF_STATISTICS = (
    "correlation covariance fmean geometric_mean harmonic_mean linear_regression mean median median_grouped "
    "median_high median_low mode multimode pstdev pvariance stdev variance"
)

STATISTICS = HelperModule(
    "statistics",
    {name: _bounded(name) for name in _OF_STATISTICS.split()} | {"quantiles": quantiles},
)


def merge(*iterables: Iterable[Any], reverse: bool = False) -> list[Any]:
    return list(heapq.merge(*iterables, reverse=reverse))


def nlargest(n: int, iterable: Iterable[Any]) -> list[Any]:
    return heapq.nlargest(n, iterable)


def nsmallest(n: int, iterable: Iterable[Any]) -> list[Any]:
    return heapq.nsmallest(n, iterable)


HEAPQ = HelperModule(
    "heapq",
    {"merge": merge, "nlargest": nlargest, "nsmallest": nsmallest},
)


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
)
SECRETS = HelperModule(
    "secrets",
    {
        "choice": secrets.choice,
        "compare_digest": hmac.compare_digest,
        "randbelow": secrets.randbelow,
        "randbits": randbits,
        "token_bytes": token_bytes,
        "token_hex": token_hex,
        "token_urlsafe": token_urlsafe,
    },
    chance=frozenset(["choice", "randbelow", "randbits", "token_bytes", "token_hex", "token_urlsafe"]),
)
SPACES = ("NAMESPACE_DNS", "NAMESPACE_OID", "NAMESPACE_URL", "NAMESPACE_X500")
UUID = HelperModule(
    "uuid",
    {"UUID": parsed, "uuid3": uuid3, "uuid4": uuid4, "uuid5": uuid5},
    {name: str(getattr(uuid, name)) for name in SPACES},
    chance=frozenset(["uuid4"]),
)


WRAPPED_CHARS = 64 * 1024
INDENT_CHARS = 1000
INDENTED_CHARS = 4 * 1024 * 1024
TAB_SIZE = 100


def wrap(text: str, width: int = 70, **options: Any) -> list[str]:
    return textwrap.wrap(_wrappable(text, options), width, **options)


def fill(text: str, width: int = 70, **options: Any) -> str:
    return textwrap.fill(_wrappable(text, options), width, **options)


def shorten(text: str, width: int, **options: Any) -> str:
    return textwrap.shorten(_wrappable(text, options), width, **options)


def dedent(text: str) -> str:
    # the common indent becomes a pattern
    if isinstance(text, str) and re.search(rf"^[ \t]{{{INDENT_CHARS + 1}}}", text, re.MULTILINE):
        raise ValueError(f"dedent() takes lines that are indented by at most {INDENT_CHARS} characters")
    return textwrap.dedent(text)


def indent(text: str, prefix: str) -> str:
    if isinstance(text, str) and isinstance(prefix, str) and (text.count("\n") + 1) * len(prefix) > INDENTED_CHARS:
        raise ValueError(f"indent() adds at most {INDENTED_CHARS} characters")
    return textwrap.indent(text, prefix)


def _wrappable(text: str, options: dict[str, Any]) -> str:
    if isinstance(text, str) and len(text) > WRAPPED_CHARS:
        raise ValueError(f"textwrap takes texts of at most {WRAPPED_CHARS} characters")
    if any(isinstance(value, str) and len(value) > INDENT_CHARS for value in options.values()):
        raise ValueError(f"textwrap takes indents and placeholders of at most {INDENT_CHARS} characters")
    if isinstance(size := options.get("tabsize", 8), int) and size > TAB_SIZE:
        raise ValueError(f"textwrap takes a tabsize of at most {TAB_SIZE}")
    return text


HTML = HelperModule("html", {"escape": html.escape, "unescape": html.unescape})
CONSTANTS = "ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits printable punctuation whitespace"
STRING = HelperModule(
    "string", {"capwords": string.capwords}, {name: getattr(string, name) for name in CONSTANTS.split()}
)
TEXTWRAP = HelperModule(
    "textwrap", {"dedent": dedent, "fill": fill, "indent": indent, "shorten": shorten, "wrap": wrap}
)


# Comparisons in the worst case; about three seconds of work.
MOST_COMPARISONS = 40_000_000


def unified_diff(a: Sequence[str], b: Sequence[str], *args: Any, **kwargs: Any) -> list[str]:
    _bound("unified_diff", [(a, b)])
    return list(difflib.unified_diff(a, b, *args, **kwargs))


def context_diff(a: Sequence[str], b: Sequence[str], *args: Any, **kwargs: Any) -> list[str]:
    _bound("context_diff", [(a, b)])
    return list(difflib.context_diff(a, b, *args, **kwargs))


def get_close_matches(word: Any, possibilities: Any, n: int = 3, cutoff: float = 0.6) -> list[Any]:
    if isinstance(possibilities, (list, tuple, set, frozenset, dict)):
        _bound("get_close_matches", [(each, word) for each in possibilities])
    return difflib.get_close_matches(word, possibilities, n, cutoff)


def _bound(name: str, pairs: list[tuple[Any, Any]]) -> None:
    """ValueError: too much work in the worst case, in which every match is found alone, among all that could match."""
    if sum(_comparisons(a, b) for a, b in pairs) > MOST_COMPARISONS:
        raise ValueError(f"{name}(): the texts are too long or too repetitive; compare smaller parts")


def _comparisons(a: Any, b: Any) -> int:
    if not isinstance(a, (str, list, tuple)) or not isinstance(b, (str, list, tuple)):
        return 0
    counts = Counter(b)
    # what difflib leaves out as too common
    popular = len(b) // 100 + 1 if len(b) >= 200 else len(b)
    matching = sum(count for each in a if (count := counts[each]) <= popular)
    return (len(a) + matching) * min(len(a), len(b))


DIFFLIB = HelperModule(
    "difflib",
    {"context_diff": context_diff, "get_close_matches": get_close_matches, "unified_diff": unified_diff},
)


def urlencode(query: Any, doseq: bool = False, safe: str = "", encoding: Any = None, errors: Any = None) -> str:
    return parse.urlencode(query, doseq, safe, encoding, errors)


def parts(url: str) -> dict[str, Any]:
    """Everything about an address, `host` and `port` among it."""
    if not isinstance(url, str):
        raise TypeError(f"parts() takes a text, not {type(url).__name__}")
    found = parse.urlsplit(url)
    return {
        "scheme": found.scheme,
        "username": found.username,
        "password": found.password,
        "host": found.hostname,
        "port": found.port,
        "path": found.path,
        "query": dict(parse.parse_qsl(found.query, keep_blank_values=True)),
        "fragment": found.fragment,
    }


_OF_PARSE = (
    "parse_qs parse_qsl quote quote_from_bytes quote_plus unquote unquote_plus unquote_to_bytes urldefrag urljoin "
    "urlparse urlsplit urlunparse urlunsplit"
)

PARSE = HelperModule(
    "urllib.parse", {name: getattr(parse, name) for name in _OF_PARSE.split()} | {"urlencode": urlencode}
)
URLS = HelperModule("urls", {"parts": parts})

ALL = (CALENDAR, DIFFLIB, HEAPQ, HMAC, HTML, SECRETS, STATISTICS, STRING, TEXTWRAP, URLS, PARSE, UUID, ZONES)
BY_NAME: Mapping[str, HelperModule] = {module.name: module for module in ALL}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    f"{module.name}.{name}": function for module in ALL for name, function in module.functions.items()
}


def modules(powers: frozenset[str] | None) -> dict[str, ExternalModule]:
    """Return the modules by the names that tools import; with `powers`, as they are declared to the type checker."""
    found = {module.name: module.external(powers) for module in ALL}
    return {"urllib": ExternalModule({"parse": found.pop("urllib.parse")}), **found}


def refused(name: str, powers: frozenset[str]) -> str | None:
    """Return why the function of this dotted name may not be called, if it may not."""
    module, _, member = name.rpartition(".")
    if member in BY_NAME[module].chance and "random" not in powers:
        return f"{name} is not granted to this tool: switch on the capability 'random'"
    return None


def missing(message: str) -> str | None:
    """Return why a helper module lacks what `message` names, and what it offers; None if that is not what it says."""
    for pattern in _MISSING:
        if (found := pattern.search(message)) and (module := BY_NAME.get(found["module"])):
            if found["member"] in module.chance:
                return refused(f"{module.name}.{found['member']}", frozenset())
            offer = f"{module.name} offers {', '.join(module.names)}"
            return f"{module.name}.{found['member']} does not exist in tools; {offer}"
    return None
