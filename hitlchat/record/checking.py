"""Checking an exported file on any machine, without the database or settings, and what verifying finds, in words."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from hitlchat.record import seals, signing
from hitlchat.record.lines import FORMAT, OLDER, Body, Reader, WrongLine
from hitlchat.record.receipts_checked import Calls
from hitlchat.record.seals import (
    DROP,
    EXPORT,
    NOTHING,
    SEAL,
    SaltOf,
    digest,
    hash_of,
    ids_of,
    row_hash,
    salts,
    unreadable_hash,
)
from hitlchat.record.signing import PublicKey, is_signed, spaced

MARK = 16


class Batch:
    """Takes the events of a batch as they come; WrongLine for the first that is not the one that was sealed there."""

    def __init__(self, body: Body, keys: dict[str, str]) -> None:
        self.seal, self.hash = body["seal"], body["hash"]
        if hash_of(self.seal) != self.hash:
            raise WrongLine(f"is the seal of batch {self.seal['number']}, and was edited")
        if not is_signed(keys.get(self.seal["key"], ""), body["signature"], SEAL, self.seal):
            raise WrongLine(f"is the seal of batch {self.seal['number']}, without the signature of its key")
        self._is_whole = bool(body["whole"])
        self._ids = ids_of(self.seal)
        self._hashes: list[bytes] = []
        self._marks = body["marks"] if self._is_whole else ""
        if self._is_whole and digest(self._marks) != self.seal["marks"]:
            raise WrongLine(f"is the seal of batch {self.seal['number']}, and its marks were edited")
        if "drop" in body:
            self._require_dropped(body["drop"], keys)

    def require_follows(self, before: "Batch") -> None:
        if self.seal["number"] != before.seal["number"] + 1 or self.seal["previous"] != before.hash:
            raise WrongLine(f"is the seal of batch {self.seal['number']}, which does not follow that of the one before")

    def take(self, body: Body) -> None:
        row, number = body["row"], self.seal["number"]
        if body["batch"] != number:
            raise WrongLine(f"is an event of batch {body['batch']} among those of batch {number}")
        made = _hash(body, self.seal.get("format", 1))
        if not self._is_whole:
            self._require_proof(body, made)
            return
        expected = next(self._ids, None)
        if row["id"] != expected:
            missing = f", where event {expected} was sealed" if expected is not None else ", after the last one"
            raise WrongLine(f"is event {row['id']}{missing}")
        place = len(self._hashes) * MARK
        if made.hex()[:MARK] != self._marks[place : place + MARK]:
            raise WrongLine(f"is event {row['id']}, and not as it was sealed in batch {number}")
        self._hashes.append(made)

    def close(self) -> None:
        """Close after the last event: were they all there?"""
        if not self._is_whole:
            return
        missing = next(self._ids, None)
        if missing is not None:
            raise WrongLine(f"comes where event {missing} of batch {self.seal['number']} was sealed, which is missing")
        if seals.root(self._hashes).hex() != self.seal["root"]:
            raise WrongLine(f"comes after batch {self.seal['number']}, which is not as it was sealed")

    def _require_proof(self, body: Body, made: bytes) -> None:
        path = [bytes.fromhex(each) for each in body["proof"]]
        found = seals.climbed(made, body["index"], self.seal["count"], path)
        if found is None or found.hex() != self.seal["root"]:
            raise WrongLine(f"is event {body['row']['id']}, and not as it was sealed in batch {self.seal['number']}")

    def _require_dropped(self, said: Body, keys: dict[str, str]) -> None:
        drop = said["drop"]
        about_this = (drop["number"], drop["seal"]) == (self.seal["number"], self.hash)
        if self._is_whole or not (about_this and is_signed(keys.get(drop["key"], ""), said["signature"], DROP, drop)):
            raise WrongLine(f"says that batch {self.seal['number']} was dropped, and that is not signed")


def _hash(body: Body, form: int) -> bytes:
    row = body["row"]
    if "unreadable" in body:
        return unreadable_hash(row["id"], body["unreadable"])
    hidden = body.get("hidden", NOTHING)
    return row_hash(row, _salt_of(body), form, text=body.get("text", ""), hidden=hidden)


def _salt_of(body: Body) -> SaltOf:
    if "salt" in body:
        return salts(body["salt"])
    opened: dict[str, str] = body["salts"]
    found: Callable[[str], bytes] = lambda path: bytes.fromhex(opened[path])  # noqa: E731
    return found


MALFORMED = "is not of the form that such a line has"


@dataclass
class Checked:
    """The content of a file, and the first thing that is wrong with it: in which line, in words."""

    batches: int = 0
    events: int = 0
    receipts: int = 0
    hidden: int = 0
    unreadable: int = 0
    what: str = ""
    at: str = ""
    key: str = ""
    line: int | None = None
    wrong: str = ""

    @property
    def is_genuine(self) -> bool:
        return not self.wrong


@dataclass
class _State:
    noted: str
    checked: Checked
    header: Body | None = None
    keys: dict[str, str] = field(default_factory=dict)
    batch: Batch | None = None
    before: Batch | None = None
    calls: Calls = field(default_factory=Calls)
    is_over: bool = False


def check(lines: Iterable[bytes], noted: str = "") -> Checked:
    """Read `lines`, each with its end, up to the first that is wrong. `noted`: the fingerprint that the key must have,
    or a key before it.
    """
    checked = Checked()
    state, reader = _State(noted, checked), Reader()
    try:
        for raw in lines:
            before = reader.sum
            _take(state, reader.read(raw), before)
    except WrongLine as wrong:
        checked.line, checked.wrong = reader.count, str(wrong)
    except (KeyError, TypeError, ValueError, AttributeError):
        # Somebody has made the sums anew for what they wrote.
        checked.line, checked.wrong = reader.count, MALFORMED
    else:
        if not state.is_over:
            checked.line, checked.wrong = reader.count + 1, "is missing: the file was cut off before its end"
    return checked


def _take(state: _State, body: Body, before: str) -> None:
    if state.is_over:
        raise WrongLine("comes after the end of the file")
    kind = body["kind"]
    if (kind == "header") != (state.header is None):
        raise WrongLine("is no header" if state.header is None else "is a second header")
    _KINDS[kind](state, body, before)


def _header(state: _State, body: Body, _: str) -> None:
    if body["format"] in OLDER:
        raise WrongLine(
            "says that an older version of hitlchat wrote the file, and such a file could be made of a forged record."
            " Export it again with this version"
        )
    if body["format"] != FORMAT:
        raise WrongLine(f"says that the file is {body['format']!r}, and not {FORMAT!r}")
    known = [PublicKey(each["id"], each["public"], each["number"], each["endorsement"]) for each in body["keys"]]
    state.header, state.keys = body, {each.id: each.public for each in known}
    state.checked.what, state.checked.at, state.checked.key = body["what"], body["at"], body["key"]
    anchor = state.noted or body["key"]
    if why := signing.broken(known, anchor):
        raise WrongLine(f"names keys that are not to be believed. {why}")
    if body["key"] not in signing.onward(known, anchor):
        raise WrongLine(f"names a key that is older than {anchor[:16]}…")


def _seal(state: _State, body: Body, _: str) -> None:
    assert state.header is not None
    _close(state)
    batch = Batch(body, state.keys)
    if state.header["what"] == "export" and state.before is not None:
        batch.require_follows(state.before)
    state.batch = batch
    state.checked.batches += 1


def _event(state: _State, body: Body, _: str) -> None:
    if state.batch is None:
        raise WrongLine("is an event before any seal")
    state.batch.take(body)
    state.checked.events += 1
    if "unreadable" in body:
        state.checked.unreadable += 1
        return
    state.calls.take(body["row"])
    state.checked.hidden += len(body.get("hidden", ()))


def _receipt(state: _State, body: Body, _: str) -> None:
    _close(state)
    state.calls.compare(body)
    state.checked.receipts += 1


def _trailer(state: _State, body: Body, before: str) -> None:
    assert state.header is not None
    _close(state)
    state.calls.require_receipts()
    counts = {name: getattr(state.checked, name) for name in ("batches", "events", "receipts")}
    said = {"counts": counts, "lines": body["n"] - 1, "over": before}
    if body["counts"] != counts:
        raise WrongLine("counts something else than is there")
    if not is_signed(state.keys[state.header["key"]], body["signature"], EXPORT, said):
        raise WrongLine("has a signature that does not fit the file")
    state.is_over = True


_KINDS = {"header": _header, "seal": _seal, "event": _event, "receipt": _receipt, "trailer": _trailer}


def _close(state: _State) -> None:
    """The batch that is being read is over: all of it must have been there."""
    if state.batch is not None:
        state.batch.close()
        state.before, state.batch = state.batch, None


def checked_words(found: Checked, noted: str) -> list[str]:
    if found.wrong:
        return [f"Not genuine: line {found.line} {found.wrong}."]
    counts = (
        f"{plural(found.batches, 'batch', 'batches')}, {plural(found.events, 'event')}"
        f", {plural(found.receipts, 'receipt')}"
    )
    lines = [f"As it was written on {found.at}: {counts}."]
    if found.hidden:
        lines.append(f"{plural(found.hidden, 'value')} in it are kept back as secret; their hashes stand for them.")
    if found.unreadable:
        count = plural(found.unreadable, "event")
        lines.append(f"{count} in it could not be read as events when they were sealed: only their hashes are here.")
    lines.append(f"Signed with the key {spaced(found.key)}")
    lines.append(
        "That is the key that you named, or one that it vouches for."
        if noted
        else "Compare this with the fingerprint that you noted: the file alone cannot tell whose key it is."
    )
    return lines


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


Kind = Literal[
    "edited",
    "missing",
    "inserted",
    "reordered",
    "seal edited",
    "seal missing",
    "seal unsigned",
    "chain broken",
    "key not vouched for",
    "not what was shown",
    "not what was called",
    "not what happened",
    "not what was decided",
    "not what came back",
    "not in order",
    "not on record",
    "not the name",
    "not the definition",
    "unreadable",
    "not sealed",
    "truncated",
]


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it was sealed; in which batch, and about which event."""

    kind: Kind
    words: str
    batch: int | None = None
    event: int | None = None


@dataclass
class Report:
    """The sights of a walk over the record. `tail`: events that are not sealed yet; `late`: events whose ids are below
    others of batches before their own; `uncovered`: calls whose events do not say everything that is kept of them,
    since they are older than that, or were dropped; `notes`: what is no break but should be known.
    """

    batches: int = 0
    events: int = 0
    tail: int = 0
    late: int = 0
    calls: int = 0
    uncovered: int = 0
    uncovered_until: str = ""
    dropped: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    last_seal: str = ""
    key: str = ""

    @property
    def is_whole(self) -> bool:
        return not self.findings

    @property
    def as_json(self) -> dict[str, Any]:
        said = asdict(self)
        names = {"last_seal": "lastSeal", "uncovered_until": "uncoveredUntil"}
        return {"whole": self.is_whole, **{names.get(name, name): value for name, value in said.items()}}
