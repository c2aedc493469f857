"""The rule-based model that answers when no real one is configured, over the same wire format."""

from .reply import answer
from .wire import as_sse

__all__ = ["answer", "as_sse"]
