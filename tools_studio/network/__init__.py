"""A tool's way to other servers: within its policy, past none of the addresses inside our own network."""

from tools_studio.network.fetching import Webhooks, fetch, grants
from tools_studio.network.policy import FetchPolicy, Resolver

__all__ = ["FetchPolicy", "Resolver", "Webhooks", "fetch", "grants"]
