"""The facts on a terminal: with colours and boxes, or plain, one fact a line."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Column, Table
from rich.text import Text

from hitlchat.approvals.console.text import Fact, Line, printable

NARROW = 20
# From so many columns on, an id stands whole in its line, to be copied.
ROOMY = 64
FURTHER = Text("    ")
BAR = Text("  │ ", style="cyan")
ESCAPED = "bold reverse"
STYLES = {"Warning": "bold yellow", "Question": "bold", "Hidden": "italic", "Digest": "dim", "Approval": "dim"}


def in_plain(facts: Iterable[Fact]) -> str:
    return printable("\n".join(line for fact in facts for line in fact.plain))


def in_boxes(facts: Iterable[Fact], *, colours: bool, width: int | None = None) -> str:
    """Nothing of anybody's is read as markup: every text is put together from pieces."""
    return drawn(Group(*map(_drawn, facts)), colours=colours, width=width)


def listed(columns: Iterable[str], rows: Iterable[Iterable[str]], *, colours: bool, width: int | None = None) -> str:
    first, *others = columns
    is_roomy = (width or shutil.get_terminal_size().columns) >= ROOMY
    table = Table(Column(first, no_wrap=is_roomy), *others, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(printable(cell), overflow="fold") for cell in row))
    return drawn(table, colours=colours, width=width)


def drawn(what: RenderableType, *, colours: bool, width: int | None = None) -> str:
    out = StringIO()
    # Colours only: whether a NO_COLOR is set is for the library to see.
    screen = Console(
        file=out,
        force_terminal=colours,
        color_system="auto" if colours else None,
        markup=False,
        highlight=False,
        emoji=False,
        width=width,
    )
    screen.print(what)
    return out.getvalue().rstrip("\n")


@dataclass(frozen=True)
class Led:
    """A text that goes over as many lines as it needs, each behind a lead of ours: so none of them begins a fact."""

    text: Text
    first: Text
    then: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(NARROW, options.max_width - len(self.then))
        for number, line in enumerate(self.text.wrap(console, width, overflow="fold")):
            yield (self.then if number else self.first) + line


def _drawn(fact: Fact) -> RenderableType:
    label = Text(f"{fact.label}:", style=STYLES.get(fact.label, "cyan"))
    if fact.kind != "value":
        return Led(Text(" ").join([label, Text("\n").join(map(_text, fact.lines))]), Text(""), FURTHER)
    return Group(Led(label, Text(""), FURTHER), *(Led(_text(line), BAR, BAR) for line in fact.lines))


def _text(line: Line) -> Text:
    text = Text(overflow="fold")
    for piece in line:
        text.append(printable(f"<{piece.text}>" if piece.hidden else piece.text), ESCAPED if piece.hidden else "")
    return text
