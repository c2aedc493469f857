"""A tool's way to other servers: within its policy, past none of the addresses inside our own network."""

from tools_studio.network.fetching import fetch
from tools_studio.network.grants import grants
from tools_studio.network.policy import FetchPolicy, Resolver
from tools_studio.network.webhook import Webhooks

__all__ = ["FetchPolicy", "Resolver", "Webhooks", "fetch", "grants"]
