"""What the Composed Tools drawer shows: everything of every server, in pieces, and all of it as text."""

import re
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.upstreams import exposure, servers
from hitlchat.upstreams.client.listing import Listing
from hitlchat.upstreams.models import ComposedTool, UpstreamServer
from hitlchat.upstreams.pages.drawer_list import Wanted, rest_of
from tests.conftest import signed_in
from tests.gate.asking import ask
from tests.upstreams.drawers import DRAWER, of, seen
from tests.upstreams.shops import POISONED, SAYS_IT_BACK, expose, listed, listing, row, somewhere, take_in

pytestmark = pytest.mark.django_db(transaction=True)

LINES = f"{DRAWER}/of/shop"
HOSTILE = "<img src=x onerror=alert(1)>[click](javascript:alert(1))\u202e\u200b\x1b[31m"


def lines(page: str) -> list[str]:
    """The names of the tools that are shown."""
    return [part.partition("</label>")[0].partition(">")[2] for part in page.split('<label for="x-')[1:]]


def numbers(page: str) -> str:
    """The summary in words."""
    summary = page.partition('id="drawer-sums"')[2].partition("</div>")[0].partition(">")[2]
    return " ".join(re.sub(r"</?span[^>]*>|<b>", "", summary.replace("</b>", " ")).split())


def test_nobody_but_administrators_sees_or_changes_anything_of_it(
    alice: User, bob: User, server: UpstreamServer
) -> None:
    tool = row(server).pk
    paths = [DRAWER, f"{DRAWER}/list", LINES, f"{DRAWER}/details/{tool}"]
    for path in paths:
        assert of(bob).get(path).status_code == 403
        assert Client().get(path).status_code == 302
        assert of(alice).get(path).status_code == 200
    ceiling = {"mode": "both", "ceiling": "5", "was_mode": "both", "was_ceiling": "5"}
    for path in (DRAWER, LINES, f"{DRAWER}/check/shop", f"{DRAWER}/require"):
        assert of(bob).post(path, ceiling).status_code == 403
        assert of(alice).post(path, ceiling).status_code in {200, 302}


def test_what_of_a_list_could_not_be_read_is_named(alice: User, server: UpstreamServer) -> None:
    unread = {"broken": "inputSchema: Field required"}
    take_in(server, Listing((listed("echo"),), cut="the server's pages form a loop", unread=unread))
    page = of(alice).get(DRAWER).content.decode()
    assert "The list is incomplete: the server&#x27;s pages form a loop; entries that cannot be read: broken" in page
    assert "other" in lines(of(alice).get(LINES).content.decode())


def test_its_address_shows_the_servers_page_with_the_drawer_over_it(alice: User, server: UpstreamServer) -> None:
    whole = of(alice).get(DRAWER).content.decode()
    assert "<h1>Servers</h1>" in whole
    assert 'id="drawer"' in whole
    part = of(alice).get(DRAWER, headers={"HX-Request": "true"})
    assert "<h1>" not in part.content.decode()
    assert part.headers["HX-Replace-Url"] == DRAWER
    again = of(alice).get(DRAWER, headers={"HX-Request": "true", "HX-History-Restore-Request": "true"})
    assert "<h1>Servers</h1>" in again.content.decode()


def test_a_server_is_loaded_when_it_is_opened_or_named(alice: User, server: UpstreamServer) -> None:
    closed = seen(alice)
    assert lines(closed) == []
    assert f'hx-get="{LINES}?' in closed
    assert lines(seen(alice, server="shop")) == ["echo", "other"] == lines(seen(alice, LINES))
    assert of(alice).get(f"{DRAWER}/of/nobody").status_code == 404


