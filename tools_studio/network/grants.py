"""The host functions behind `hitl.fetch` and `hitl.webhook`."""

from collections.abc import Collection
from functools import partial

from hitlchat.sandbox import HostFunction
from tools_studio.capabilities import Fetch
from tools_studio.network.fetching import fetch
from tools_studio.network.policy import FetchPolicy, Resolver, no_values
from tools_studio.network.webhook import Webhooks


def grants(
    granted: Fetch | None,
    webhook_targets: Collection[str] = (),
    value: Resolver = no_values,
    *,
    read_only: bool = False,
) -> dict[str, HostFunction]:
    """What of the two is granted, by name. `value` finds the variables that `auth=` and `webhook` name.

    With `read_only` requests are those that read, and nothing is sent to webhooks: what an effect preview gets.
    """
    functions: dict[str, HostFunction] = {}
    if granted is not None:
        policy = FetchPolicy.of(granted, value)
        functions["fetch"] = partial(fetch, policy.read_only() if read_only else policy)
    if webhook_targets and not read_only:
        functions["webhook"] = Webhooks(frozenset(webhook_targets), value).send
    return functions
