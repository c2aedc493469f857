"""What four well-known servers answer to `tools/list`, as they sent it (`catalogues.json`).

mcp-server-time and mcp-server-git, and the packages server-filesystem and server-everything of modelcontextprotocol.
"""

import json
from pathlib import Path
from typing import Any, Final

from hitlchat.upstreams.risk.fingerprint import Offered

_FILE: Final = Path(__file__).with_name("catalogues.json")
CATALOGUES: Final[dict[str, list[Any]]] = json.loads(_FILE.read_text(encoding="utf-8"))
REAL: Final = [(server, Offered.from_json(entry)) for server, entries in CATALOGUES.items() for entry in entries]
SERVERS: Final = frozenset(CATALOGUES)


def name(value: object) -> str:
    """The id of a test about one of them."""
    return value.name if isinstance(value, Offered) else str(value)


def tools_of_others(server: str) -> frozenset[str]:
    return frozenset(tool.name for other, tool in REAL if other != server)