@pytest.mark.servers("the SQL differs between the databases")
def test_the_summary_counts_what_is_exposed_and_how_it_asks(alice: User, server: UpstreamServer) -> None:
    take_in(server, listing(echo="e", other="o", third="t", fourth="f"))
    expose(alice, server)
    expose(alice, server, "other", hitl_mode="CONDITIONAL", condition="True")
    expose(alice, server, "third", hitl_mode="DISABLED")
    expose(alice, server, "fourth")
    take_in(server, listing(echo="e", other="o", third="t", fourth="something else"))
    UpstreamServer.objects.create(name="away", transport="http", url="https://away.example/mcp", state="down")
    page = seen(alice)
    assert numbers(page) == (
        "3 of 4 exposed 1 asks every time 1 left to policies 1 never asks 1 changed, withheld 1 server not answering"
    )
    assert page.count("data-chip=") == 3
    assert "<code>shop_third</code><span>never asks</span>" in page


def test_the_words_of_a_ceiling_say_what_it_would_keep_out(alice: User, server: UpstreamServer) -> None:
    expose(alice, server)
    assert {each.risk_inherent for each in ComposedTool.objects.all()} == {5}
    page = seen(alice)
    assert "2 tools above it are not exposed, including 1 selected now." in page
    assert '<p data-ceiling-words="5">Every level may be exposed.</p>' in page


def test_what_a_ceiling_keeps_out_is_counted_apart_from_what_changed(
    alice: User, bob: User, server: UpstreamServer
) -> None:
    ask(bob, expose(alice, server))
    expose(alice, server, "other")
    assert "1 call that has not started will be withdrawn." in seen(alice)
    exposure.change("both", 1, signed_in(alice))
    page = seen(alice)
    assert numbers(page) == "0 of 2 exposed 0 ask every time 2 ticked but above L1"
    assert "None now: 2 are ticked but above L1." in page
    assert "of 2 selected, 2 of them above L1" in page
    take_in(server, listing(echo="Something else.", other="Say something else instead."))
    assert "1 ticked but above L1 1 changed, withheld" in numbers(seen(alice))


def test_a_server_that_was_never_reached_counts_nothing(alice: User) -> None:
    somewhere(alice)
    page = seen(alice)
    assert "not reached yet" in page
    assert "0 of 0" not in page


def test_the_alias_that_a_tool_has_or_would_get_is_its_value(alice: User, server: UpstreamServer) -> None:
    expose(alice, server, alias="say")
    page = seen(alice, LINES)
    assert 'value="say" placeholder="shop_echo"' in page
    assert 'value="shop_other" placeholder="shop_other"' in page
    assert page.count("data-is-default hidden") == 1


def test_what_upstreams_say_is_shown_as_text_with_hidden_characters_visible(
    alice: User, server: UpstreamServer
) -> None:
    found = listed("<b>bold</b>", HOSTILE, title=HOSTILE, annotations={"title": HOSTILE, "x": HOSTILE})
    take_in(server, Listing((found,)))
    UpstreamServer.objects.filter(pk=server.pk).update(state="down", reason=HOSTILE)
    tool = row(server, "<b>bold</b>").pk
    for page in (seen(alice, server="shop"), seen(alice, f"{DRAWER}/details/{tool}"), seen(alice, LINES)):
        assert "<img" not in page
        assert "<b>bold" not in page
        assert 'href="javascript' not in page
        assert not set("\u202e\u200b\x1b") & set(page)
        assert '<span class="esc">U+202E' in page


def test_a_tool_that_cannot_be_exposed_says_why(alice: User, server: UpstreamServer) -> None:
    take_in(server, Listing((listed("broken", inputSchema={"type": "array"}), listed("echo"), listed("fine"))))
    expose(alice, server)
    take_in(
        server, Listing((listed("broken", inputSchema={"type": "array"}), listed("echo", "Other."), listed("fine")))
    )
    exposure.change("both", 1, signed_in(alice))
    broken, echo, fine = seen(alice, LINES).split('<li class="tool')[1:]
    assert "Cannot be exposed. inputSchema: The schema is not for an object" in broken
    assert "disabled" in broken
    assert "<b>Definition changed</b>" in echo
    assert f"/servers/s/shop/tools/{row(server).pk}" in echo
    assert "data-above" in fine
    assert "disabled" in fine


