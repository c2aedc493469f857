"""How much is measured: enough for figures that hold, or with `--small` so little that it only shows that all works."""

from typing import TypeVar

T = TypeVar("T")

# Set before any part is imported: each asks for its sizes only once.
are_small = False


def of(usual: T, small: T) -> T:
    return small if are_small else usual
