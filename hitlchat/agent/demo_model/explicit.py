"""Arguments that are spelled out: `order_id=4711`, `reason: it broke`, or a JSON object."""

import json
import re
from itertools import islice
from typing import Any

from hitlchat.agent.demo_model.draft import Draft
from hitlchat.agent.demo_model.shapes import MISFIT, Param, fit
from hitlchat.agent.demo_model.words import parts

MOST_TRIES = 20
LONGEST_NAME = 80
_ASSIGNED = re.compile(r"[\w-](?:=|: ?)$")  # as in `schema={}`, which `pairs` reads
_GAPS = ", \n"
_END = re.compile(r"(?<=[\s,])(?:and|with)$", re.IGNORECASE)
_QUOTES = {'"': '"', "“": "”", "'": "'", "`": "`"}


def json_object(draft: Draft) -> None:
    """The first JSON object in the text: its keys are arguments, or else it is the one object that is wanted.

    With `draft.named`, as in `refund_order {"order_id": 7}`, it is passed on as it is, right or wrong.
    """
    end = 0
    for match in islice(re.finditer(r"\{", draft.text), MOST_TRIES):
        if match.start() < end:
            continue
        try:
            value, length = json.JSONDecoder().raw_decode(draft.text[match.start() :])
        except (ValueError, RecursionError):
            continue
        if _ASSIGNED.search(draft.text[: match.start()][-LONGEST_NAME:]):
            end = match.start() + length
            continue
        _take_object(draft, value)
        draft.claim(match.start(), match.start() + length)
        return


def _take_object(draft: Draft, value: dict[str, Any]) -> None:
    known = {param.name for param in draft.params}
    wanted = [param for param in draft.open() if "object" in param.types]
    if known & value.keys() or (draft.named and not wanted):
        draft.complete = draft.named
        draft.values |= value if draft.named else {key: value[key] for key in value if key in known}
    elif wanted:
        draft.values[wanted[0].name] = value


def pairs(draft: Draft) -> None:
    """Every `name=value` and `name: value`, also with the words of the name apart, as in `order id: 4711`."""
    marks = sorted(_marks(draft), key=lambda mark: mark[1])
    for number, (param, start, value_start) in enumerate(marks):
        limit = marks[number + 1][1] if number + 1 < len(marks) else len(draft.text)
        text, end = _value(param, draft.text, value_start, limit)
        value = fit(param, text)
        if param.name not in draft.values and text:
            # A value of another type is passed on: the user said so, and the gate says what is wrong with it.
            draft.values[param.name] = text if value is MISFIT else value
            draft.claim(start, end)


def _marks(draft: Draft) -> list[tuple[Param, int, int]]:
    found: dict[int, tuple[Param, int, int]] = {}
    for param in draft.params:
        name = r"[\s_-]?".join(map(re.escape, parts(param.name))) or re.escape(param.name)
        for match in re.finditer(rf"(?<![\w-]){name}\s*(?:=|:(?!//))\s*", draft.text, re.IGNORECASE):
            if draft.is_free(match.start(), match.end()):
                found[match.end()] = min(found.get(match.end(), (param, match.start(), match.end())),
                                         (param, match.start(), match.end()), key=lambda mark: mark[1])  # fmt: skip
    return list(found.values())


def _value(param: Param, text: str, start: int, limit: int) -> tuple[str, int]:
    """The value that starts at `start`, and where it ends."""
    closing = _QUOTES.get(text[start : start + 1])
    if closing and (end := text.find(closing, start + 1)) > 0:
        return text[start + 1 : end], end + 1
    if text[start : start + 1] in {"[", "{"}:
        try:
            _, length = json.JSONDecoder().raw_decode(text[start:])
        except (ValueError, RecursionError):
            pass
        else:
            return text[start : start + length], start + length
    rest = re.split(r"[;\n]", text[start:limit])[0]
    if text.rfind("(", 0, start) > text.rfind(")", 0, start):  # `(status: paid)`
        rest = rest.partition(")")[0]
    rest = _END.sub("", rest.rstrip(_GAPS)).rstrip(_GAPS)
    if not param.is_text or not re.search(r"\s", rest.split(",")[0].strip()):
        # One word: what follows the comma or the space is about something else.
        rest = re.split(r",(?:\s|$)", rest)[0]
        first = rest.split()[0] if rest.split() else ""
        rest = first if fit(param, rest) is MISFIT or (param.is_text and text[start - 1] == "=") else rest
    return rest.strip().rstrip("."), start + len(rest)
