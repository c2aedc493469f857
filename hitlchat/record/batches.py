"""One batch of an exported file against its seal. Needs neither Django's settings nor a database."""

from collections.abc import Callable

from hitlchat.record import tree
from hitlchat.record.commitment import NOTHING, SaltOf, row_hash, salts, unreadable_hash
from hitlchat.record.lines import Body, WrongLine
from hitlchat.record.seals import DROP, SEAL, digest, hash_of, ids_of
from hitlchat.record.signing import is_signed

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
        """After the last event: were they all there?"""
        if not self._is_whole:
            return
        missing = next(self._ids, None)
        if missing is not None:
            raise WrongLine(f"comes where event {missing} of batch {self.seal['number']} was sealed, which is missing")
        if tree.root(self._hashes).hex() != self.seal["root"]:
            raise WrongLine(f"comes after batch {self.seal['number']}, which is not as it was sealed")

    def _require_proof(self, body: Body, made: bytes) -> None:
        path = [bytes.fromhex(each) for each in body["proof"]]
        found = tree.climbed(made, body["index"], self.seal["count"], path)
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
