"""Values on the approval card: each in a box of its own, folded when it is long, and what is folded away counted."""

from dataclasses import dataclass

from hitlchat.gate.visible import Seen, see

FOLD_AFTER = 600
FOLD_AFTER_LINES = 12
SHOWN_OF_FOLDED = 400
SHOWN_LINES_OF_FOLDED = 8


@dataclass(frozen=True)
class Row:
    """A value, under its name if it has one; what exceeds the fold is `rest`, with its length in characters."""

    name: Seen
    type: str
    value: Seen
    rest: Seen | None = None
    hidden: int = 0
    hidden_lines: int = 0
    length: int = 0
    # Of the value as a whole, folded or not.
    value_warnings: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.value.pieces or self.value.plain == ""

    @property
    def folded(self) -> str:
        """How much is folded away, in words."""
        many = f"{self.hidden:,} {'character' if self.hidden == 1 else 'characters'}"
        return many if self.hidden_lines < 2 else f"{many} ({self.hidden_lines:,} lines)"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of the whole value and the name, each sentence once."""
        return tuple(dict.fromkeys((*self.name.warnings, *self.value_warnings)))


def box(text: str, name: str = "", word: str = "") -> Row:
    """`text` in a box, under `name` with its type in one `word`."""
    whole = see(text)
    if len(text) <= FOLD_AFTER and text.count("\n") < FOLD_AFTER_LINES:
        return Row(see(name), word, whole, length=len(text), value_warnings=whole.warnings)
    at = _fold(text)
    shown, rest = (see(part, stored=whole.stored) for part in (text[:at], text[at:]))
    hidden, lines = len(text) - at, text.count("\n", at) + (not text.endswith("\n"))
    return Row(see(name), word, shown, rest, hidden, lines, len(text), whole.warnings)


def _fold(text: str) -> int:
    """Where `text` folds: after some characters or some lines, whatever comes first."""
    at = -1
    for _ in range(SHOWN_LINES_OF_FOLDED):
        at = text.find("\n", at + 1, SHOWN_OF_FOLDED)
        if at < 0:
            return SHOWN_OF_FOLDED
    return at + 1
