"""A change of SECRET_KEY: once `rotate_secrets` has run, the key before can go, and nothing that is stored is lost."""

import io
from typing import Final

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from hitlchat.agent import endpoints
from hitlchat.agent.endpoints import Draft
from hitlchat.agent.models import ModelEndpoint
from hitlchat.gate import tools
from hitlchat.gate.models import AuditEvent
from hitlchat.notices.models import URL, Receiver, keys_of
from hitlchat.rotation import PLACES
from hitlchat.secrets.sealing import unseal
from hitlchat.secrets.values import Value
from hitlchat.upstreams import endpoint
from hitlchat.upstreams.models import Registration, SignIn, UpstreamServer
from hitlchat.upstreams.oauth import clients
from tests.conftest import MakeTool, signed_in
from tests.notices.noticing import webhook
from tests.record.conftest import data_folder, found
from tests.upstreams.shops import somewhere
from tools_studio import spec, variables

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.guarantee("record:proves")]

# The record of these tests alone.
__all__ = ["data_folder"]

SECRET: Final = "sk-very-secret-0815"
HOOK: Final = "http://127.0.0.1:9/hook-0815"
ORIGIN: Final = "https://shop.example"
OLD, NEW = "the key before, long enough to be one", "the key since then, long enough to be one"


@pytest.fixture
def server(alice: User, make_tool: MakeTool, settings: Settings) -> UpstreamServer:
    """One secret of each kind, sealed with the key before; the server that has some of them."""
    settings.SECRET_KEY, settings.NOTICE_ALLOW_PRIVATE = OLD, True
    tools.begin_record()
    endpoints.create(Draft("shop", "https://models.example/v1", "large", key=SECRET), signed_in(alice))
    endpoints.create(Draft("other", "https://models.example/v1", "large", key="${SHOP_MODEL_KEY}"), signed_in(alice))
    make_tool("shop", published=False, variables=(Value("SHOP_KEY", SECRET), Value("SHOP", "gAAAA", secret=False)))
    server = somewhere(alice, headers=(Value("X-Key", SECRET), Value("X-Shop", "Corner", secret=False)))
    SignIn.objects.create(
        server=server,
        registration=Registration.DYNAMIC,
        issuer=ORIGIN,
        client_id="hitlchat",
        client_secret=clients.seal(SECRET, "client", server.pk, ORIGIN),
        tokens=clients.seal([SECRET, ""], "tokens", server.pk, ORIGIN),
        origin=ORIGIN,
        mark="one",
    )
    webhook(alice, HOOK)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    return server


def rotated() -> str:
    out = io.StringIO()
    call_command("rotate_secrets", stdout=out)
    return out.getvalue()


def sealed() -> set[str]:
    """All that is sealed in rows, wherever."""
    found = set()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            found |= {piece for row in cursor for each in row for piece in str(each).split('"') if piece[:5] == "gAAAA"}
    return found - {"gAAAA"}


def test_everything_that_an_older_key_sealed_is_read_without_it(server: UpstreamServer, settings: Settings) -> None:
    before, connected = sealed(), endpoint.identity_of(server)
    assert len(before) == 7
    assert rotated().startswith(
        "Secrets sealed anew with SECRET_KEY: 1 of models, 1 of tools, 1 of servers, 2 of sign-ins, 2 of webhooks."
    )
    assert not before & sealed()
    settings.SECRET_KEY_FALLBACKS = []
    assert endpoints.key_of(ModelEndpoint.objects.get(name="shop")) == SECRET
    assert ModelEndpoint.objects.get(name="other").key == "${SHOP_MODEL_KEY}"
    tool = PLACES[1].rows.get().script
    assert variables.resolve(spec.stored_variables(tool).values()).secret == {"SHOP_KEY": SECRET}
    server = UpstreamServer.objects.get()
    assert endpoint.spec_of(server).headers["X-Key"] == SECRET
    # An approval is for this connection: it stays one for it.
    assert endpoint.identity_of(server) == connected
    assert clients.of(server.sign_in).secret == SECRET
    assert clients.unseal(server.sign_in.tokens, "tokens", server.pk, ORIGIN) == [SECRET, ""]
    hook = Receiver.objects.get()
    assert unseal(hook.url, URL) == HOOK
    assert len(keys_of(hook)) == 1


def test_the_record_states_what_servers_are_since_so_that_a_change_is_found_without_the_older_key(
    server: UpstreamServer, settings: Settings
) -> None:
    rotated()
    settings.SECRET_KEY_FALLBACKS = []
    assert found() == []
    assert AuditEvent.objects.latest("pk").data["rotated"]["servers"] == 1
    UpstreamServer.objects.update(url="https://elsewhere.example/mcp")
    assert "not as stated" in dict(each[:2] for each in found())


def test_done_twice_it_changes_nothing_more_and_says_what_is_next(server: UpstreamServer, settings: Settings) -> None:
    assert "remove SECRET_KEY_FALLBACKS in an hour" in rotated()
    before, events = sealed(), AuditEvent.objects.count()
    assert "anew with SECRET_KEY: none." in rotated()
    assert (sealed(), AuditEvent.objects.count()) == (before, events)
    settings.SECRET_KEY_FALLBACKS = []
    assert "No older key is named" in rotated()


def test_what_no_key_can_read_is_named_and_stays_as_it_is(server: UpstreamServer, settings: Settings) -> None:
    settings.SECRET_KEY_FALLBACKS = []
    before = sealed()
    with pytest.raises(CommandError) as refused:
        rotated()
    assert sealed() == before
    for name in ("shop (models)", "SHOP_KEY (tools)", "X-Key (servers)", "(sign-ins)", "127.0.0.1:9 (webhooks)"):
        assert name in str(refused.value)
    assert SECRET not in str(refused.value)
