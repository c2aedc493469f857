"""The ledger: what is new stays hidden, what changed is withheld, what is gone comes back unchanged by itself."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connections

from hitlchat.gate.models import Tool
from hitlchat.gate.status import Status
from hitlchat.upstreams import discovery, exposure, servers
from hitlchat.upstreams.client.listing import Listing
from hitlchat.upstreams.models import ComposedTool, ToolEvent, ToolState, UpstreamServer
from hitlchat.upstreams.server_draft import ServerDraft, draft_of
from tests.conftest import signed_in
from tests.gate.asking import ask, fresh, run, say_yes, status
from tests.upstreams.shops import SAYS_IT_BACK, expose, listed, listing, row, somewhere

pytestmark = pytest.mark.django_db(transaction=True)

ECHO = listing(echo=SAYS_IT_BACK)


@pytest.fixture
def server(alice: User) -> UpstreamServer:
    """It has listed `echo`."""
    made = somewhere(alice)
    assert take_in(made, ECHO)
    return made


def take_in(server: UpstreamServer, found: Listing) -> bool:
    present = UpstreamServer.objects.get(pk=server.pk)
    return async_to_sync(discovery.take_in)(present.pk, present.revision, found)


def published() -> set[str]:
    return set(Tool.objects.filter(published=True).values_list("name", flat=True))


def history(tool: ComposedTool) -> list[str]:
    return list(ToolEvent.objects.filter(tool=tool).values_list("name", flat=True))


@pytest.mark.guarantee("SR-30")
def test_new_tools_are_not_offered(server: UpstreamServer) -> None:
    found = row(server)
    assert (found.state, found.exposed, found.tool, published()) == (ToolState.NEW, False, None, set())
    assert UpstreamServer.objects.get(pk=server.pk).tool_count == 1


def test_the_same_list_again_changes_nothing(alice: User, server: UpstreamServer) -> None:
    tool = expose(alice, server)
    before = ComposedTool.objects.values().get()
    assert take_in(server, ECHO)
    assert ComposedTool.objects.values().get() == before
    assert Tool.objects.get(pk=tool.pk).updated_at == tool.updated_at


@pytest.mark.servers("row locks tell two at a time apart")
def test_a_change_withholds_the_tool_and_takes_back_what_waits(alice: User, bob: User, server: UpstreamServer) -> None:
    """Which changes count, risk/test_fingerprint.py tells."""
    tool = expose(alice, server)
    waiting, cleared = ask(bob, tool), ask(bob, tool)
    say_yes(bob, cleared)
    assert take_in(server, Listing((listed("echo", annotations={"readOnlyHint": True}),)))
    assert (row(server).state, published()) == (ToolState.WITHHELD, set())
    assert (status(waiting), status(cleared), run(cleared)) == (Status.WITHDRAWN, Status.WITHDRAWN, False)
    assert "changed its definition" in fresh(waiting).reason
    assert history(row(server)) == ["tool.exposed", "tool.changed"]


def test_what_models_are_told_stays_as_it_was_accepted_while_a_change_waits(
    alice: User, server: UpstreamServer
) -> None:
    tool = expose(alice, server)
    take_in(server, listing(echo="Another description, which nobody has accepted."))
    assert Tool.objects.get(pk=tool.pk).description == SAYS_IT_BACK
    assert row(server).seen["description"] == "Another description, which nobody has accepted."


def test_a_change_that_is_taken_back_is_still_looked_at_by_a_person(alice: User, server: UpstreamServer) -> None:
    expose(alice, server)
    take_in(server, listing(echo="Something else altogether."))
    take_in(server, ECHO)
    found = row(server)
    assert (found.state, found.held, published()) == (ToolState.WITHHELD, True, set())
    exposure.accept(found.pk, found.seen_digest, signed_in(alice))
    assert published() == {"shop_echo"}


def test_a_tool_that_flips_back_and_forth_fills_no_history(alice: User, server: UpstreamServer) -> None:
    expose(alice, server)
    for number in range(5):
        take_in(server, listing(echo=f"Description number {number} of the tool."))
    assert history(row(server)).count("tool.changed") == 1


def test_a_list_that_is_incomplete_makes_no_tool_gone_and_withdraws_nothing(
    alice: User, bob: User, server: UpstreamServer
) -> None:
    tool = expose(alice, server)
    call = ask(bob, tool)
    take_in(server, Listing((listed("other"),), cut="the server's pages form a loop"))
    assert (row(server).state, published(), status(call)) == (ToolState.EXPOSED, {"shop_echo"}, Status.WAITING)
    present = UpstreamServer.objects.get(pk=server.pk)
    assert present.listing_note == "the server's pages form a loop"


def test_a_known_tool_whose_entry_cannot_be_read_is_not_offered_until_it_can(
    alice: User, bob: User, server: UpstreamServer
) -> None:
    tool = expose(alice, server)
    call = ask(bob, tool)
    take_in(server, Listing((listed("other"),), unread={"echo": "inputSchema: Field required"}))
    found = row(server)
    assert (found.state, published(), status(call)) == (ToolState.UNFIT, set(), Status.WITHDRAWN)
    assert found.reason == "The server's definition of the tool cannot be read: inputSchema: Field required."
    take_in(server, ECHO)
    assert (row(server).state, published()) == (ToolState.EXPOSED, {"shop_echo"})


def test_a_tool_that_is_gone_leaves_the_catalog_and_comes_back_unchanged_by_itself(
    alice: User, bob: User, server: UpstreamServer
) -> None:
    tool = expose(alice, server)
    call = ask(bob, tool)
    take_in(server, listing())
    assert (row(server).state, published(), status(call)) == (ToolState.GONE, set(), Status.WITHDRAWN)
    take_in(server, ECHO)
    assert (row(server).state, published()) == (ToolState.EXPOSED, {"shop_echo"})
    assert history(row(server))[-2:] == ["tool.gone", "tool.returned"]


def test_a_tool_that_comes_back_changed_is_withheld(alice: User, server: UpstreamServer) -> None:
    expose(alice, server)
    take_in(server, listing())
    take_in(server, listing(echo="Something else altogether."))
    assert (row(server).state, published()) == (ToolState.WITHHELD, set())


def test_names_that_change_with_every_list_leave_nothing_behind(server: UpstreamServer) -> None:
    for number in range(5):
        take_in(server, listing(**{f"tool_{number}": SAYS_IT_BACK}))
    assert list(server.tools.values_list("name", flat=True)) == ["tool_4"]
    assert not ToolEvent.objects.exists()


def test_what_cannot_be_offered_says_why_and_takes_nothing_else_along(alice: User, server: UpstreamServer) -> None:
    remote = listed("remote", inputSchema={"type": "object", "properties": {"a": {"$ref": "https://evil.example/x"}}})
    broken = listed("broken", inputSchema={"type": "object", "required": 5})
    take_in(server, Listing((*ECHO.tools, remote, broken, listed("x" * 200), listed("nul\0")), cut="too many"))
    states = dict(server.tools.values_list("name", "state"))
    assert states == {"echo": ToolState.NEW, "remote": ToolState.UNFIT, "broken": ToolState.UNFIT}
    assert row(server, "broken").reason.startswith("inputSchema: ")
    note = UpstreamServer.objects.get(pk=server.pk).listing_note
    assert note.startswith("too many; tools whose name or definition cannot be stored: ")
    assert "nul\\x00" in note


def test_another_connection_makes_every_tool_another_one(alice: User, bob: User, server: UpstreamServer) -> None:
    tool = expose(alice, server)
    call = ask(bob, tool)
    servers.change(server.pk, ServerDraft("shop", url="https://other.example/mcp"), signed_in(alice))
    assert (published(), status(call)) == (set(), Status.WITHDRAWN)
    take_in(server, ECHO)
    assert (row(server).state, published()) == (ToolState.WITHHELD, set())


def test_a_list_of_the_connection_before_is_not_recorded(alice: User, server: UpstreamServer) -> None:
    before = server.revision
    servers.change(server.pk, ServerDraft("shop", url="https://other.example/mcp"), signed_in(alice))
    assert not async_to_sync(discovery.take_in)(server.pk, before, listing(echo="From the server before."))
    assert row(server).seen["description"] == SAYS_IT_BACK


def test_a_new_time_limit_brings_the_tools_back_once_they_were_listed_again(
    alice: User, server: UpstreamServer
) -> None:
    expose(alice, server)
    draft = draft_of(server)
    servers.change(server.pk, ServerDraft(draft.name, url=draft.url, call_seconds=5), signed_in(alice))
    assert published() == set()
    take_in(server, ECHO)
    assert published() == {"shop_echo"}


def test_a_removed_server_takes_its_tools_along_and_leaves_its_history(
    alice: User, bob: User, server: UpstreamServer
) -> None:
    call = ask(bob, expose(alice, server))
    servers.delete(server.pk, signed_in(alice))
    assert (Tool.objects.count(), ComposedTool.objects.count(), status(call)) == (0, 0, Status.WITHDRAWN)
    last = ToolEvent.objects.order_by("pk").last()
    assert last is not None
    assert (last.name, last.server_name, last.tool_name, last.tool) == ("tool.deleted", "shop", "echo", None)


@pytest.mark.servers("row locks tell two at a time apart")
def test_two_processes_may_record_the_same_list_at_once(server: UpstreamServer) -> None:
    names = {f"tool_{number}": SAYS_IT_BACK for number in range(30)}
    barrier = Barrier(2)

    def go() -> bool:
        try:
            barrier.wait(40)
            return take_in(server, listing(**names))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        assert [each.result(30) for each in [threads.submit(go), threads.submit(go)]] == [True, True]
    assert set(server.tools.values_list("name", flat=True)) == set(names)


@pytest.mark.guarantee("SR-29")
def test_the_same_name_on_another_server_is_another_tool(alice: User, server: UpstreamServer) -> None:
    expose(alice, server, hitl_mode="DISABLED")
    other = somewhere(alice, "depot")
    take_in(other, ECHO)
    assert (row(other).state, published()) == (ToolState.NEW, {"shop_echo"})
    assert expose(alice, other).hitl_mode == "REQUIRED"
