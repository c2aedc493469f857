"""What can be typed behind `manage.py approvals`."""

from argparse import ArgumentParser, ArgumentTypeError
from uuid import UUID

from django.core.management.base import CommandParser

from hitlchat.gate.oversight import HIGHEST_RISK

MOST = 1000
WATCHING = "Waiting for questions. Ctrl-C ends it."
ONLY_SHOWN = "Waiting for questions, which are only shown: to answer, say who you are with --as."
NO_TERMINAL = "Waiting for questions, which are only shown: they are answered at a terminal, and this is none."


def add(parser: CommandParser) -> None:
    what = parser.add_subparsers(dest="what", required=True)
    listed = what.add_parser("list", help="what waits, the most urgent first")
    _narrowed(listed)
    _printed(listed)
    listed.add_argument("--limit", type=_limit, default=50, help=f"how many at most, up to {MOST:,}")
    shown = what.add_parser("show", help="one question with all that its card says, or what became of it")
    shown.add_argument("approval", type=UUID)
    shown.add_argument("--full", action="store_true", help="with all that is folded away, and the raw JSON")
    shown.add_argument("--as", dest="person", metavar="USER", help="also whether this person may answer")
    _printed(shown)
    _answers(what.add_parser("approve", help="say yes to exactly this call, as a person"), digest=True)
    _answers(what.add_parser("decline", help="say no, as a person"), digest=False)
    watched = what.add_parser("watch", help="wait for questions, show each, and ask what to do with it")
    watched.add_argument("--as", dest="person", metavar="USER", help="who answers; without it they are only shown")
    _narrowed(watched)
    _printed(watched)
    extend = what.add_parser("extend", help="put a deadline off by five minutes, in its last minute")
    extend.add_argument("approval", type=UUID)
    extend.add_argument("--user", required=True, help="the username of the person who does it")


def _narrowed(parser: ArgumentParser) -> None:
    parser.add_argument("--for", dest="whose", metavar="USER", help="only what this person may answer")
    parser.add_argument("--tool", default="", metavar="NAME", help="only calls of this tool")
    parser.add_argument("--risk", type=_risk, default=0, metavar="LEVEL", help="only this risk or higher, such as L3")


def _printed(parser: ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--plain", action="store_true", help="no colours and no boxes: one fact a line")
    how.add_argument("--json", action="store_true", help="one JSON object a line, with the fields of the REST API")


def _answers(parser: ArgumentParser, *, digest: bool) -> None:
    parser.add_argument("approval", type=UUID)
    parser.add_argument("--as", dest="person", metavar="USER", required=True, help="the person whose answer it is")
    if digest:
        parser.add_argument("--digest", help="of what was read with `show`; without it, the card is shown here first")
        parser.add_argument("--plain", action="store_true", help="no colours and no boxes: one fact a line")
    else:
        parser.add_argument("--reason", default="", help="why; the model is told")


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST:
        raise ArgumentTypeError(f"expected a whole number from 1 to {MOST:,}")
    return int(text)


def _risk(text: str) -> int:
    level = text.upper().removeprefix("L")
    if not level.isascii() or not level.isdigit() or not 0 <= int(level) <= HIGHEST_RISK:
        raise ArgumentTypeError(f"expected a level from L0 to L{HIGHEST_RISK}")
    return int(level)
