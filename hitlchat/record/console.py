"""The output of the `audit` command: for people with rich, plain, or as JSON."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Literal

from rich.console import Console
from rich.text import Text

from hitlchat.record.checking import Checked, Report, checked_words, plural

Style = Literal["rich", "plain", "json"]
MOST = 50


def verified(report: Report, style: Style) -> str:
    if style == "json":
        return json.dumps(report.as_json, indent=2)
    return _lines(_verified(report), style, good=report.is_whole)


def checked(found: Checked, noted: str, style: Style) -> str:
    if style == "json":
        return json.dumps({"genuine": found.is_genuine, **asdict(found)}, indent=2)
    return _lines(checked_words(found, noted), style, good=found.is_genuine)


def _verified(report: Report) -> Iterable[str]:
    counts = f"{plural(report.events, 'event')} in {plural(report.batches, 'batch', 'batches')}"
    if report.is_whole:
        yield f"Whole: {counts}, as they were sealed. {plural(report.calls, 'call')}, as their events say."
    else:
        first, *others = report.findings
        yield f"Broken: {first.words}"
        yield from (each.words for each in others[: MOST - 1])
        if len(others) >= MOST:
            yield f"… and {plural(len(others) - MOST + 1, 'thing')} more."
        yield f"Looked at {counts}, and at {plural(report.calls, 'call')}."
    yield from (f"Batch {each['batch']}: dropped by retention on {each['at']}, seal stands." for each in report.dropped)
    if report.late:
        yield f"{plural(report.late, 'event')} came late, and {'is' if report.late == 1 else 'are'} sealed as such."
    if report.uncovered:
        count = plural(report.uncovered, "call")
        yield f"Not covered by the record: what is kept of {count}, made before {report.uncovered_until} or up to then."
    if report.tail:
        yield f"Not sealed yet: the last {plural(report.tail, 'event')}. Of these nothing can be told."
    yield from report.notes
    if report.last_seal:
        yield f"The last seal is {report.last_seal}: note it elsewhere, and give it to --expect later."


def _lines(lines: Iterable[str], style: Style, *, good: bool) -> str:
    found = list(lines)
    if style == "plain":
        return "\n".join(found)
    console = Console(highlight=False, soft_wrap=True)
    with console.capture() as captured:
        head, *others = found
        console.print(Text("✓ " if good else "✗ ", style="bold green" if good else "bold red") + Text(head))
        for line in others:
            console.print(Text(f"  {line}", style="dim" if good else ""))
    return captured.get().rstrip("\n")
