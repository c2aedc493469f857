"""Comparison of what makes the gate ask less with the last events that state it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings
from django.db.models import Q

from hitlchat.base import canonical
from hitlchat.base.sentences import translatable
from hitlchat.gate import stated
from hitlchat.gate.stated import Facts, Statement
from hitlchat.record import rows
from hitlchat.record.proofs import Row
from hitlchat.record.report import Finding

ATTEMPTS: Final = 5
LONGEST: Final = 80
FINGERPRINTS: Final = ("reached", "headers_and_variables")


@dataclass
class Stated:
    """The statements of events, which are read in any order; `last`: the newest event that was read."""

    statements: dict[int, list[Statement]] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    last: int = 0

    def read(self, row: Row) -> None:
        self.last = max(self.last, row["id"])
        data = row["data"]
        if row["call"] is not None or not isinstance(data, dict):
            return
        if found := list(stated.statements(row["name"], data)):
            self.statements[row["id"]] = found
        if row["name"] == stated.BEGUN and isinstance(data.get("kinds"), list):
            self.begun |= {kind for kind in data["kinds"] if isinstance(kind, str)}

    def compare(self) -> Iterator[Finding]:
        """Yield each difference. What changes meanwhile has an event, which is read first."""
        found = list(self._compared())
        for _ in range(ATTEMPTS):
            newer = rows.read(Q(pk__gt=self.last)) if found else []
            if not newer:
                break
            for row in filter(rows.is_readable, newer):
                self.read(row)
            found = list(self._compared())
        yield from found

    def _compared(self) -> Iterator[Finding]:
        expected = self._folded()
        for kind in settings.RECORD_STATES:
            try:
                there = stated.now(kind)
            except rows.UNREADABLE as error:
                words = translatable(f"What is kept of each {_word(kind)} cannot even be read: {error}.")
                yield Finding("not as stated", words)
                continue
            for key, (event, facts) in expected.get(kind, {}).items():
                yield from _differences(kind, key, event, facts, there.get(key))
            if kind in self.begun:
                for key in there.keys() - expected.get(kind, {}).keys():
                    words = translatable(f"The {_word(kind)} {_label(key, there[key])} is on no record.")
                    yield Finding("not on record", words)

    def _folded(self) -> dict[str, dict[str, tuple[int, Facts | None]]]:
        found: dict[str, dict[str, tuple[int, Facts | None]]] = {}
        for event in sorted(self.statements):
            for kind, key, facts in self.statements[event]:
                before = found.setdefault(kind, {}).get(key, (0, None))[1]
                # Events of a tool have the fields that changed.
                whole = {**(before or {}), **facts} if kind == "tool" and facts is not None else facts
                found[kind][key] = event, whole
        return found


def _differences(kind: str, key: str, event: int, stated_facts: Facts | None, there: Facts | None) -> Iterator[Finding]:
    if stated_facts is None or there is None:
        if there is not None:
            words = translatable(f"The {_word(kind)} {_label(key, there)} is there, and event {event} says it is gone.")
            yield Finding("not as stated", words, event=event)
        elif stated_facts is not None:
            words = translatable(
                f"The {_word(kind)} {_label(key, stated_facts)} is not there any more, and event {event} states it."
            )
            yield Finding("not as stated", words, event=event)
        return
    # Of texts any may have been put in; of anything else, events of before say nothing of what they lack.
    names = stated_facts.keys() | there.keys() if kind == "texts" else stated_facts.keys()
    for name in sorted(names):
        if _is_other(stated_facts.get(name), there.get(name), name):
            column, word, label = name.replace("_", " "), _word(kind), _label(key, there)
            now, before = _short(there.get(name)), _short(stated_facts.get(name))
            words = translatable(
                f"The {column} of the {word} {label} is {now}, and event {event}, the last about it, says {before}."
            )
            yield Finding("not as stated", words, event=event)


def _is_other(stated_facts: Any, there: Any, name: str) -> bool:
    if name not in FINGERPRINTS or not isinstance(stated_facts, dict) or not isinstance(there, dict):
        return bool(stated_facts != there)
    # By the keys that made both: what another SECRET_KEY made tells nothing.
    return any(stated_facts[key] != there[key] for key in stated_facts.keys() & there.keys())


def _word(kind: str) -> str:
    return {"rules": "rules of tool", "texts": "texts of tool"}.get(kind, kind)


def _label(key: str, facts: Facts | None) -> str:
    return repr((facts or {}).get("name", key))


def _short(value: Any) -> str:
    text = canonical.pretty(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
