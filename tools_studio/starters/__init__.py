"""What a new tool can begin as: small whole tools, each of which passes its check and its test as it is."""

from tools_studio.starters.outside import OUTSIDE
from tools_studio.starters.plain import PLAIN
from tools_studio.starters.starter import Starter

STARTERS: tuple[Starter, ...] = (*PLAIN, *OUTSIDE)

__all__ = ["STARTERS", "Starter"]
