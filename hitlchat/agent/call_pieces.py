"""The calls of an answer, put together from the pieces in which servers stream them, each in its own dialect."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from hitlchat.agent.model_client import ModelTrouble
from hitlchat.base import canonical

# What one answer may hold; beyond it, it is cut off: a model server must not be able to fill this one.
MOST_CALLS: Final = 32


@dataclass
class Pieces:
    """A call as it comes: id, name and the pieces of its arguments, which are text that may or may not be JSON."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def whole(self) -> str:
        """Return the arguments: their pieces one after the other or, of a server that sends with each piece all that
        came before or at last all of it, the last one. The same pieces never make an object both ways.
        """
        joined, last = "".join(self.arguments), self.arguments[-1] if self.arguments else ""
        is_all = self.is_growing or "".join(self.arguments[:-1]) == last
        if len(self.arguments) > 1 and is_all and object_in(joined) is None and object_in(last) is not None:
            joined = last
        # What came as two halves of a character is one.
        return joined.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")

    @property
    def is_growing(self) -> bool:
        return len(self.arguments) > 1 and all(more.startswith(less) for less, more in pairwise(self.arguments))


class Calls:
    """Puts streamed tool calls together: repeated ids and names, missing or equal indexes, interleaved deltas. No two
    calls ever become one that the model did not make.
    """

    def __init__(self) -> None:
        self.found: list[Pieces] = []
        self._by_index: dict[int, Pieces] = {}
        self._looked = 0

    def feed(self, part: dict[str, Any], *, is_next: bool = False) -> tuple[Pieces, int]:
        """Return the call that the fragment belongs to, and how many characters of arguments it has. `is_next`: it
        stands behind another in the same list.
        """
        # Some servers leave one level out.
        function = part.get("function") or part
        given, call_id, name = part.get("index"), part.get("id"), plain_text(function.get("name"))
        index = None if given is None else int(given)
        # Of some servers the id is a number.
        call_id = str(call_id) if isinstance(call_id, int) else plain_text(call_id)
        arguments = function.get("arguments", function.get("parameters"))
        # Some servers send the object itself.
        arguments = canonical.pretty(arguments) if isinstance(arguments, dict) else plain_text(arguments)
        call = self._current(index, call_id)
        is_apart = is_next and index is None and not call_id and bool(name)
        if call is None or is_apart or self._begins_another(call, call_id, name, arguments):
            call = Pieces()
            self.found.append(call)
            if index is not None:
                self._by_index[index] = call
        call.id = call.id or call_id
        # Some servers repeat the name, some send all of it so far, some send it in pieces.
        call.name = name if name.startswith(call.name) else call.name + name
        if arguments:
            call.arguments.append(arguments)
        return call, len(arguments)

    def _current(self, index: int | None, call_id: str) -> Pieces | None:
        """Return the call that the fragment goes on with, as far as index and id say; an index counts for more."""
        if index is not None:
            return self._by_index.get(index)
        if call_id:
            return next((call for call in self.found if call.id == call_id), None)
        return self.found[-1] if self.found else None

    def _begins_another(self, call: Pieces, call_id: str, name: str, arguments: str) -> bool:
        if not name or not call.name:
            return False
        if call_id and call.id:
            return call_id != call.id or (not name.startswith(call.name) and self._is_whole(call))
        if name == call.name:
            is_growing = call.is_growing and arguments.startswith(call.arguments[-1])
            return self._is_whole(call) and not is_growing
        # A name goes on only before the arguments begin.
        return bool(call.arguments) or not (name.startswith(call.name) or call.id)

    def _is_whole(self, call: Pieces) -> bool:
        """Tell a second call of the same tool from a name that each fragment repeats, where no id does."""
        if not call.arguments or not call.arguments[-1].rstrip().endswith("}"):
            return False
        self._looked += 1
        # Each look reads the arguments again.
        if self._looked > 2 * MOST_CALLS:
            why = "The calls of the model's answer cannot be told apart; none of them was made."
            raise ModelTrouble(why)
        return object_in(call.whole) is not None


def object_in(text: str) -> dict[str, Any] | None:
    """Return the object that the text is, as JSON."""
    try:
        found = canonical.loads(text)
    except canonical.NotJson:
        return None
    return found if isinstance(found, dict) else None


def plain_text(given: Any) -> str:
    """Return a text that may be missing. Raises: TypeError, if it is something else."""
    if not isinstance(given, str | None):
        raise TypeError(f"expected a text, not {type(given).__name__}")
    return given or ""
