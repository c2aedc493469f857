import math
from collections import Counter
from typing import Annotated, Any


def quantile(ordered: list[float], share: float) -> float:
    """Between the two nearest numbers, in proportion."""
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def run(numbers: Annotated[list[float], {"minItems": 1, "maxItems": 20000}]) -> dict[str, Any]:
    """Describe a list of numbers: sum, mean, median, spread, quartiles and the commonest value.

    Args:
        numbers: the numbers
    """
    ordered = sorted(numbers)
    count = len(ordered)
    mean = math.fsum(ordered) / count
    squares = math.fsum([(number - mean) ** 2 for number in ordered])
    value, times = Counter(ordered).most_common(1)[0]
    return {
        "count": count,
        "sum": round(math.fsum(ordered), 10),
        "mean": round(mean, 10),
        "median": round(quantile(ordered, 0.5), 10),
        "minimum": ordered[0],
        "maximum": ordered[-1],
        "first_quartile": round(quantile(ordered, 0.25), 10),
        "third_quartile": round(quantile(ordered, 0.75), 10),
        "standard_deviation": round(math.sqrt(squares / (count - 1)), 10) if count > 1 else None,
        "most_common": {"value": value, "times": times},
    }
