"""The page of one upstream tool: what was accepted, what it has become, and a person's answer to that."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from hitlchat.gate.models import Tool
from hitlchat.gate.status import Status
from hitlchat.upstreams import exposure, servers
from hitlchat.upstreams.changes import Change
from hitlchat.upstreams.client.listing import Listing
from hitlchat.upstreams.models import ComposedTool, ToolEvent, ToolState, UpstreamServer
from hitlchat.upstreams.pages.ledger import AT_A_TIME
from tests.conftest import signed_in
from tests.gate.asking import ask, status
from tests.upstreams.shops import POISONED, SAYS_IT_BACK, expose, listed, listing, row, somewhere, take_in

pytestmark = pytest.mark.django_db(transaction=True)

TWICE = "Say the text back, twice."
SCRIPT = "<script>alert(1)</script> [link](https://evil.example) \u202eback"


@pytest.fixture
def admin(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def address(found: ComposedTool, act: str = "") -> str:
    return f"/servers/s/{found.server.name}/tools/{found.pk}{act}"


def words(html: str) -> str:
    """What a person reads of a page."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def shown(client: Client, server: UpstreamServer, name: str = "echo", code: int = 200) -> str:
    answer = client.get(address(row(server, name)))
    assert answer.status_code == code
    return answer.content.decode()


def read(client: Client, server: UpstreamServer, name: str = "echo") -> str:
    return words(shown(client, server, name))


def accept(client: Client, server: UpstreamServer, digest: str | None = None, **form: str) -> Any:
    found = row(server)
    return client.post(address(found, "/accept"), {"digest": digest or found.seen_digest, **form})


def test_a_tool_nobody_exposed_is_shown_as_its_server_lists_it(admin: Client, server: UpstreamServer) -> None:
    page = read(admin, server)
    assert "Not accepted yet" in page
    assert SAYS_IT_BACK in page
    assert "Nothing yet. The history starts when someone first exposes the tool." in page
    assert row(server).seen_digest in page


def test_an_exposed_tool_is_shown_as_it_was_accepted_and_a_record_that_was_tampered_with_is_noticed(
    admin: Client, alice: User, server: UpstreamServer
) -> None:
    expose(alice, server, hitl_mode="CONDITIONAL", condition='args["text"] == "x"', prompt_template="Say {args.text}?")
    page, found = read(admin, server), row(server)
    assert "In the catalog as shop_echo" in page
    assert "by alice" in page
    assert found.pinned_digest in page
    assert found.pinned_profile in page
    assert "Policies decide" in page
    assert 'args["text"] == "x"' in page
    assert "Say {args.text}?" in page
    assert all(reason in page for reason in found.risk_reasons)
    assert '"description": "What to say."' in page
    assert "Accept this definition" not in page
    assert "Something other than hitlchat" not in page
    ComposedTool.objects.filter(pk=found.pk).update(pinned={**found.pinned, "description": "Something else."})
    assert "Something other than hitlchat changed the database." in read(admin, server)


def test_texts_of_the_server_are_text(admin: Client, server: UpstreamServer) -> None:
    take_in(server, Listing((listed("echo", SCRIPT, title=SCRIPT),)))
    html = shown(admin, server)
    assert "<script>alert" not in html
    assert 'href="https://evil' not in html
    assert "U+202E" in html


@pytest.mark.servers("the SQL differs between the databases")
@pytest.mark.guarantee("SR-28")
def test_a_changed_tool_is_shown_side_by_side(admin: Client, alice: User, bob: User, server: UpstreamServer) -> None:
    call = ask(bob, expose(alice, server))
    schema = {"type": "object", "properties": {"text": {"type": "string"}, "bcc": {"type": "string"}}}
    changed = listed("echo", "Say the text back, as\u200b it was given.", inputSchema=schema)
    take_in(server, Listing((changed,)))
    html = shown(admin, server)
    page = words(html)
    assert "Withheld" in page
    assert 'ins><span class="esc">U+200B</span></ins>' in html
    assert "/inputSchema/properties/bcc" in page
    assert "/inputSchema/properties/text/description" in page
    assert status(call) == Status.WITHDRAWN
    assert "1 that had not started was withdrawn when the tool changed" in page
    assert "new" in page[page.index("If you accept") :]
    assert row(server).seen_digest[:12] in page


