"""The options of the command `servers`, and the server that they describe."""

import argparse
import getpass
import sys
from typing import Any

from django.core.management.base import CommandError

from hitlchat.gate.models import HitlMode
from hitlchat.upstreams.gallery import trusting
from hitlchat.upstreams.models import ToolState
from hitlchat.upstreams.servers import ServerDraft
from hitlchat.upstreams.values import Value

WITH_A_SERVER = {
    "show": "everything about one server, but its secrets",
    "test": "connect once, with a client of its own, and say what came of it",
    "enable": "have it connected",
    "disable": "close its connection; its tools leave the catalog",
    "reconnect": "close its connection, and open a new one",
}


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", default="", help="who does it: an administrator's user name, if there are several")
    found = parser.add_subparsers(dest="what", required=True, metavar="COMMAND")
    found.add_parser("list", help="all servers")
    for name, said in WITH_A_SERVER.items():
        found.add_parser(name, help=said).add_argument("name")
    deleting = found.add_parser("delete", help="remove a server with its tools")
    deleting.add_argument("name")
    deleting.add_argument("--yes", action="store_true", help="do not ask")
    _add_adding(found.add_parser("add", help="a new server"))
    tools = found.add_parser("tools", help="the tools of a server")
    tools.add_argument("name")
    tools.add_argument("--state", choices=ToolState.values, default="")
    _add_exposing(found.add_parser("expose", help="offer a tool, and say how it asks"))
    _with_a_tool(found.add_parser("hide", help="do not offer a tool any more"))
    _add_accepting(found.add_parser("accept", help="take a tool as its server lists it now"))


def _add_adding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name")
    parser.add_argument("url", nargs="?", default="", help="its address")
    parser.add_argument("--sse", action="store_true", help="it speaks HTTP with server-sent events (older)")
    parser.add_argument("--program", default="", help="start this on the server instead (stdio)")
    parser.add_argument(
        "--args", dest="program_args", nargs=argparse.REMAINDER, default=[], help="all that follows is for the program"
    )
    for kind, said in (("header", "a header"), ("env", "a variable for the program")):
        secret = f"{said}, secret; without =VALUE you are asked, or standard input has it on a line"
        _many(parser, f"--{kind}", "NAME[=VALUE]", secret)
        _many(parser, f"--plain-{kind}", "NAME=VALUE", f"{said} that anyone may see")
    parser.add_argument("--allow-private", action="store_true", help="its name may lead to a private address")
    parser.add_argument("--call-seconds", type=int, default=60, help="how long one call may take")
    parser.add_argument("--older-protocol", action="store_true", help="its newest revision of MCP is broken")
    parser.add_argument("--docs", default="", help="the address of its documentation")
    parser.add_argument("--disabled", action="store_true", help="do not connect yet")
    parser.add_argument("--confirm", default="", metavar="COMMAND-LINE", help="start this program, word for word")


def _many(parser: argparse.ArgumentParser, name: str, metavar: str, said: str) -> None:
    parser.add_argument(name, action="append", default=[], metavar=metavar, help=said)


def _with_a_tool(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("name")
    parser.add_argument("tool", help="the server's own name of it")
    return parser


def _add_exposing(parser: argparse.ArgumentParser) -> None:
    _with_a_tool(parser)
    parser.add_argument("--alias", help="the name under which it is offered")
    parser.add_argument("--description", help="instead of the server's own")
    parser.add_argument("--mode", choices=HitlMode.values, help="how it asks (REQUIRED at first)")
    parser.add_argument("--prompt", help="the question of the approval card")
    parser.add_argument("--condition", help="a Python expression that decides, for CONDITIONAL")
    parser.add_argument("--warnings-read", action="store_true", help="you have read the warnings about its texts")
    parser.add_argument("--less-oversight", action="store_true", help="also where it will ask less than it did")


def _add_accepting(parser: argparse.ArgumentParser) -> None:
    _with_a_tool(parser)
    parser.add_argument("--digest", default="", help="of what you have looked at; else you are shown it and asked")
    parser.add_argument("--keep-mode", action="store_true", help="also where it does not ask every time")
    parser.add_argument("--warnings-read", action="store_true", help="you have read the warnings about its texts")


def draft_of(options: dict[str, Any]) -> ServerDraft:
    """CommandError."""
    if bool(options["url"]) == bool(options["program"]):
        raise CommandError("Expected an address, or --program and what to start.")
    draft = ServerDraft(
        name=options["name"],
        transport="stdio" if options["program"] else "sse" if options["sse"] else "http",
        url=options["url"],
        command=options["program"],
        headers=_values("header", options),
        env=_values("env", options),
        args=tuple(options["program_args"]),
        allow_private=options["allow_private"],
        call_seconds=options["call_seconds"],
        older_protocol=options["older_protocol"],
        docs_url=options["docs"],
        enabled=not options["disabled"],
    )
    return trusting.vouched(draft, "")


def _values(kind: str, options: dict[str, Any]) -> tuple[Value, ...]:
    found = [Value(*_pair(text)) for text in options[kind]]
    for text in options[f"plain_{kind}"]:
        name, given, value = text.partition("=")
        if not given:
            raise CommandError(f"--plain-{kind}: expected NAME=VALUE.")
        found.append(Value(name, value, secret=False))
    return tuple(found)


def _pair(text: str) -> tuple[str, str]:
    name, given, value = text.partition("=")
    return name, value if given else _asked_for(name)


def _asked_for(name: str) -> str:
    if sys.stdin.isatty():
        return getpass.getpass(f"{name}: ")
    return sys.stdin.readline().rstrip("\n")