def test_suspicious_texts_stand_beside_the_tool_with_their_place(alice: User, server: UpstreamServer) -> None:
    take_in(server, listing(echo=POISONED))
    page = seen(alice, LINES)
    assert "Suspicious text" in page
    assert "<code>/description</code>" in page
    assert "&lt;IMPORTANT&gt;" in page
    assert "I read the warnings" in page


def test_long_texts_are_folded_with_the_rest_counted_and_told_whole_in_the_details(
    alice: User, server: UpstreamServer
) -> None:
    take_in(server, listing(echo="word " * 100))
    assert "(340 more characters under Details)" in seen(alice, LINES)
    details = seen(alice, f"{DRAWER}/details/{row(server).pk}")
    assert "word " * 99 in details
    assert "&quot;What to say.&quot;" in details


def test_more_than_a_hundred_tools_come_in_pieces(alice: User) -> None:
    server = somewhere(alice)
    many = {f"tool_{n:03}": SAYS_IT_BACK for n in range(103)}
    take_in(server, listing(**many, tool_103=POISONED))
    first = seen(alice, LINES)
    assert (lines(first)[0], len(lines(first))) == ("tool_000", 100)
    assert "4 of 104 are not shown" in first
    assert "Apply, and select 3 more" in first
    assert "1 has suspicious text" in first
    assert len(lines(seen(alice, LINES, **{"from": 100}))) == 4
    assert len(lines(seen(alice, LINES, most=104))) == 104


@pytest.mark.servers("the SQL differs between the databases")
def test_tools_are_found_by_any_of_their_words_and_narrowed_to_what_needs_a_look(
    alice: User, server: UpstreamServer
) -> None:
    tools = {"echo": "e", "lenient": "Counts a shelf of Łódź.", "odd": POISONED, "fresh": "f"}
    take_in(server, listing(**tools))
    expose(alice, server)
    expose(alice, server, "lenient", hitl_mode="DISABLED", alias="agent_bond")
    take_in(server, listing(**tools | {"echo": "changed"}))
    found = {show: lines(seen(alice, f"{DRAWER}/list", show=show)) for show in ("withheld", "warned", "lenient", "new")}
    assert found == {"withheld": ["echo"], "warned": ["odd"], "lenient": ["lenient"], "new": ["fresh", "odd"]}
    assert lines(seen(alice, f"{DRAWER}/list", show="nonsense", server="shop")) == sorted(tools)
    finds = {
        "SHELF OF ŁÓDŹ": [],
        "shelf of Łódź": ["lenient"],
        "Len": ["lenient"],
        "bond": ["lenient"],
        "\0": sorted(tools),
    }
    for words, fit in finds.items():
        assert lines(seen(alice, f"{DRAWER}/list", find=words, server="shop")) == fit, words
    assert lines(seen(alice, f"{DRAWER}/list", show="exposed")) == ["echo", "lenient"]
    assert "No tool matches" in seen(alice, f"{DRAWER}/list", find="nowhere to be found")


@pytest.mark.servers("the SQL differs between the databases")
def test_selecting_all_takes_what_can_be_exposed_and_leaves_what_must_be_read(
    alice: User, server: UpstreamServer
) -> None:
    fit = (listed("echo"), listed("other"), listed("odd", POISONED))
    take_in(server, Listing((*fit, listed("broken", inputSchema={"type": "array"}))))
    expose(alice, server, "other", hitl_mode="DISABLED")
    everything = rest_of(server, Wanted(), 0, 5)
    assert (names(everything.free), names(everything.exposed), everything.warned) == (["echo"], ["other"], 1)
    below = rest_of(server, Wanted(), 0, 4)
    assert (below.free, names(below.exposed), below.warned) == ([], ["other"], 0)


def names(tools: list[UUID]) -> list[str]:
    return list(ComposedTool.objects.filter(pk__in=tools).values_list("name", flat=True))


def test_a_server_that_is_away_says_that_its_tools_are_in_no_catalog(alice: User, server: UpstreamServer) -> None:
    expose(alice, server)
    servers.enable(server.pk, enabled=False, actor=signed_in(alice))
    page = seen(alice, server="shop")
    assert "Its tools are not in the catalog: the server is disabled." in page
    assert "<span>not answering</span>" in page
