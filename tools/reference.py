"""Writes docs/reference.md from the code: every command of the console with its options, every event on record.

`make reference` runs it, and a test compares the page with what it would write.
"""

# ruff: noqa: SLF001  # argparse has no other way to ask for its arguments

import os
import re
import sys
import tempfile
from argparse import REMAINDER, Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from django.core.management import BaseCommand, get_commands, load_command_class

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "reference.md"
HEAD: Final = """\
# Reference

`make reference` writes this page from the code. For settings see the [README](../README.md#configuration) and
[operating.md](operating.md#settings), for metrics, log events and traces [operating.md](operating.md#numbers), for REST
operations `/api/docs`, and for addresses and who may open them [access.md](access.md).
"""
CONSOLE: Final = """
## Console

`manage.py` stands for `.venv/bin/python manage.py`, and `--help` prints the same. These change nothing if a running
server has [another configuration](operating.md#one-file-of-settings), unless `--anyway` is given: {checked} and
`migrate`; `audit check` does not look. Besides there are the commands of Django, such as `changepassword`,
`createsuperuser` and `migrate`.
"""
EVENTS: Final = """
## Events on record

`GET /api/audit` and exports of [the record](record.md) name them. Braces stand for values of the event's data.
"""
# Django's own, which ours only say more about.
OF_DJANGO: Final = frozenset(("createsuperuser", "migrate"))
# What every command takes.
COMMON: Final = {action.dest for action in BaseCommand().create_parser("manage.py", "")._actions} | {"anyway"}
# Events without a sentence on a page, or with one for some of them.
SILENT: Final[Mapping[str, str]] = {
    "attention.announcement_read": "A person has read that there are attention checks",
    "attention.check_answered": "An attention check was answered",
    "attention.check_planted": "An attention check was put before a person",
    "conversation.forgotten": "A conversation with an approval setting was removed for good",
    "conversation.shared": "A conversation got a link that others can read it by",
    "conversation.unshared": "That link was ended",
    "history.exported": "The history was exported",
    "notice.arguments_allowed": "Notices may hold arguments",
    "notice.arguments_withheld": "Notices may no longer hold arguments",
    "notice.mail_off": "Notices by e-mail were switched off",
    "notice.mail_on": "An address for notices was confirmed, or they were switched on again",
    "notice.tested": "A webhook was tested",
    "notice.webhook_added": "A webhook was added",
    "notice.webhook_gone": "A webhook was switched off, since its receiver answered 410",
    "notice.webhook_key_changed": "A webhook got another key",
    "notice.webhook_off": "A webhook was switched off",
    "notice.webhook_on": "A webhook was switched on",
    "notice.webhook_removed": "A webhook was removed",
    "notice.wishes_changed": "A person changed what they are notified of",
    "record.dropped": "Events were dropped by retention",
    "record.exported": "The record, the receipt of a call or the list of events was exported",
    "record.key_changed": "The key of the record was changed",
    "record.stated": "The state of what can make the gate ask less, without a change",
    "record.verified": "The record was verified on its page",
    "run.hard_stop": "A run was ended for its length",
    "run.offered": "The tools that the model saw in a turn, of a catalog with more",
    "run.repeated": "A run was stopped because it repeated a call",
    "run.wrapped_up": "The model was told to come to an end",
    "upstream.noted": "Events of upstream tools, by their digests",
}


def page() -> str:
    """Return the page as it should be."""
    named = (name for name, app in get_commands().items() if app == "hitlchat" and name not in OF_DJANGO)
    parsers = {name: load_command_class("hitlchat", name).create_parser("manage.py", name) for name in sorted(named)}
    checked = [f"`{name}`" for name, parser in parsers.items() if "--anyway" in parser._option_string_actions]
    text = HEAD + CONSOLE.format(checked=", ".join(checked))
    for name, parser in parsers.items():
        text += f"\n## manage.py {name}\n\n{' '.join((parser.description or '').split())}\n"
        if rows := [*_rows(parser)]:
            text += _table(("argument", "what it does"), rows)
    events_in_words = ((f"`{name}`", words) for name, words in sorted(events().items()))
    return text + EVENTS + _table(("event", "what it says"), events_in_words)


def events() -> dict[str, str]:
    """Return what each event of the record says, by its name."""
    # They need the settings.
    from hitlchat.approvals.history.views import WORDS  # noqa: PLC0415
    from hitlchat.gate.history.changes import SENTENCES  # noqa: PLC0415

    found = {**WORDS, **SENTENCES, **SILENT}
    return {name: words.removesuffix(".") for name, words in found.items()}


def _rows(parser: ArgumentParser) -> Iterator[tuple[str, str]]:
    """Yield arguments and what they mean: those of the command, then each of its actions with its own."""
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            for name, sub in action.choices.items():
                given = [_called(each) for each in sub._actions if not each.option_strings]
                yield f"**`{' '.join((name, *given))}`**", _cell(helps[name])
                yield from _rows(sub)
        elif action.dest not in COMMON and action.help:
            yield f"`{_called(action)}`", _meaning(action)


def _called(action: Action) -> str:
    shown = action.metavar if isinstance(action.metavar, str) else action.dest.upper().replace("_", "-")
    if action.choices:
        shown = "\\|".join(map(str, action.choices))
    if not action.option_strings:
        return f"[{shown}]" if action.nargs in ("?", "*") else shown
    more = " …" if action.nargs == REMAINDER else f" {shown}" if action.nargs != 0 else ""
    return action.option_strings[0] + more


def _meaning(action: Action) -> str:
    words = _cell(action.help or "")
    is_plain = action.default and isinstance(action.default, int | str)
    return (
        f"{words} (default: {action.default})" if action.nargs != 0 and is_plain and "default" not in words else words
    )


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def _table(heads: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(
        ("", f"| {heads[0]} | {heads[1]} |", "|---|---|", *(f"| {one} | {two} |" for one, two in rows), "")
    )


def main() -> None:
    import django  # noqa: PLC0415

    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"HITLCHAT_DATA": folder, "DJANGO_SETTINGS_MODULE": "hitlchat.settings"}
        django.setup()
        PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
