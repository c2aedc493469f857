"""From a sentence to the arguments of a call: what is spelled out first, then what can be told by its kind."""

from collections.abc import Callable
from typing import Any

from hitlchat.agent.demo_model import evidence, explicit, phrases
from hitlchat.agent.demo_model.draft import Draft
from hitlchat.agent.demo_model.shapes import params
from hitlchat.agent.demo_model.words import canonical, parts

_STEPS: tuple[Callable[[Draft], None], ...] = (
    explicit.json_object,
    explicit.pairs,
    phrases.reason,
    phrases.choices,
    phrases.switches,
    phrases.zones,
    phrases.months,
    evidence.assign,
    phrases.lists,
    phrases.directions,
    phrases.followers,
    phrases.leftovers,
    phrases.topic,
    phrases.lone_number,
)


def fill(name: str, schema: dict[str, Any], text: str, *, named: bool) -> Draft:
    """A draft of the call, with the arguments in the order of the schema."""
    tool_words = frozenset(canonical(part) for part in parts(name))
    draft = Draft(text, params(schema), tool_words, named)
    for step in _STEPS:
        step(draft)
    for param in draft.missing():
        if "default" in param.schema:
            draft.values[param.name] = param.schema["default"]
        elif len(param.enum) == 1:
            draft.values[param.name] = param.enum[0]
        elif "null" in param.types:
            draft.values[param.name] = None
    ordered = {param.name: draft.values[param.name] for param in draft.params if param.name in draft.values}
    draft.values = ordered | draft.values
    return draft
