"""Which model server answers: the configured one, or the demo model in this very process."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

import httpx2
from django.conf import settings
from django.utils.crypto import salted_hmac

from hitlchat.agent.answer_bytes import bound
from hitlchat.outbound.tls import tls

if TYPE_CHECKING:
    from openai import AsyncOpenAI

SHORTEST_SECRET = 5  # "none" is what stands for no key
DEMO_PATH = "/demo-model/v1"


@dataclass(frozen=True)
class Endpoint:
    base_url: str
    api_key: str
    model: str
    is_demo: bool = False

    @property
    def name(self) -> str:
        """One model at one server: what it adds to its answers is meant for no other."""
        return f"{self.model} at {self.shown_url}"

    @property
    def shown_url(self) -> str:
        """For people who chat: the name and password that some operators put into the address are left out."""
        scheme, _, rest = self.base_url.rpartition("://")
        authority, slash, path = rest.partition("/")
        shown = authority.rpartition("@")[2] + slash + path.partition("?")[0].partition("#")[0]
        return (f"{scheme}://{shown}" if scheme else shown) or "api.openai.com"

    @property
    def provider(self) -> str:
        """For traces: every server that speaks its API goes by this name."""
        return "hitlchat.demo" if self.is_demo else "openai"

    @property
    def secrets(self) -> list[str]:
        """The key, and what the address says about who asks, as written and as meant; the longest first."""
        userinfo = self.base_url.partition("://")[2].partition("/")[0].rpartition("@")[0]
        parts = {self.api_key, userinfo, userinfo.partition(":")[2]}
        both = parts | {unquote(part) for part in parts}
        return sorted((part for part in both if len(part) >= SHORTEST_SECRET), key=len, reverse=True)


class OwnAddress:
    """Where this process listens, learnt from the server that runs it; the demo model is asked there."""

    def __init__(self) -> None:
        self.base_url = ""

    def learn(self, host: str, port: int) -> None:
        if not self.base_url:
            reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)  # noqa: S104
            name = f"[{reachable}]" if ":" in reachable and not reachable.startswith("[") else reachable
            self.base_url = f"http://{name}:{port}{DEMO_PATH}"


own_address = OwnAddress()


def uses_demo() -> bool:
    return not (settings.OPENAI_BASE_URL or settings.OPENAI_API_KEY)


def demo_key() -> str:
    """Only this installation's processes know it."""
    return salted_hmac("hitlchat.demo-model", "key", algorithm="sha256").hexdigest()


def endpoint(model: str = "") -> Endpoint:
    """Where to ask. `model` overrides OPENAI_MODEL; the demo model has but one."""
    if uses_demo():
        return Endpoint(own_address.base_url, demo_key(), "demo", is_demo=True)
    key = settings.OPENAI_API_KEY or "none"
    return Endpoint(settings.OPENAI_BASE_URL, key, model or settings.OPENAI_MODEL or "gpt-4.1-mini")


@lru_cache(maxsize=8)
def client(where: Endpoint) -> "AsyncOpenAI":
    """One client per endpoint: it keeps its connections."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient  # noqa: PLC0415 - loading it takes a third of a second

    timeout = httpx2.Timeout(settings.MODEL_TIMEOUT_SECONDS, connect=5.0)
    # By a hook, since a transport of our own would not go by the proxies that the environment names.
    web = DefaultAsyncHttpxClient(
        timeout=timeout, verify=tls(), headers={"Accept-Encoding": "identity"}, event_hooks={"response": [bound]}
    )
    return AsyncOpenAI(
        base_url=where.base_url or None, api_key=where.api_key, timeout=timeout, max_retries=2, http_client=web
    )
