"""A tool's own preview of its effect: whether its code has one, and where. Found by its text, never by running it."""

import re
from functools import lru_cache

from tools_studio.language import signature
from tools_studio.language.signature import Signature
from tools_studio.language.snippet import SignatureError, Snippet, cut

ENTRY = "preview"
_LOOKS_LIKE_IT = re.compile(rf"^(?:async[ \t]+)?def[ \t]+{ENTRY}\b", re.MULTILINE)


@lru_cache(maxsize=64)
def find(code: str) -> Snippet | None:
    """The top-level function `preview`; None if there is none, or none that could be called."""
    if not _LOOKS_LIKE_IT.search(code):
        return None
    try:
        return cut(code, ENTRY)
    except SignatureError:
        return None


def check(code: str, run: Signature) -> None:
    """SignatureError: there is a `preview`, but it cannot be called in place of `run`."""
    if not _LOOKS_LIKE_IT.search(code):
        return
    found = signature.read(code, ENTRY)
    if _parameters(found) != _parameters(run):
        raise SignatureError(
            "expected `preview` with the parameters of `run`: the same names, types and defaults in the same order",
            cut(code, ENTRY).offset + 1,
        )


def _parameters(found: Signature) -> list[tuple[str, dict[str, object]]]:
    """What they are called and take; how they are described may differ."""
    properties = found.input_schema["properties"].items()
    return [(name, {key: value for key, value in part.items() if key != "description"}) for name, part in properties]
