"""`manage.py servers`: what it prints, what it changes, and how it fails."""

import io
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from hitlchat.gate.models import Tool
from hitlchat.upstreams import endpoint
from hitlchat.upstreams.client.listing import Listing
from hitlchat.upstreams.models import ToolEvent, UpstreamServer
from tests.upstreams.shops import POISONED, listed, listing, row, shop_in, take_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("typed")]

URL = "https://shop.example/mcp"
KEY = "sk-very-secret-0815"


def servers(*arguments: str) -> str:
    """What it prints; CommandError is how it ends with exit code 1."""
    printed = io.StringIO()
    call_command("servers", *arguments, stdout=printed, stderr=printed)
    return printed.getvalue()


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What standard input has: no terminal, and empty unless a test writes to it."""
    given = io.StringIO()
    monkeypatch.setattr("sys.stdin", given)
    return given


def stored(name: str = "shop") -> UpstreamServer:
    return UpstreamServer.objects.get(name=name)


def test_servers_are_listed_with_what_is_known_of_them(server: UpstreamServer) -> None:
    printed = servers("list")
    head, line = printed.splitlines()
    assert head.split() == ["name", "address", "transport", "state", "tools", "exposed", "risk", "reason"]
    assert line.split() == ["shop", URL, "http", "new", "2", "0", "L5"]


def test_a_server_is_added_with_a_secret_from_standard_input(alice: User, typed: io.StringIO) -> None:
    typed.write(f"{KEY}\n")
    typed.seek(0)
    options = ("--header", "X-Key", "--plain-header", "X-Team=blue", "--header", "Authorization=Bearer ${SHOP_KEY}")
    assert "None of its tools is exposed" in servers("add", "shop", URL, *options, "--call-seconds", "5")
    found = stored()
    assert (found.url, found.call_seconds, found.created_by) == (URL, 5, alice)
    assert KEY not in str(found.headers)
    shown = servers("show", "shop")
    assert "X-Key: (secret, kept)" in shown
    assert "X-Team: blue" in shown
    assert "Authorization: Bearer ${SHOP_KEY}" in shown
    assert KEY not in shown
    assert [kept["secret"] for kept in found.headers] == [True, True, False]


def test_what_is_wrong_is_said_and_changes_nothing(
    subtests: pytest.Subtests, alice: User, bob: User, typed: io.StringIO
) -> None:
    for arguments, said in [
        (("add", "has spaces", URL), "Use 1 to 64 letters"),
        (("add", "shop", "ftp://shop.example"), "https://"),
        (("add", "shop", URL, "--plain-header", KEY), "expected NAME=VALUE"),
        (("add", "shop", URL, "--header", "X-Key=short"), "at least 6 characters"),
        (("add", "shop"), "Expected either a URL"),
        (("add", "shop", URL, "--program", "shop"), "Expected either a URL"),
        (("add", "shop", "--program", "shop"), "MCP_ALLOW_STDIO"),
        (("show", "nope"), "no server named 'nope'"),
        (("--user", "bob", "add", "shop", URL), "no active administrator named 'bob'"),
        (("expose", "nope", "echo"), "no server named 'nope'"),
    ]:
        with subtests.test(arguments=arguments):
            with pytest.raises(CommandError) as caught:
                servers(*arguments)
            assert said in str(caught.value)
            assert KEY not in str(caught.value)
            assert not UpstreamServer.objects.exists()


def test_of_several_administrators_one_has_to_be_named(alice: User, typed: io.StringIO) -> None:
    User.objects.create_superuser("dora", password="x")
    with pytest.raises(CommandError, match="--user NAME"):
        servers("add", "shop", URL)
    servers("--user", "dora", "add", "shop", URL)
    assert str(stored().created_by) == "dora"


def test_nobody_adds_anything_while_there_is_no_administrator(bob: User, typed: io.StringIO) -> None:
    with pytest.raises(CommandError, match="administrator"):
        servers("add", "shop", URL)


def test_a_program_is_added_only_with_its_exact_command_line(
    alice: User, typed: io.StringIO, allow_stdio: None
) -> None:
    adding = ("add", "clock", "--program", "clock")
    with pytest.raises(CommandError, match="Confirm with --confirm"):
        servers(*adding, "--args", "--zone", "a b")
    with pytest.raises(CommandError, match="--confirm"):
        servers(*adding, "--confirm", "clock --zone", "--args", "--zone", "a b")
    assert not UpstreamServer.objects.exists()
    servers(*adding, "--confirm", "clock --zone 'a b'", "--env", "KEY=${CLOCK_KEY}", "--args", "--zone", "a b")
    found = stored("clock")
    assert (found.command, found.args, found.transport) == ("clock", ["--zone", "a b"], "stdio")
    assert "clock --zone 'a b'" in servers("show", "clock")


def test_a_server_is_switched_off_and_on_and_connected_anew(server: UpstreamServer) -> None:
    servers("disable", "shop")
    assert stored().state == "disabled"
    with pytest.raises(CommandError, match="disabled"):
        servers("reconnect", "shop")
    servers("enable", "shop")
    servers("reconnect", "shop")
    assert (stored().state, stored().revision) == ("new", 4)


def test_a_server_is_removed_only_after_a_yes(server: UpstreamServer) -> None:
    with pytest.raises(CommandError, match="Nothing was changed"):
        servers("delete", "shop")
    assert "is removed" in servers("delete", "shop", "--yes")
    assert not UpstreamServer.objects.exists()


@pytest.mark.slow("starts servers")
def test_a_test_tells_what_is_there_or_fails(alice: User, typed: io.StringIO, tmp_path: Path) -> None:
    shop = shop_in(tmp_path)
    servers("add", "shop", shop.program.url)
    with pytest.raises(CommandError, match="No connection"):
        servers("test", "shop")
    shop.program.start()
    try:
        printed = servers("test", "shop")
    finally:
        shop.program.kill()
    assert "changing 1" in printed
    assert "echo" in printed
    assert stored().state == "new"


def test_tools_are_listed_exposed_and_hidden(server: UpstreamServer) -> None:
    echo, _ = servers("tools", "shop").splitlines()[1:]
    assert echo.split()[:4] == ["echo", "shop_echo", "new", "REQUIRED"]
    assert "as say (ask every time)" in servers("expose", "shop", "echo", "--alias", "say", "--prompt", "Say it?")
    tool = Tool.objects.get()
    assert (tool.name, tool.published, tool.prompt_template) == ("say", True, "Say it?")
    assert len(servers("tools", "shop", "--state", "exposed").splitlines()) == 2
    servers("hide", "shop", "echo")
    assert not Tool.objects.get().published
    event = ToolEvent.objects.latest("id")
    assert (event.means, str(event.actor)) == ("console", "alice")


def test_less_oversight_has_to_be_meant(server: UpstreamServer) -> None:
    with pytest.raises(CommandError, match="--less-oversight"):
        servers("expose", "shop", "echo", "--mode", "DISABLED")
    assert not Tool.objects.exists()
    assert "(never ask)" in servers("expose", "shop", "echo", "--mode", "DISABLED", "--less-oversight")


def test_what_speaks_against_exposing_is_said(server: UpstreamServer) -> None:
    take_in(server, listing(echo=POISONED))
    with pytest.raises(CommandError, match="Read the warnings"):
        servers("expose", "shop", "echo")
    printed = servers("expose", "shop", "echo", "--warnings-read")
    assert "/description" in printed
    with pytest.raises(CommandError, match="Alias: "):
        servers("expose", "shop", "echo", "--alias", "has spaces")
    with pytest.raises(CommandError, match="no tool named 'nope'"):
        servers("expose", "shop", "nope")


def test_a_change_is_shown_and_accepted_as_it_was_looked_at(server: UpstreamServer) -> None:
    servers("expose", "shop", "echo")
    take_in(server, listing(echo="Something else."))
    assert "withheld" in servers("tools", "shop")
    with pytest.raises(CommandError, match=f"--digest {row(server).seen_digest}"):
        servers("accept", "shop", "echo")
    with pytest.raises(CommandError, match="changed again"):
        servers("accept", "shop", "echo", "--digest", "0" * 64)
    servers("accept", "shop", "echo", "--digest", row(server).seen_digest)
    assert row(server).state == "exposed"


def test_nothing_that_a_server_says_reaches_the_terminal_as_more_than_text(server: UpstreamServer) -> None:
    take_in(server, Listing((listed("e\u202echo\x1b[31m"), listed("[bold]two\nlines"))))
    UpstreamServer.objects.update(reason="\x1b]0;owned\x07[red]gone\r\nup", told_name="\u200bshop")
    printed = "".join(servers(*each) for each in (("list",), ("show", "shop"), ("tools", "shop")))
    assert not {"\x1b", "\x07", "\r", "\u202e", "\u200b"} & set(printed)
    assert "[bold]two" in printed
    assert "[red]gone" in printed


def test_what_is_kept_of_a_secret_is_sent_whole(alice: User, typed: io.StringIO) -> None:
    servers("add", "shop", URL, "--header", f"X-Key={KEY}")
    assert endpoint.spec_of(stored()).headers == {"X-Key": KEY}
