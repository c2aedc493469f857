"""The host functions as the sandbox gets them."""

from typing import Any

from hitlchat import sandbox
from tests.tables import each_row
from tests.tools_studio.fetching.shop import Server, policy, url
from tools_studio.capabilities import ALL_NAMES, Capabilities, Fetch
from tools_studio.network import grants

ASKS = """from hitl import fetch


def run(url: str, more: dict) -> dict:
    return fetch(url, **more)
"""


def declared(server: Server, **settings: Any) -> Fetch:
    return Fetch("allowlist", policy(server).hosts, **settings)


async def run(server: Server, granted: dict[str, sandbox.HostFunction], **more: Any) -> sandbox.Report:
    return await sandbox.run(ASKS, {"url": url(server), "more": more}, grants=granted, offered=ALL_NAMES)


@each_row(
    "fetch, targets, names",
    [
        (None, (), set()),
        (Fetch("open"), (), {"fetch"}),
        (None, ("A_URL",), {"webhook"}),
        (Fetch("open"), ("A_URL",), {"fetch", "webhook"}),
    ],
)
def test_only_what_is_declared_is_granted(fetch: Fetch | None, targets: tuple[str, ...], names: set[str]) -> None:
    assert grants(fetch, targets).keys() == names


async def test_a_tool_asks_with_a_secret_that_it_does_not_hold(shop: Server) -> None:
    report = await run(shop, grants(declared(shop), (), {"KEY": "s3cret-value"}.__getitem__), auth="KEY")
    assert report.fault is None
    assert report.result["json"] == {"price": 12.5}
    assert shop.asked[0][2]["authorization"] == "Bearer s3cret-value"


async def test_a_preview_only_reads(shop: Server) -> None:
    reads = Capabilities(declared(shop), webhook=("A_URL",)).read_only()
    granted = grants(reads.fetch, reads.webhook)
    assert granted.keys() == {"fetch"}
    report = await run(shop, granted, method="POST")
    assert report.fault is not None
    assert "may use GET, HEAD: POST is not granted" in report.fault.message
    assert (await run(shop, granted)).fault is None


@each_row("name", ["policy", "secret", "value", "targets"])
async def test_a_tool_cannot_pass_what_belongs_to_the_server(shop: Server, name: str) -> None:
    report = await run(shop, grants(declared(shop)), **{name: "x"})
    assert report.fault is not None
    assert shop.asked == []