def test_what_makes_a_tool_riskier_is_said(admin: Client, alice: User) -> None:
    server = somewhere(alice, "desk", docs_url="https://desk.example/docs", trust="vendor")
    take_in(server, Listing((listed("echo", "List the orders.", annotations={"readOnlyHint": True}),)))
    before = expose(alice, server).risk_level
    take_in(server, Listing((listed("echo", "Delete the orders.", annotations={"destructiveHint": True}),)))
    assert row(server).risk_inherent > before
    assert "The tool would be riskier." in read(admin, server)


def test_what_was_accepted_is_in_the_catalog_again_and_in_a_history_that_outlives_its_server(
    admin: Client, alice: User, server: UpstreamServer
) -> None:
    tool = expose(alice, server)
    take_in(server, listing(echo=TWICE))
    assert not Tool.objects.get(pk=tool.pk).published
    answer = accept(admin, server)
    assert (answer.status_code, answer["location"]) == (302, address(row(server)))
    found = row(server)
    assert (found.state, found.pinned_digest, found.accepted_by) == (ToolState.EXPOSED, found.seen_digest, alice)
    page = read(admin, server)
    assert "The new definition is accepted, and the tool is exposed with it. Approval: ask every time." in page
    assert "Accepted the current definition What changed" in page
    # Each event is compared with what was accepted before.
    events = {event.name: event for event in ToolEvent.objects.filter(tool=row(server))}
    for name in ("tool.changed", "tool.accepted"):
        html = admin.get(f"/servers/history/{events[name].pk}").content.decode()
        assert "<del>" in html
        assert "<ins>twice</ins>" in html
    first = words(admin.get(f"/servers/history/{events['tool.exposed'].pk}").content.decode())
    assert "No definition of this tool had been accepted before." in first
    assert SAYS_IT_BACK in first
    # The history stays when the server is gone.
    servers.delete(server.pk, signed_in(alice))
    page = words(admin.get("/servers/history?server=sho&tool=ech").content.decode())
    assert "Its server was removed echo of shop" in page
    assert "<ins>twice</ins>" in admin.get(f"/servers/history/{events['tool.accepted'].pk}").content.decode()
    assert "No event matches" in admin.get("/servers/history?server=other").content.decode()


def test_a_suspicious_change_is_accepted_only_by_someone_who_read_the_warnings(
    admin: Client, alice: User, server: UpstreamServer
) -> None:
    expose(alice, server)
    take_in(server, listing(echo=POISONED))
    assert "I have read the warnings" in read(admin, server)
    answer = accept(admin, server)
    assert answer.status_code == 409
    assert "Read the warnings and confirm that you did." in words(answer.content.decode())
    assert accept(admin, server, warnings_read="on").status_code == 302
    assert row(server).state == ToolState.EXPOSED


def test_a_tool_that_asked_less_asks_every_time_once_its_change_is_accepted(
    admin: Client, alice: User, server: UpstreamServer
) -> None:
    tool = expose(alice, server, hitl_mode="CONDITIONAL", condition='args["text"] == "x"')
    take_in(server, listing(echo=TWICE))
    assert "every call needs approval from now on, unless you choose otherwise" in read(admin, server)
    accept(admin, server)
    assert Tool.objects.get(pk=tool.pk).hitl_mode == "REQUIRED"
    assert "Approval" in read(admin, server)
    assert [event.name for event in ToolEvent.objects.filter(tool=row(server))][-3:] == [
        *("tool.accepted", "tool.configured", "tool.returned"),
    ]


def test_a_tool_goes_on_asking_less_if_somebody_says_so(admin: Client, alice: User, server: UpstreamServer) -> None:
    tool = expose(alice, server, hitl_mode="DISABLED")
    take_in(server, listing(echo=TWICE))
    accept(admin, server, keep_mode="on")
    assert Tool.objects.get(pk=tool.pk).hitl_mode == "DISABLED"


def test_accepting_what_has_not_changed_leaves_the_mode_alone(alice: User, server: UpstreamServer) -> None:
    tool = expose(alice, server, hitl_mode="DISABLED")
    exposure.accept(row(server).pk, row(server).seen_digest, signed_in(alice))
    assert Tool.objects.get(pk=tool.pk).hitl_mode == "DISABLED"


