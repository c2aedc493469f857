"""Checking an exported file on any machine, without the database or settings."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hitlchat.base.sentences import part, translatable
from hitlchat.record import proofs
from hitlchat.record.file_format import FORMAT, OLDER, Calls, Reader, WrongLine
from hitlchat.record.proofs import (
    DROP,
    EXPORT,
    NOTHING,
    SEAL,
    Body,
    PublicKey,
    SaltOf,
    digest,
    hash_of,
    ids_of,
    is_signed,
    row_hash,
    salts,
    spaced,
    unreadable_hash,
)

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
            event = row["id"]
            if expected is None:
                raise WrongLine(f"is event {event}, after the last one")
            raise WrongLine(f"is event {event}, where event {expected} was sealed")
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
        if proofs.root(self._hashes).hex() != self.seal["root"]:
            raise WrongLine(f"comes after batch {self.seal['number']}, which is not as it was sealed")

    def _require_proof(self, body: Body, made: bytes) -> None:
        path = [bytes.fromhex(each) for each in body["proof"]]
        found = proofs.climbed(made, body["index"], self.seal["count"], path)
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


MALFORMED = part("is not of the form that such a line has")

CUT_OFF = part("is missing: the file was cut off before its end")


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
    # How much of the record was not as it was, when the file was written.
    found: int = 0

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
            checked.line, checked.wrong = reader.count + 1, CUT_OFF
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
    # Files of before say nothing of it.
    state.checked.found = int(body.get("found", 0))
    anchor = state.noted or body["key"]
    if why := proofs.broken(known, anchor):
        raise WrongLine(f"names keys that are not to be believed. {why}")
    if body["key"] not in proofs.onward(known, anchor):
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
    """Close the batch that is being read: all of it must have been there."""
    if state.batch is not None:
        state.batch.close()
        state.before, state.batch = state.batch, None


def checked_words(found: Checked, noted: str) -> list[str]:
    """Return what was found in English, a line each, which pages show in their language."""
    if found.wrong:
        fault = " ".join((part(f"line {found.line}"), found.wrong))
        return [translatable(f"Not genuine: {fault}.")]
    batches, events, receipts = _counted_batches(found), _counted_events(found.events), _counted_receipts(found)
    lines = [translatable(f"As it was written on {found.at}: {batches}, {events}, {receipts}.")]
    if found.found:
        lines.insert(0, translatable(f"The record itself was not as it was: verifying it named {found.found} things."))
    if found.hidden:
        lines.append(_hidden(found.hidden))
    if found.unreadable:
        counted = _counted_events(found.unreadable)
        lines.append(
            translatable(
                f"{counted} in it could not be read as events when they were sealed: only their hashes are here."
            )
        )
    lines.append(translatable(f"Signed with the key {spaced(found.key)}"))
    lines.append(
        translatable(
            "That is the key that you named, or one that it vouches for."
            if noted
            else "Compare this with the fingerprint that you noted: the file alone cannot tell whose key it is."
        )
    )
    return lines


def _counted_batches(found: Checked) -> str:
    return part("1 batch") if found.batches == 1 else part(f"{found.batches:,} batches")


def _counted_events(count: int) -> str:
    return part("1 event") if count == 1 else part(f"{count:,} events")


def _counted_receipts(found: Checked) -> str:
    return part("1 receipt") if found.receipts == 1 else part(f"{found.receipts:,} receipts")


def _hidden(count: int) -> str:
    if count == 1:
        return translatable("1 value in it is kept back as secret; its hash stands for it.")
    return translatable(f"{count:,} values in it are kept back as secret; their hashes stand for them.")


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
