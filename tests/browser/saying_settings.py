"""The product's settings, with one more source of tools."""

from hitlchat.settings import *  # noqa: F403
from hitlchat.settings import TOOL_SOURCES as OURS

TOOL_SOURCES = {**OURS, "saying": "tests.browser.saying.SayingSource"}
