"""Files of tools: written by an export, and read back with the distrust that a stranger's file deserves."""

from tools_studio.exchange.importing import Conflict, Outdated, Plan, Step, carry_out, plan
from tools_studio.exchange.reading import (
    FORMAT,
    MOST_BYTES,
    MOST_TOOLS,
    VERSION,
    BadFile,
    Entry,
    Problem,
    read,
    read_document,
)
from tools_studio.exchange.writing import TooMuch, document, text

__all__ = [
    "FORMAT",
    "MOST_BYTES",
    "MOST_TOOLS",
    "VERSION",
    "BadFile",
    "Conflict",
    "Entry",
    "Outdated",
    "Plan",
    "Problem",
    "Step",
    "TooMuch",
    "carry_out",
    "document",
    "plan",
    "read",
    "read_document",
    "text",
]
