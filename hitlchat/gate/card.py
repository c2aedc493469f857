"""The approval card's contents, made from the stored disclosure alone.

Everything in it is text (SR-1 to SR-8). First come the boxes: values, which fold where they are long, and the effect
preview with what differs in a later one.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any

from django.utils.translation import gettext_noop

from hitlchat.base import canonical, diff
from hitlchat.base.sentences import translatable
from hitlchat.base.visible import Seen, see
from hitlchat.gate import deciders, disclosure, meant, oversight, pace, question, why
from hitlchat.gate.actor import Actor
from hitlchat.gate.contents import spelled
from hitlchat.gate.meant import Meaning
from hitlchat.gate.models import Approval, CallerKind
from hitlchat.gate.pace import Matter
from hitlchat.gate.provenance import Provenance, by_argument
from hitlchat.gate.question import Asking, asking_of
from hitlchat.gate.status import Status
from hitlchat.gate.who import Standing, stance_of, unusual_rules
from hitlchat.gate.why import Whys

FOLD_AFTER = 600
FOLD_AFTER_LINES = 12
SHOWN_OF_FOLDED = 400
SHOWN_LINES_OF_FOLDED = 8

ROWS_SHOWN = 8
# What an argument is compared with: the declined call of an attempt after it, or the last approved call.
COMPARED = {
    True: (gettext_noop("In the declined call:"), gettext_noop("Not in the declined call.")),
    False: (gettext_noop("In the last approved call:"), gettext_noop("Not in the last approved call.")),
}

DEFAULT = gettext_noop("The default: the call does not give this value.")
ON_BY_DEFAULT = gettext_noop("It is on by default: the call does not turn it on.")

# Around what is different.
CONTEXT = 160
MOST_OF_DIFFERENCE = 600
OUT_OF_SIGHT = gettext_noop("The difference is in the part left out.")
_WORD_OR_SPACE = re.compile(r"\s+|\S+")

Preview = dict[str, Any]

RISK_LABELS = (
    gettext_noop("Verified"),
    gettext_noop("Safe"),
    gettext_noop("Low"),
    gettext_noop("Moderate"),
    gettext_noop("High"),
    gettext_noop("Critical"),
)
FROM_OUTSIDE = gettext_noop("A value comes from outside.")
NEARLY_THE_SAME = gettext_noop("A value is nearly the same as another one in the conversation.")
NOT_AS_WRITTEN = gettext_noop("The call has something otherwise than the message.")
CAUTIONED = gettext_noop("A second model cautions.")
MOST_ROWS = 20
MOST_FACTS = 3


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
    # Where it comes from, if the person typed it nowhere.
    origins: tuple[Provenance, ...] = ()
    # What the value means, in hitlchat's words.
    meanings: tuple[Meaning, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.value.pieces or self.value.plain == ""

    @property
    def folded(self) -> str:
        many = f"{self.hidden:,} {'character' if self.hidden == 1 else 'characters'}"
        return many if self.hidden_lines < 2 else f"{many} ({self.hidden_lines:,} lines)"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return warnings about the whole value, the name and what was decoded, each sentence once."""
        decoded = (warning for meaning in self.meanings if meaning.value for warning in meaning.value.warnings)
        return tuple(dict.fromkeys((*self.name.warnings, *self.value_warnings, *decoded)))

    @property
    def alerts(self) -> tuple[str, ...]:
        """Return all that a yes takes a tick for."""
        cautions = (meaning.words for meaning in self.meanings if meaning.caution)
        origins = (
            *([FROM_OUTSIDE] if any(each.origin == "outside" for each in self.origins) else []),
            *([NEARLY_THE_SAME] if any(each.near for each in self.origins) else []),
            *([NOT_AS_WRITTEN] if any(each.wrote for each in self.origins) else []),
        )
        return (*self.warnings, *cautions, *origins)


@dataclass(frozen=True)
class Part:
    """A stretch of text or a table's cell; `changed` if it differs between before and now."""

    text: Seen
    changed: bool = False


Line = tuple[Part, ...]


