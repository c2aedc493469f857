"""Reads why a model server refuses or fails out of the body of its answer, of whatever shape that is."""

import html
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import openai

# Where servers put the sentence, the innermost last; FastAPI's are lists of what is wrong with each field.
_SENTENCES: Final = (
    *("message", "error", "detail", "msg", "errors"),
    *("error_message", "errormessage", "error_msg", "errmsg", "error_description", "description"),
    *("reason", "fault", "faultstring", "status_msg", "base_resp", "title"),
)
DEEPEST: Final = 5
# Of a list of what is wrong, so many.
MOST: Final = 3
# Of a page of HTML the beginning tells what it is.
LONGEST_PAGE: Final = 16 * 1024
_TITLE: Final = re.compile(r"<title[^>]*>([^<]*)</title", re.IGNORECASE)
_UNSEEN: Final = re.compile(r"<(script|style)\b.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_MARK: Final = re.compile(r"<[^<>]*>")
_PAGE: Final = re.compile(r"\s*<(?:!doctype|html|head|body|h[1-6]|p|center|\?xml)\b", re.IGNORECASE)
# How a server says which of the tools it is about. Gemini counts within the one tool that has all functions.
_INDEX: Final = r"(?:\[|\.|/|['\"]\s*,\s*|['\"]\]?\[|\]\[|\s*(?:->|>|→)\s*)['\"]?(\d{1,4})\b"
_PLACES: Final = (
    re.compile(rf"function_?declarations{_INDEX}", re.IGNORECASE),
    re.compile(rf"\b(?:tools?|functions){_INDEX}", re.IGNORECASE),
    re.compile(r"\b(?:tools?|functions?)\s*(?:at\s+)?\(?(?:index|number|no\.|#)\s*:?\s*(\d{1,4})\b", re.IGNORECASE),
    re.compile(r"\bindex\s+(\d{1,4})\s+(?:of|in)\s+(?:the\s+)?['\"`]?(?:tools|functions)\b", re.IGNORECASE),
)
_NAMED: Final = re.compile(r"\b(?:function|tool)(?: name)?[:=]?\s*['\"`“]([A-Za-z0-9_-]{1,64})['\"`”]", re.IGNORECASE)


def words(error: "openai.APIError") -> str:
    """Return the sentence that a server sent with an error; empty if it sent none."""
    response = getattr(error, "response", None)
    try:
        text = str(response.text).strip() if response is not None else ""
    except RuntimeError:
        text = ""  # of a response that was not read
    if not text:
        return sentence(error.body)
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return _plain(text)
    # What says nothing under any name that is known is shown as it is.
    return sentence(body) or ("" if body in (None, {}, [], "") else text)


def sentence(body: object, depth: int = 0) -> str:
    """Return the sentence in the body of an error; empty if it has none."""
    if depth > DEEPEST:
        return ""
    match body:
        case str():
            return _in_text(body, depth)
        case [*entries]:
            return "; ".join(filter(None, (sentence(each, depth + 1) for each in entries[:MOST])))
        case {"loc": [*where], "msg": str(wrong)}:
            return f"{'.'.join(map(str, where))}: {wrong}"
        case dict():
            named = {str(name).lower(): part for name, part in body.items()}
            own = next(filter(None, (sentence(named.get(name), depth + 1) for name in _SENTENCES)), "")
            # What the server behind a router answered (OpenRouter).
            metadata = named.get("metadata")
            cause = sentence(metadata.get("raw"), depth + 1) if isinstance(metadata, dict) else ""
            return ": ".join(filter(None, (own, cause)))
        case _:
            return ""


def tool_in(words: str, names: Sequence[str]) -> str:
    """Return the name of the tool that a refusal is about, of those that were sent in this order; empty if none is."""
    for place in _PLACES:
        if found := place.search(words):
            index = int(found[1])
            return names[index] if index < len(names) else ""
    found = _NAMED.search(words)
    return found[1] if found and found[1] in names else ""


def _in_text(text: str, depth: int) -> str:
    """Return the sentence in a text, which is JSON again where a server hands on what another one said."""
    if text.lstrip().startswith("{"):
        try:
            return sentence(json.loads(text), depth + 1) or text
        except (ValueError, RecursionError):
            return text
    return _plain(text)


def _plain(text: str) -> str:
    """Return a text as it is, and of a page of HTML its title, or else what can be read of it."""
    if not _PAGE.match(text):
        return text
    page = text[:LONGEST_PAGE]
    titled = _TITLE.search(page)
    read = titled[1] if titled else _MARK.sub(" ", _UNSEEN.sub(" ", page))
    return " ".join(html.unescape(read).split())
