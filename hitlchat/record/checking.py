"""Checking an exported file on any machine: without the database, without settings, with nothing but the file.

Its public key is in the file, so the file can only be as genuine as that key is known to be: its fingerprint is to be
compared with the one that was noted when the record was begun.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hitlchat.record import batches, trust
from hitlchat.record.lines import FORMAT, OLDER, Body, Reader, WrongLine
from hitlchat.record.receipts_checked import Calls
from hitlchat.record.seals import EXPORT
from hitlchat.record.signing import is_signed
from hitlchat.record.trust import PublicKey

MALFORMED = "is not of the form that such a line has"


@dataclass
class Checked:
    """What a file holds, and the first thing that is wrong with it: in which line, in words."""

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
    batch: batches.Batch | None = None
    before: batches.Batch | None = None
    calls: Calls = field(default_factory=Calls)
    is_over: bool = False


def check(lines: Iterable[bytes], noted: str = "") -> Checked:
    """Read `lines`, each with its end, up to the first that is wrong. `noted`: the fingerprint that the key must have,
    or a key before it."""
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
    if why := trust.broken(known, anchor):
        raise WrongLine(f"names keys that are not to be believed. {why}")
    if body["key"] not in trust.onward(known, anchor):
        raise WrongLine(f"names a key that is older than {anchor[:16]}…")


def _seal(state: _State, body: Body, _: str) -> None:
    assert state.header is not None
    _close(state)
    batch = batches.Batch(body, state.keys)
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
