"""The product's own settings, plus a source of tools that does next to nothing. For this process and its servers."""

from hitlchat.settings import *  # noqa: F403
from hitlchat.settings import TOOL_SOURCES

TOOL_SOURCES = {**TOOL_SOURCES, "bench": "bench.source.BenchSource"}

# The model server of a bench knows no titles.
CHAT_TITLES = False

# So that the word of an MCP client is enough for the tools of a bench.
HITL_ELICITATION_MAX_RISK = 2

# A bench opens more questions for one person than anybody should have.
HITL_MAX_WAITING_PER_CALLER = 1_000_000
