"""A tool as JSON: what an export holds, and what is kept of every version. Secrets are named in it, never told."""

from collections.abc import Mapping
from typing import Any

from tools_studio.drafts import Draft
from tools_studio.variables import Variable

# JSON name and field of a Draft, for everything that is kept as it is.
PLAIN = {
    "name": "name",
    "title": "title",
    "description": "description",
    "group": "group",
    "category": "category",
    "code": "code",
    "capabilities": "capabilities",
    "hitlMode": "hitl_mode",
    "promptTemplate": "prompt_template",
    "condition": "condition",
    "deadlineSeconds": "deadline_seconds",
    "signedInOnly": "signed_in_only",
    "example": "example",
}
FIELDS = frozenset({*PLAIN, "tags", "variables"})
# What a JSON may lack that was made before there were these.
LATER: dict[str, Any] = {"signedInOnly": False}
# A field of a Draft as its JSON has it.
JSON_NAMES = {field: key for key, field in PLAIN.items()}


class Unreadable(ValueError):
    """The JSON was not made by this version of hitlchat, nor in its form."""

    def __init__(self) -> None:
        super().__init__("It was kept in a form that this version of hitlchat does not understand.")


def as_json(draft: Draft) -> dict[str, Any]:
    """Every field of `draft`, JSON all the way down; the value of a secret is null."""
    return {key: getattr(draft, field) for key, field in PLAIN.items()} | {
        "tags": list(draft.tags),
        "variables": [{"name": each.name, "secret": each.secret, "value": each.value} for each in draft.variables],
    }


def whole(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """With every field that there is now. Unreadable."""
    if not isinstance(snapshot, Mapping):
        raise Unreadable
    found = LATER | {**snapshot}
    if found.keys() != FIELDS:
        raise Unreadable
    return found


def draft(snapshot: Mapping[str, Any]) -> Draft:
    """The draft that `as_json` made it from. Unreadable: it did not."""
    snapshot = whole(snapshot)
    try:
        return Draft(
            **{field: snapshot[key] for key, field in PLAIN.items()},
            tags=tuple(snapshot["tags"]),
            variables=tuple(Variable(each["name"], each["secret"], each["value"]) for each in snapshot["variables"]),
        )
    except (KeyError, TypeError) as error:
        raise Unreadable from error
