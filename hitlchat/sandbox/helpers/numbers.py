"""`statistics`, and `heapq` as far as it answers instead of changing a list: tools hand over copies."""

import heapq
import statistics
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from hitlchat.sandbox.helpers.module import HelperModule

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
    """Fractions do not exist in tools."""
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
    """from typing import Any, Literal, NamedTuple, Sequence

class _Line(NamedTuple):
    slope: float
    intercept: float

def correlation(x: Sequence[float], y: Sequence[float]) -> float: ...
def covariance(x: Sequence[float], y: Sequence[float]) -> float: ...
def fmean(data: Any, weights: Any = None) -> float: ...
def geometric_mean(data: Any) -> float: ...
def harmonic_mean(data: Any, weights: Any = None) -> Any: ...
def linear_regression(x: Sequence[float], y: Sequence[float], *, proportional: bool = False) -> _Line: ...
def mean(data: Any) -> Any: ...
def median(data: Any) -> Any: ...
def median_grouped(data: Any, interval: float = 1.0) -> float: ...
def median_high(data: Any) -> Any: ...
def median_low(data: Any) -> Any: ...
def mode(data: Any) -> Any: ...
def multimode(data: Any) -> list[Any]: ...
def pstdev(data: Any, mu: Any = None) -> Any: ...
def pvariance(data: Any, mu: Any = None) -> Any: ...
def quantiles(data: Any, *, n: int = 4, method: Literal["exclusive", "inclusive"] = "exclusive") -> list[Any]: ...
def stdev(data: Any, xbar: Any = None) -> Any: ...
def variance(data: Any, xbar: Any = None) -> Any: ...
""",
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
    """from typing import Any, Iterable

def merge(*iterables: Iterable[Any], reverse: bool = False) -> list[Any]: ...
def nlargest(n: int, iterable: Iterable[Any]) -> list[Any]: ...
def nsmallest(n: int, iterable: Iterable[Any]) -> list[Any]: ...
""",
)
