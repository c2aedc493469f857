"""What a live connection listed last, in memory: the last word on whether a tool is still what was accepted."""

import time
from dataclasses import dataclass, field

from django.conf import settings

from hitlchat.base import canonical
from hitlchat.upstreams.judge import fingerprint
from hitlchat.upstreams.judge.offered import Connection, Unusable
from hitlchat.upstreams.judging import offered_of
from hitlchat.upstreams.wire import Listing, UpstreamTool


@dataclass(frozen=True)
class Listed:
    listing: Listing
    connection: Connection
    at: float = field(default_factory=time.monotonic)
    _tools: dict[str, UpstreamTool] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)

    @property
    def is_stale(self) -> bool:
        return time.monotonic() - self.at > settings.MCP_LIST_SECONDS

    def digest(self, name: str) -> str:
        """The fingerprint of the tool as it is listed; empty if it is not, or cannot have one."""
        if name not in self._digests:
            self._digests[name] = self._digest(name)
        return self._digests[name]

    def _digest(self, name: str) -> str:
        if not self._tools:
            self._tools.update({tool.name: tool for tool in self.listing.tools})
        tool = self._tools.get(name)
        try:
            return fingerprint.pin(offered_of(tool), self.connection).digest if tool else ""
        except (Unusable, canonical.NotJson):
            return ""
