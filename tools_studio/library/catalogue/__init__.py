"""The tools that ship, group by group."""

from tools_studio.library.catalogue.places import FILES, MESSAGES, ORDERS, WEB
from tools_studio.library.catalogue.shipped import ShippedTool
from tools_studio.library.catalogue.texts import DATA, DATES, ENCODING, MATHS, SECURITY, TEXT

__all__ = ["TOOLS", "ShippedTool"]

TOOLS: tuple[ShippedTool, ...] = (
    *ORDERS, *DATES, *TEXT, *DATA, *MATHS, *ENCODING, *SECURITY, *WEB, *FILES, *MESSAGES,
)  # fmt: skip
