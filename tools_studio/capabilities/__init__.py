"""The powers that a tool declares: what it may import from `hitl`, and with which limits."""

from tools_studio.capabilities.declared import (
    ALL_NAMES,
    FETCH_METHODS,
    HOSTS_CAP,
    MOST_BYTES,
    MOST_REDIRECTS,
    MOST_SECONDS,
    POWERS,
    READING_METHODS,
    Capabilities,
    CapabilityError,
    Fetch,
    Files,
    parse,
)

__all__ = [
    "ALL_NAMES",
    "FETCH_METHODS",
    "HOSTS_CAP",
    "MOST_BYTES",
    "MOST_REDIRECTS",
    "MOST_SECONDS",
    "POWERS",
    "READING_METHODS",
    "Capabilities",
    "CapabilityError",
    "Fetch",
    "Files",
    "parse",
]
