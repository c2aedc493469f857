"""`difflib`, as far as its work can be bounded beforehand."""

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hitlchat.sandbox.helpers.module import HelperModule

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
        raise ValueError(f"{name}(): the texts are too long or too much alike inside; compare smaller parts")


def _comparisons(a: Any, b: Any) -> int:
    if not isinstance(a, (str, list, tuple)) or not isinstance(b, (str, list, tuple)):
        return 0
    counts = Counter(b)
    # what difflib leaves out as too common
    popular = len(b) // 100 + 1 if len(b) >= 200 else len(b)
    matching = sum(count for each in a if (count := counts[each]) <= popular)
    return (len(a) + matching) * min(len(a), len(b))


_DIFF = """(
    a: Sequence[str], b: Sequence[str], fromfile: str = "", tofile: str = "", fromfiledate: str = "",
    tofiledate: str = "", n: int = 3, lineterm: str = "\\\\n",
) -> list[str]: ..."""
DIFFLIB = HelperModule(
    "difflib",
    {"context_diff": context_diff, "get_close_matches": get_close_matches, "unified_diff": unified_diff},
    f"""from typing import Sequence

def context_diff{_DIFF}
def get_close_matches(word: str, possibilities: Sequence[str], n: int = 3, cutoff: float = 0.6) -> list[str]: ...
def unified_diff{_DIFF}
""",
)
