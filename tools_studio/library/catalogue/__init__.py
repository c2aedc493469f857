"""The tools that ship, group by group."""

from tools_studio.library.catalogue.data import DATA
from tools_studio.library.catalogue.dates import DATES
from tools_studio.library.catalogue.encoding import ENCODING
from tools_studio.library.catalogue.files import FILES
from tools_studio.library.catalogue.maths import MATHS
from tools_studio.library.catalogue.messages import MESSAGES
from tools_studio.library.catalogue.orders import ORDERS
from tools_studio.library.catalogue.security import SECURITY
from tools_studio.library.catalogue.shipped import ShippedTool
from tools_studio.library.catalogue.text import TEXT
from tools_studio.library.catalogue.web import WEB

__all__ = ["TOOLS", "ShippedTool"]

TOOLS: tuple[ShippedTool, ...] = (
    *ORDERS, *DATES, *TEXT, *DATA, *MATHS, *ENCODING, *SECURITY, *WEB, *FILES, *MESSAGES,
)  # fmt: skip
