"""Content blocks of upstream tools: kept as they came, and shown where people look at calls."""

import sys
from typing import Any

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from hitlchat.base.database import in_db
from hitlchat.gate import contents
from hitlchat.gate.models import Attachment, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.secrets.values import Value
from hitlchat.upstreams import servers
from hitlchat.upstreams.models import UpstreamServer
from hitlchat.upstreams.server_draft import ServerDraft
from tests import forks
from tests.conftest import signed_in
from tests.upstreams.client.upstreams import HONEST
from tests.upstreams.gated import asked, called, exposed, settled
from tests.upstreams.gated import yes as say_yes
from tests.upstreams.honest_server import PICTURE, SOUND

pytestmark = [pytest.mark.embedded, pytest.mark.django_db(transaction=True)]

SECRET = "hidden-value-1"


@pytest.fixture(autouse=True)
def programs(settings: Settings) -> None:
    settings.MCP_ALLOW_STDIO = True


def honest(person: User) -> UpstreamServer:
    secret = Value("KEY", SECRET, secret=True)
    draft = ServerDraft("honest", "stdio", command=sys.executable, args=forks.launching(HONEST, "stdio"), env=(secret,))
    return servers.create(draft, signed_in(person), confirmed=draft.command_line)


async def offered(person: User, name: str, **change: Any) -> Tool:
    server = await in_db(honest)(person)
    return (await exposed(person, server, name, **change))[name]


async def test_each_kind_of_block_is_kept_and_shown_to_those_who_may_see_the_call(
    alice: User, bob: User, serving: None
) -> None:
    call = await called(bob, await offered(alice, "album"), hint="<script>")
    assert call.status == Status.SUCCEEDED
    assert await in_db(contents.structured)(call) == {"pages": 2}
    assert {*(await in_db(contents.data)(call)).values()} == {PICTURE, SOUND, b"<svg><script></svg>"}
    kinds = [block["type"] for block in call.result["content"]]
    assert kinds == ["text", "image", "audio", "resource_link", "resource", "resource"]
    await in_thread(_looks)(call, bob)
    await in_thread(_is_hidden)(call, await User.objects.acreate_user("eve"))


def _looks(call: ToolCall, person: User) -> None:
    client = Client()
    client.force_login(person)
    shown = client.get(f"/history/{call.pk}").content.decode()
    picture, sound, drawing = (block["sha256"] for block in contents.attached(call))
    address = f"/history/{call.pk}/attachments/"
    assert f'<img src="{address}{picture}"' in shown
    assert f'<audio src="{address}{sound}"' in shown
    assert f'src="{address}{drawing}"' not in shown
    for words in ("a.txt", "file:///notes/b.txt", "Bread", "image/svg+xml"):
        assert words in shown
    found = client.get(address + picture)
    assert (b"".join(found), found["Content-Type"]) == (PICTURE, "image/png")
    saved = client.get(address + drawing)
    assert (saved["Content-Type"], saved["Content-Disposition"][:10]) == ("application/octet-stream", "attachment")
    assert saved["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert client.get(address + "0" * 64).status_code == 404


def _is_hidden(call: ToolCall, person: User) -> None:
    client = Client()
    client.force_login(person)
    block, *_ = contents.attached(call)
    assert client.get(f"/history/{call.pk}/attachments/{block['sha256']}").status_code == 404
    assert Client().get(f"/history/{call.pk}/attachments/{block['sha256']}").status_code == 302


@pytest.mark.guarantee("gate:at-most-once")
async def test_a_call_that_was_approved_keeps_its_blocks_and_bytes_that_were_changed_are_shown_to_nobody(
    alice: User, bob: User, serving: None
) -> None:
    call = await asked(bob, await offered(alice, "picture", mode="REQUIRED"))
    await say_yes(bob, call)
    assert await in_db(contents.data)(await settled(call))
    await Attachment.objects.filter(call=call).aupdate(data=b"another picture")
    assert await in_db(contents.data)(call) == {}