@dataclass(frozen=True)
class Table:
    """A table of a preview. With no `columns`, each row's first cell is its name."""

    columns: tuple[Seen, ...]
    rows: tuple[Line, ...]
    more_rows: tuple[Line, ...] = ()

    @property
    def hidden(self) -> int:
        return sum(len(cell.text.plain) for row in self.more_rows for cell in row)

    @property
    def warnings(self) -> tuple[str, ...]:
        cells = (cell.text for row in (*self.rows, *self.more_rows) for cell in row)
        return tuple(dict.fromkeys(warning for seen in (*self.columns, *cells) for warning in seen.warnings))


@dataclass(frozen=True)
class Effect:
    """A text in a box, or in `parts` as far as it differs; or a table, with a text as its heading; or what went wrong.
    The `notes` are hitlchat's own words.
    """

    text: Row | None = None
    parts: tuple[Part, ...] = ()
    table: Table | None = None
    error: Row | None = None
    notes: tuple[str, ...] = ()

    @property
    def hidden(self) -> int:
        return sum(part.hidden for part in (self.text, self.table, self.error) if part)

    @property
    def alerts(self) -> tuple[str, ...]:
        """Return all warnings, those of the boxes too."""
        return tuple(warning for part in (self, self.text, self.error) if part for warning in part.warnings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return warnings about parts and table; a box has its own."""
        found = [warning for part in self.parts for warning in part.text.warnings]
        return tuple(dict.fromkeys([*found, *(self.table.warnings if self.table else ())]))


@dataclass(frozen=True)
class Again:
    """The reason to ask again, and what is different; `whole` when that is all there is to see."""

    why: Seen
    before: Effect
    now: Effect
    whole: bool

    @property
    def hidden(self) -> int:
        return self.before.hidden + self.now.hidden


@dataclass(frozen=True)
class TitlePiece:
    """A stretch of the question; values filled into it are shown in boxes, so that none can go on with the sentence."""

    text: Seen
    is_value: bool


@dataclass(frozen=True)
class Card:
    id: str
    round: int
    call_id: str
    status: Status
    prompt: Seen
    title: tuple[TitlePiece, ...]
    tool_name: Seen
    origin: Seen
    asked_by: str
    for_whom: Seen
    risk: int
    # What a yes needs goes by this level.
    care: int
    risk_unknown: bool
    reason: Seen
    facts: tuple[Seen, ...]
    more_facts: tuple[Seen, ...]
    rows: tuple[Row, ...]
    more_rows: tuple[Row, ...]
    raw: Seen
    effect: Effect | None
    again: Again | None
    deadline: datetime
    digest: str
    grantable: bool
    # Who decides, where there is something to say of it; and how that stands for whom it is shown to.
    decides: Seen | None = None
    who: Standing | None = None
    times: int = 1
    # Of a call that asks the person a question: then this is all there is to see.
    asks: Asking | None = None
    # Names of the agents through which the call comes, the outermost first.
    agents: tuple[Seen, ...] = ()
    # What the person said last.
    said: Seen | None = None
    # Which attempt it is after declined calls, and what was to be done instead of the last one.
    attempt: int = 1
    instead: Seen | None = None
    # What the last approved call, or the declined one, had besides, and how many more arguments differ from its.
    missing: tuple[Row, ...] = ()
    more_differ: int = 0
    # What the message has to say against the tool itself, such as “test” against one of production.
    elsewhere: Seen | None = None
    # What a yes of the person whom it is shown to has to repeat, if anything.
    matter: Matter | None = None
    # What was asked about the call, and whether the person may ask; None: neither.
    whys: Whys | None = None
    # What another model says against it, by the name of that one; a yes may take a tick for it.
    caution: Seen | None = None
    second_model: Seen | None = None
    takes_tick: bool = False

    @property
    def key(self) -> str:
        """Names this card on a page: asked again, once more, or answered by its person, it is another one."""
        named = key(self.id, self.round, cautioned=self.caution is not None)
        named += f"-{self.times}x" if self.times > 1 else ""
        named += "-matter" if self.matter else ""
        return named if self.who is None or self.who.stance == "may" else f"{named}-{self.who.stance}"

    @property
    def risk_label(self) -> str:
        return RISK_LABELS[self.risk]

    @property
    def short_digest(self) -> str:
        return self.digest[:12]

    @property
    def hidden(self) -> int:
        """Characters that are folded away; nothing of a question is."""
        if self.asks:
            return 0
        shown = sum(part.hidden for part in (*self.rows, self.effect, self.again) if part)
        return shown + sum(row.length for row in self.more_rows)

    @property
    def hidden_count(self) -> str:
        return f"{self.hidden:,}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings about everything but the arguments, each sentence once."""
        shown = (*(piece.text for piece in self.title), self.tool_name, self.origin, self.for_whom, self.reason)
        shown += (*self.facts, *self.more_facts, *self.agents, *([self.instead] if self.instead else []))
        # What stands in the title, too, is warned of beside its value.
        below = {warning for row in (*self.rows, *self.more_rows) for warning in row.warnings}
        return tuple(dict.fromkeys(each for seen in shown for each in seen.warnings if each not in below))

    @property
    def alerts(self) -> tuple[str, ...]:
        """Return all that a yes takes a tick for, folded or not, each sentence once."""
        boxes = [alert for row in (*self.rows, *self.more_rows, *self.missing) for alert in row.alerts]
        if self.elsewhere:
            boxes.append(NOT_AS_WRITTEN)
        if self.takes_tick:
            boxes.append(CAUTIONED)
        effects = (self.effect, self.again and self.again.before, self.again and self.again.now)
        return tuple(
            dict.fromkeys([*self.warnings, *boxes, *(each for part in effects if part for each in part.alerts)])
        )

    @property
    def dangerous(self) -> bool:
        return self.care >= 4

    @property
    def care_note(self) -> str:
        """Return why a yes needs more than the level shown would; empty if it does not."""
        if self.care <= self.risk:
            return ""
        return translatable(f"If it did not always ask, it would be L{self.care}: approving it takes the same care.")


def box(text: str, name: str = "", word: str = "") -> Row:
    whole = see(text)
    if len(text) <= FOLD_AFTER and text.count("\n") < FOLD_AFTER_LINES:
        return Row(see(name), word, whole, length=len(text), value_warnings=whole.warnings)
    at = _fold(text)
    shown, rest = (see(part, stored=whole.stored) for part in (text[:at], text[at:]))
    hidden, lines = len(text) - at, text.count("\n", at) + (not text.endswith("\n"))
    return Row(see(name), word, shown, rest, hidden, lines, len(text), whole.warnings)


def effect(shown: dict[str, Any]) -> Effect:
    """Return a stored preview as it is shown. Raises: KeyError, where it lacks a part."""
    cut = tuple(shown["cut"])
    if shown["error"] is not None:
        return Effect(error=box(shown["error"]), notes=cut)
    if (table := shown["table"]) is not None:
        rows = [tuple(Part(see(cell)) for cell in row) for row in table["rows"]]
        heading = box(shown["text"]) if shown["text"] else None
        return Effect(text=heading, table=folded(table["columns"], rows), notes=cut)
    return Effect(text=box(shown["text"]), notes=cut)


def folded(columns: Sequence[str], rows: Sequence[Line]) -> Table:
    at = len(rows) if is_short(rows) else ROWS_SHOWN
    return Table(tuple(map(see, columns)), tuple(rows[:at]), tuple(rows[at:]))


def is_short(rows: Sequence[object]) -> bool:
    # One or two more are not worth a fold.
    return len(rows) <= ROWS_SHOWN + 2


def again(note: dict[str, Any], shown: Preview) -> Again:
    """`note` is the disclosure's note on asking again, `shown` the preview as it is now. KeyError: it lacks a part."""
    before, why = note["before"], see(note["why"])
    pair = _texts(before, shown) if _is_text(before) and _is_text(shown) else _tables(before, shown)
    if pair is None:
        now = effect(shown)
        unseen = (OUT_OF_SIGHT,) if {**before, "whole": ""} == {**shown, "whole": ""} else ()
        return Again(why, effect(before), replace(now, notes=now.notes + unseen), whole=True)
    return Again(why, *pair, whole=not pair[1].notes)


def key(approval_id: object, round: int, *, cautioned: bool = False) -> str:  # noqa: A002
    named = f"{approval_id}-{round}" if round > 1 else str(approval_id)
    return f"{named}-cautioned" if cautioned else named


def card(approval: Approval, viewer: Actor | None = None) -> Card:
    """The card of `approval` with its call; an open one as its `viewer` may answer it. KeyError: a part is lacking."""
    shown: dict[str, Any] = approval.disclosure
    (names, more), until = in_order(shown), datetime.fromisoformat(shown["deadline"])
    facts = tuple(map(see, facts_of(shown)))
    origins = _origins(approval, viewer)
    preview, earlier = shown.get("preview"), shown.get("again")
    changes = again(earlier, preview) if earlier and preview else None
    made = Card(
        id=str(approval.pk),
        round=approval.call.round,
        call_id=str(approval.call_id),
        status=Status(approval.call.status),
        prompt=see(shown["prompt"]),
        title=tuple(TitlePiece(see(text), is_value) for text, is_value in shown["promptPieces"]),
        tool_name=see(shown["tool"]["name"]),
        origin=see(shown["tool"]["origin"]),
        **_who_asks(shown),
        risk=disclosure.shown_risk(approval),
        care=oversight.care(shown),
        risk_unknown=shown.get("riskUnknown", False),
        reason=see(shown["reason"]),
        facts=facts[:MOST_FACTS],
        more_facts=facts[MOST_FACTS:],
        rows=_rows(shown, names, origins),
        more_rows=_rows(shown, more, origins),
        missing=_missing(shown),
        more_differ=shown.get("lastTime", {}).get("more", 0),
        raw=see(canonical.pretty(shown["arguments"], indent=2)),
        effect=effect(preview) if preview and not (changes and changes.whole) else None,
        again=changes,
        # Of the row: it may have been put off since the question was asked.
        deadline=approval.call.deadline or until,
        digest=approval.digest,
        grantable=approval.call.grantable and not approval.call.oversight_digest,
        decides=unusual_rules(approval),
        asks=asking_of(shown["arguments"]) if shown["tool"]["source"] == question.SOURCE else None,
        **_caution(approval),
    )
    return _as_seen_by(viewer, made, approval) if viewer else made


def matter(made: Card, shown: dict[str, Any], viewer: Actor | None) -> Matter | None:
    """Return what a yes of `viewer` to the card of `shown` has to repeat, as their last answers were; None: nothing.

    Costs a query where the card calls for care or has a warning.
    """
    can_ask = made.asks is None and (made.care >= pace.FROM or made.alerts)
    return pace.matter(shown) if can_ask and viewer and pace.is_quick(viewer) else None


def facts_of(shown: dict[str, Any]) -> list[str]:
    """Return what is known of the tool and its calls, in the order of the card. KeyError: a part is lacking."""
    return [*filter(None, [shown.get("ranBefore"), *shown["facts"]])]


def in_order(shown: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the names of the arguments in a disclosure that are in sight on its card, and of those that are folded.

    Of many, what matters most comes first; nothing folds that is a flag or has another value than its default.
    """
    arguments, fields = shown.get("arguments", {}), dict(shown.get("fields", []))
    names = [name for name in fields if name in arguments] + [name for name in arguments if name not in fields]
    if len(names) <= MOST_ROWS:
        return names, []
    not_given, not_default = set(shown.get("notGiven", [])), set(shown.get("notDefault", []))
    weights = {name: meant.weight(name, arguments[name]) for name in names}
    weights |= {name: meant.UNTOUCHED for name in not_given if weights.get(name) == meant.OTHER}
    names.sort(key=weights.__getitem__)
    first, rest = names[:MOST_ROWS], names[MOST_ROWS:]
    stays = {name for name in rest if isinstance(arguments[name], bool) or name in not_default}
    return first + [name for name in rest if name in stays], [name for name in rest if name not in stays]


def lines(shown: dict[str, Any], name: str) -> tuple[Meaning, ...]:
    """Return what the card says of an argument beside its value: what it means, if nobody gave it, and what it was in
    the call that it is compared with.
    """
    last = shown.get("lastTime", {})
    found = [*meant.meanings(shown["arguments"][name], name, shown.get("currencies", {}).get(name, ""))]
    if name in shown.get("notGiven", []):
        is_on = shown["arguments"][name] is True
        found.append(Meaning(ON_BY_DEFAULT, caution=True) if is_on else Meaning(DEFAULT))
    if name in (changed := last.get("changed", {})):
        text, cut = changed[name]
        found.append(Meaning(COMPARED["attempt" in shown][0], see(text), cut))
    elif name in last.get("added", []):
        found.append(Meaning(COMPARED["attempt" in shown][1]))
    return tuple(found)


def as_shown(approval: Approval) -> Card | None:
    """Return the card of a settled call as it was shown; None where an older record lacks a part of it."""
    try:
        return card(approval)
    except KeyError:
        return None


def _as_seen_by(viewer: Actor, made: Card, approval: Approval) -> Card:
    who = stance_of(approval, viewer)
    made = replace(made, who=who, whys=why.of(approval, viewer))
    return replace(made, matter=matter(made, approval.disclosure, viewer)) if who.stance == "may" else made


def _fold(text: str) -> int:
    """Return where `text` folds: after some characters or some lines, whatever comes first."""
    at = -1
    for _ in range(SHOWN_LINES_OF_FOLDED):
        at = text.find("\n", at + 1, SHOWN_OF_FOLDED)
        if at < 0:
            return SHOWN_OF_FOLDED
    return at + 1


def _is_text(shown: Preview) -> bool:
    return shown["text"] is not None and shown["table"] is None and not shown["cut"]


def _texts(before: Preview, now: Preview) -> tuple[Effect, Effect]:
    """Return both texts with their difference marked, and some of what is around it."""
    old, new = (_WORD_OR_SPACE.findall(shown["text"]) for shown in (before, now))
    same, end = diff.shared(old, new)
    other, others = old[same : len(old) - end], new[same : len(new) - end]
    return _excerpt(old, same, end, others), _excerpt(new, same, end, other)


def _excerpt(words: list[str], same: int, end: int, others: list[str]) -> Effect:
    middle = words[same : len(words) - end]
    head, tail = "".join(words[:same]), "".join(words[len(words) - end :])
    before, more, after = len(head) - CONTEXT, sum(map(len, middle)) - MOST_OF_DIFFERENCE, len(tail) - CONTEXT
    stretches = [(head[max(0, before) :], False), *_marked(middle, others), (tail[:CONTEXT], False)]
    stored = see("".join(words)).stored
    notes = [
        *([translatable(f"{before:,} characters before it are the same.")] if before > 0 else []),
        *([translatable(f"{more:,} more characters of it are different.")] if more > 0 else []),
        *([translatable(f"{after:,} characters after it are the same.")] if after > 0 else []),
    ]
    parts = tuple(Part(see(text, stored=stored), changed) for text, changed in stretches if text)
    return Effect(parts=parts, notes=tuple(notes))


def _marked(words: list[str], others: list[str]) -> Iterator[tuple[str, bool]]:
    """Stretches of `words`, and whether they are missing in `others`; what is long is marked as a whole, and cut."""
    # Comparing takes the product of both lengths.
    if max(sum(map(len, words)), sum(map(len, others))) > MOST_OF_DIFFERENCE:
        yield "".join(words)[:MOST_OF_DIFFERENCE], True
        return
    marked = ""
    for tag, start, end, *_ in SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
        text = "".join(words[start:end])
        # That two texts have spaces in common says nothing.
        if tag != "equal" or not text.strip():
            marked += text
            continue
        yield marked, True
        yield text, False
        marked = ""
    yield marked, True


def _tables(before: Preview, now: Preview) -> tuple[Effect, Effect] | None:
    """Return both with their difference marked; None if they are no two tables of the same columns, both complete."""
    old, new = before["table"], now["table"]
    if old is None or new is None or old["columns"] != new["columns"] or before["text"] != now["text"]:
        return None
    if before["cut"] or now["cut"]:
        return None
    same, end = diff.shared(old["rows"], new["rows"])
    other, others = (table["rows"][same : len(table["rows"]) - end] for table in (old, new))
    return _differing(old, same, other, others), _differing(new, same, others, other)


def _differing(table: dict[str, Any], same: int, rows: list[list[str]], others: list[list[str]]) -> Effect:
    """`rows` of the table, which begin behind as many as are the `same`, with the cells marked that are other ones in
    `others`; of a short table, all of it.
    """
    # Of more rows or fewer, nobody can say which was which.
    pairs = zip(rows, others, strict=True) if len(rows) == len(others) else ((row, [None] * len(row)) for row in rows)
    marked = [tuple(Part(see(cell), cell != was) for cell, was in zip(row, other, strict=True)) for row, other in pairs]
    if is_short(table["rows"]):
        lines = [tuple(Part(see(cell)) for cell in row) for row in table["rows"]]
        lines[same : same + len(rows)] = marked
        return Effect(table=folded(table["columns"], lines))
    left = len(table["rows"]) - len(rows)
    note = gettext_noop("1 row is the same.") if left == 1 else translatable(f"{left:,} rows are the same.")
    return Effect(table=folded(table["columns"], marked), notes=(note,) if left else ())


def _who_asks(shown: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a card about the caller: who asks, for whom, on which words, and which attempt it is."""
    attempt = shown.get("attempt")
    elsewhere = [each["wrote"] for each in shown.get("provenance", []) if not each["path"] and "wrote" in each]
    return {
        "elsewhere": see(elsewhere[0]) if elsewhere else None,
        "asked_by": CallerKind(shown["caller"]["kind"]).label,
        "for_whom": see(shown["caller"]["name"]),
        "agents": tuple(see(each["tool"]) for each in shown.get("agents", [])),
        "said": see(shown["userPrompt"]) if shown.get("userPrompt") else None,
        "attempt": attempt["number"] if attempt else 1,
        "instead": see(attempt["instead"]) if attempt else None,
    }


def _caution(approval: Approval) -> dict[str, Any]:
    """Return the parts of a card about a second model, at no query where that has not cautioned."""
    takes_tick = approval.call.caution_takes_tick
    row = getattr(approval, "opinion", None) if takes_tick is not None else None
    if row is None:
        return {"takes_tick": bool(takes_tick)}
    return {"takes_tick": bool(takes_tick), "caution": see(row.caution), "second_model": see(row.model)}


def _origins(approval: Approval, viewer: Actor | None) -> dict[str, tuple[Provenance, ...]]:
    """Return what is said of where values come from, with the calls that `viewer` may look at."""
    provenance = approval.disclosure.get("provenance") or []
    calls = {each["source"]["call"] for each in provenance if each["source"]}
    # Those that a model has read are calls of one person.
    if calls and (viewer is None or viewer.user_id != approval.call.caller_id):
        calls = deciders.looked_at(viewer.person, calls) if viewer else set()
    return by_argument(provenance, approval.disclosure["arguments"], calls)


def _rows(shown: dict[str, Any], names: Iterable[str], origins: dict[str, tuple[Provenance, ...]]) -> tuple[Row, ...]:
    types, arguments = dict(shown["fields"]), shown["arguments"]
    rows = ((name, box(spelled(arguments[name]), name, types.get(name, ""))) for name in names)
    return tuple(replace(row, meanings=lines(shown, name), origins=origins.get(name, ())) for name, row in rows)


def _missing(shown: dict[str, Any]) -> tuple[Row, ...]:
    """Return what the call that it is compared with had and this one has not."""
    found = shown.get("lastTime", {}).get("missing", {})
    begins = gettext_noop("Only its beginning.")
    return tuple(
        replace(box(text, name), meanings=(Meaning(begins, cut=cut),) if cut else ())
        for name, (text, cut) in found.items()
    )
