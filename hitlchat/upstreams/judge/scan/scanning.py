"""The scan itself: every text of a tool, each kind of signal once per place."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from hitlchat.upstreams.judge.mentions import mentions
from hitlchat.upstreams.judge.offered import Offered
from hitlchat.upstreams.judge.scan.blobs import blobs
from hitlchat.upstreams.judge.scan.findings import Finding, excerpt
from hitlchat.upstreams.judge.scan.folding import fold, words
from hitlchat.upstreams.judge.scan.phrases import COVETOUS, said
from hitlchat.upstreams.judge.scan.texts import Text, texts
from hitlchat.upstreams.judge.scan.unseen import Match, unseen

SHORT_TEXT = 60
LONGEST_TEXT = 20_000
MOST_TEXTS = 10_000
MOST_CHARACTERS = 400_000
MOST_FINDINGS = 100


@dataclass(frozen=True)
class Known:
    """Names to look out for: those of tools and servers other than the one that is scanned, and of what is its own."""

    tools: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()


_NOTHING = Known()


def scan(tool: Offered, known: Known = _NOTHING) -> tuple[Finding, ...]:
    """What is suspicious about `tool`, at most a hundred findings, those of the name and the description first.

    Takes time linear in the size of the definition, and says so where a part was too large to be read.
    """
    return tuple(islice(_findings(tool, known), MOST_FINDINGS))


def scan_text(text: str, where: str = "", known: Known = _NOTHING) -> tuple[Finding, ...]:
    """The same for any other text that an upstream shows to a model or a person."""
    return tuple(_read(Text(where, text), known))


def _findings(tool: Offered, known: Known) -> Iterator[Finding]:
    left = MOST_CHARACTERS
    for count, text in enumerate(texts(tool)):
        left -= len(text.text)
        if left < 0 or count >= MOST_TEXTS:
            sentence = "The definition is too large to be scanned; nothing from here on was read."
            yield Finding("unread", "block", text.where, "", sentence)
            return
        yield from _read(text, known, tool.name)


def _read(text: Text, known: Known, own: str = "") -> Iterator[Finding]:
    raw = text.text[:LONGEST_TEXT]
    signals = _short(raw, text.name) if len(raw) <= SHORT_TEXT else _signals(raw, text.name)
    for match in (*signals, *_names(raw, known, own)):
        yield Finding(match.id, match.severity, text.where, excerpt(raw, match.start, match.end), match.sentence)
    if len(text.text) > LONGEST_TEXT:
        sentence = f"Only the first {LONGEST_TEXT:,} of {len(text.text):,} characters were scanned."
        yield Finding("unread", "block", text.where, "", sentence)


def _signals(raw: str, is_name: bool) -> tuple[Match, ...]:
    return (*unseen(raw), *blobs(raw), *(_in_name(raw) if is_name else _in_prose(raw)))


# Most texts of a schema are its keywords, again and again.
_short = lru_cache(maxsize=4096)(_signals)


def _in_prose(raw: str) -> Iterator[Match]:
    folded = fold(raw)
    for phrase, start, end in said(folded.text):
        last = folded.place(end - 1) + 1
        yield Match(phrase.id, phrase.severity, phrase.sentence, folded.place(start), last)


def _in_name(raw: str) -> Iterator[Match]:
    spaced = fold(words(raw)).text
    yield from (Match(phrase.id, phrase.severity, phrase.sentence, 0, len(raw)) for phrase, _, _ in said(spaced))
    if spaced.strip() in COVETOUS:
        yield Match("covetous-argument", "warn", "By its name it asks the model for what it was told.", 0, len(raw))


def _names(raw: str, known: Known, own: str) -> Iterator[Match]:
    if found := next(mentions(raw, known.tools, own), None):
        yield Match("other-tool", "warn", f"Names “{found.name}”, a tool from elsewhere.", found.start, found.end)
    if found := next(mentions(raw, known.servers), None):
        yield Match("other-server", "warn", f"Names “{found.name}”, another server.", found.start, found.end)
