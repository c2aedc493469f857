"""An exported file, line by line: JSON in one spelling, numbered, each with a sum over itself and all lines before it.

Needs neither Django's settings nor a database.
"""

import hashlib
from typing import Any

from hitlchat.base import canonical

Body = dict[str, Any]

FORMAT = "hitlchat record 2"
# Could be made of a record that had been changed without `check` saying so.
OLDER = ("hitlchat record 1",)


class Writer:
    """Gives each line its number and its sum."""

    def __init__(self) -> None:
        self.count, self.sum = 0, ""

    def line(self, kind: str, body: Body) -> bytes:
        self.count += 1
        whole = {**body, "n": self.count, "kind": kind}
        self.sum = sum_of(self.sum, whole)
        return f"{canonical.dumps({**whole, 'sum': self.sum})}\n".encode("ascii")


class WrongLine(ValueError):
    """A line that is not as it was written; the message says how, to go on "line 7 …"."""


class Reader:
    """Reads lines back, each only if it is what was written there."""

    def __init__(self) -> None:
        self.count, self.sum = 0, ""

    def read(self, raw: bytes) -> Body:
        """WrongLine."""
        self.count += 1
        body = _parsed(raw)
        if body.get("n") != self.count:
            raise WrongLine(f"is numbered {body.get('n')!r}: lines before it were removed, put in or moved")
        said = body.pop("sum", None)
        self.sum = sum_of(self.sum, body)
        if said != self.sum:
            raise WrongLine("was edited, or is not the one that followed here")
        return body


def sum_of(before: str, body: Body) -> str:
    return hashlib.sha256(f"{before}\n{canonical.dumps(body)}".encode("ascii")).hexdigest()


def _parsed(raw: bytes) -> Body:
    try:
        body = canonical.loads(raw)
        is_spelled = f"{canonical.dumps(body)}\n".encode("ascii") == raw
    except canonical.NotJson as error:
        raise WrongLine(f"was edited or cut off: it is no JSON ({error})") from error
    if not isinstance(body, dict) or not is_spelled:
        raise WrongLine("was edited: it is not spelled as it was written")
    return body