def test_what_changed_back_has_to_be_looked_at_all_the_same(admin: Client, alice: User, server: UpstreamServer) -> None:
    expose(alice, server)
    take_in(server, listing(echo=TWICE))
    take_in(server, listing(echo=SAYS_IT_BACK))
    assert "Changed and changed back" in read(admin, server)
    accept(admin, server)
    assert row(server).state == ToolState.EXPOSED


def test_a_tool_is_no_longer_exposed_if_somebody_says_so(admin: Client, alice: User, server: UpstreamServer) -> None:
    tool = expose(alice, server)
    take_in(server, listing(echo=TWICE))
    assert admin.post(address(row(server), "/stop")).status_code == 302
    assert (row(server).state, Tool.objects.get(pk=tool.pk).published) == (ToolState.HIDDEN, False)
    assert "The tool is no longer exposed." in read(admin, server)


def test_a_definition_of_any_size_makes_a_page_of_a_bounded_one(
    admin: Client, alice: User, server: UpstreamServer
) -> None:
    expose(alice, server)
    many = {f"p{n}": {"type": "string", "description": "x" * 40} for n in range(300)}
    definition = listed("echo", "word " * 40_000, inputSchema={"type": "object", "properties": many})
    take_in(server, Listing((definition,)))
    html = shown(admin, server)
    # A text that was not cut in either place would make it 390,000.
    assert len(html) < 350_000
    assert "too many to compare here" in words(html)


def test_the_history_tells_who_did_what_with_the_settings_before_and_after(
    admin: Client, alice: User, server: UpstreamServer
) -> None:
    expose(alice, server)
    exposure.apply([Change(row(server).pk, alias="say", hitl_mode="DISABLED")], signed_in(alice))
    take_in(server, listing(echo=TWICE))
    page = read(admin, server)
    page = page[page.rindex("History") :]
    assert page.index("its server changed its definition") < page.index("Settings changed") < page.index("Exposed")
    assert "hitlchat, automatically" in page
    assert "alice, in the browser" in page
    assert "shop_echo → , now say" in page
    assert "Ask every time → , now Never ask" in page


@pytest.mark.servers("the SQL differs between the databases")
def test_the_history_is_shown_a_page_at_a_time(admin: Client, alice: User, server: UpstreamServer) -> None:
    expose(alice, server)
    exposure.apply([Change(row(server).pk, description="Says it.")], signed_in(alice))
    (settings,) = ToolEvent.objects.filter(name="tool.configured").values()
    ToolEvent.objects.bulk_create(ToolEvent(**settings | {"id": None}) for _ in range(AT_A_TIME - 1))
    for path in (address(row(server)), "/servers/history"):
        first = admin.get(path).content.decode()
        (older,) = set(re.findall(r"before=(\d+)", first))
        second = admin.get(path, {"before": older}).content.decode()
        assert first.count("<b>Settings changed</b>") == AT_A_TIME
        assert "<b>Exposed</b>" not in first
        assert "<b>Exposed</b>" in second
        assert "before=" not in second


def test_the_history_of_an_installation_without_any_says_so(admin: Client, server: UpstreamServer) -> None:
    assert "No events yet" in admin.get("/servers/history").content.decode()
    assert admin.get("/servers/history?before=9999999999999999999999&server=%00").status_code == 200
    assert admin.get("/servers/history/77").status_code == 404


def test_a_tool_is_found_by_its_alias_and_only_under_its_own_server(
    admin: Client, alice: User, server: UpstreamServer
) -> None:
    expose(alice, server, alias="say")
    assert admin.get("/servers/tools/by-alias/say")["location"] == address(row(server))
    assert admin.get("/servers/tools/by-alias/nothing").status_code == 404
    assert admin.get(f"/servers/s/elsewhere/tools/{row(server).pk}").status_code == 404


def test_the_studios_list_leads_administrators_and_nobody_else_to_a_composed_tool(
    admin: Client, alice: User, bob: User, server: UpstreamServer
) -> None:
    expose(alice, server)
    link = 'href="/servers/tools/by-alias/shop_echo"'
    assert link in admin.get("/studio/").content.decode()
    bob.user_permissions.add(Permission.objects.get(codename="change_script"))
    admin.force_login(bob)
    page = admin.get("/studio/").content.decode()
    assert "shop_echo" in page
    assert link not in page
