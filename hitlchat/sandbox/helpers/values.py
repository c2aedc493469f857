"""Helper modules of values: `calendar`, `zones`, `statistics`, `heapq`, `hmac`, `secrets` and `uuid`."""

import calendar
import heapq
import hmac
import secrets
import statistics
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from hitlchat.sandbox.importable import HelperModule


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
    """The names of all zones that begin with `prefix`, sorted."""
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
        raise ValueError(f"{name!r} is no time zone name such as Europe/Berlin") from None


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
        return _crossing(function(data, *args, **kwargs))

    return bounded


def quantiles(data: Iterable[Any], *, n: int = 4, method: Any = "exclusive") -> Any:
    if isinstance(n, int) and n > MOST_CUTS:
        raise ValueError(f"quantiles() cuts into at most {MOST_CUTS} parts")
    return _quantiles(data, n=n, method=method)


def _crossing(value: Any) -> Any:
    """Return a fraction as a float: tools have no fractions."""
    if isinstance(value, Fraction):
        return float(value)
    return value


_quantiles = _bounded("quantiles")
NAMES = (
    "correlation covariance fmean geometric_mean harmonic_mean linear_regression mean median median_grouped "
    "median_high median_low mode multimode pstdev pvariance stdev variance"
)

STATISTICS = HelperModule(
    "statistics",
    {name: _bounded(name) for name in NAMES.split()} | {"quantiles": quantiles},
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


def choice(seq: Sequence[Any]) -> Any:
    return secrets.choice(seq)


def randbelow(exclusive_upper_bound: int) -> int:
    return secrets.randbelow(exclusive_upper_bound)


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
        "choice": choice,
        "compare_digest": hmac.compare_digest,
        "randbelow": randbelow,
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
