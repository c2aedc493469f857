"""The rule-based model that answers when no real one is configured, over the same wire format."""

from hitlchat.agent.demo_model.reply import answer
from hitlchat.agent.demo_model.wire import as_sse

__all__ = ["answer", "as_sse"]
