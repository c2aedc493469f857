"""What a tool prints, kept up to a cap."""

from dataclasses import dataclass, field


@dataclass
class Output:
    """Collects what a tool prints, up to a cap, and says what was cut."""

    limit: int
    named: str = ""
    _parts: list[str] = field(default_factory=list)
    _kept: int = 0
    _dropped: int = 0

    def write(self, _stream: str, text: str) -> None:
        data = text.encode("utf-8", "replace")
        room = max(0, self.limit - self._kept)
        if room:
            self._parts.append(data[:room].decode("utf-8", "ignore"))
        self._kept += min(room, len(data))
        self._dropped += max(0, len(data) - room)

    @property
    def text(self) -> str:
        cut = f"\n… {self._dropped} more bytes of output cut{self.named}" if self._dropped else ""
        return "".join(self._parts) + cut
