"""Tools of other servers, offered to outside clients in our turn; and our own server, which is nobody's upstream."""

import base64
import sys

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from mcp_types import CallToolResult
from pytest_django import Settings

from hitlchat.gate.models import Decision, ToolCall
from hitlchat.secrets.values import Value
from hitlchat.upstreams import connections, exposure, server_draft, servers
from hitlchat.upstreams.models import ServerState, UpstreamServer
from hitlchat.upstreams.server_draft import ServerDraft
from tests import forks
from tests.conftest import signed_in
from tests.mcp_server.clients import ERAS, Asked, connected, status, text, yes
from tests.upstreams import gated
from tests.upstreams.client.upstreams import HONEST
from tests.upstreams.conftest import shop
from tests.upstreams.honest_server import PICTURE, SOUND
from tests.upstreams.shops import Shop, add, expose
from tests.waiting import until

__all__ = ["shop"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def exposed(alice: User, shop: Shop, url: str, settings: Settings) -> None:
    """`shop_echo`, for which the word of a client is enough here, although nobody vouches for its server."""
    settings.HITL_ELICITATION_MAX_RISK = 5
    server = add(alice, shop)
    until(server.tools.exists, "its tools are listed", seconds=20)
    expose(alice, server)


@pytest.mark.guarantee("gate:one-funnel", "gate:no-yes-no-run")
async def test_a_composed_tool_is_offered_by_mode_and_asked_about_once_and_its_server_not_contacted_before_the_yes(
    exposed: None, url: str, token: str, shop: Shop, alice: User
) -> None:
    heard: list[str] = []
    for era in ERAS:
        no, user = Asked("decline"), yes()
        async with connected(url, token, era, no) as client:
            declined = await client.call_tool("shop_echo", {"text": f"first {era}"})
        assert (declined.is_error, status(declined), shop.heard) == (True, "declined", heard)
        async with connected(url, token, era, user) as client:
            answered = await client.call_tool("shop_echo", {"text": f"second {era}"})
        heard.append(f"call second {era}")
        assert (answered.is_error, text(answered), shop.heard) == (False, f'{{"result": "second {era}"}}', heard)
        assert len(no.questions) == len(user.questions) == 1
        async with connected(url, token, era) as client:
            for mode, offered in (("own", False), ("composed", True), ("both", True)):
                await in_thread(exposure.change)(mode, 5, signed_in(alice))
                names = {tool.name for tool in (await client.list_tools()).tools}
                assert ("shop_echo" in names) is offered
                assert all(name.startswith("shop_") for name in names) or mode != "composed"
    assert await Decision.objects.acount() == await ToolCall.objects.acount() == 4


@pytest.fixture
def programs(settings: Settings) -> None:
    settings.MCP_ALLOW_STDIO = True


@pytest.fixture
def honest(alice: User, programs: None, url: str) -> None:
    """The tools of a program, none of which asks."""
    draft = ServerDraft("honest", "stdio", command=sys.executable, args=forks.launching(HONEST, "stdio"))
    server = servers.create(draft, signed_in(alice), confirmed=draft.command_line)
    until(server.tools.exists, "its tools are listed", seconds=20)
    gated.expose(alice, server, "album", "large")


async def test_pictures_sounds_files_and_links_come_through_as_they_came_and_long_texts_are_cut(
    honest: None, url: str, token: str
) -> None:
    for era in ERAS:
        async with connected(url, token, era) as client:
            came_through(await client.call_tool("honest_album", {"hint": "milk"}))
    async with connected(url, token, "2026") as client:
        for size, is_whole in {200_000: True, 300_000: False}.items():
            found = await client.call_tool("honest_large", {"size": size})
            assert ("x" * size in text(found)) is is_whole
            assert ("[cut here by TOOL_RESULT_KIB: " in text(found)) is not is_whole


def came_through(found: CallToolResult) -> None:
    assert (found.is_error, found.structured_content) == (False, {"pages": 2})
    words, picture, sound, link, note, drawing = [
        block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in found.content
    ]
    assert words == {"type": "text", "text": "Two pages.", "annotations": {"audience": ["user"]}}
    assert picture == {"type": "image", "mimeType": "image/png", "data": base64.b64encode(PICTURE).decode()}
    assert sound == {"type": "audio", "mimeType": "audio/wav", "data": base64.b64encode(SOUND).decode()}
    assert link == {"type": "resource_link", "uri": "file:///notes/a.txt", "name": "a.txt"}
    assert note["resource"] == {"uri": "file:///notes/b.txt", "mimeType": "text/plain", "text": "Bread"}
    assert base64.b64decode(drawing["resource"]["blob"]) == b"<svg>milk</svg>"


def test_our_own_server_is_recognised_and_refused_as_an_upstream(url: str, token: str, alice: User) -> None:
    draft = ServerDraft("us", url=f"{url}/mcp", headers=(Value("Authorization", f"Bearer {token}"),))
    assert "this is hitlchat itself" in connections.attempt(UpstreamServer(**server_draft.columns(draft))).error
    row = servers.create(draft, signed_in(alice))
    until(lambda: UpstreamServer.objects.get(pk=row.pk).state == ServerState.DOWN, "it is refused", seconds=20)
    assert "this is hitlchat itself" in UpstreamServer.objects.get(pk=row.pk).reason
    assert not row.tools.exists()
