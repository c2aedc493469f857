"""From a sound draft to rows and back, as JSON for exports and versions; secrets are named in it, never told."""

from collections.abc import Mapping
from typing import Any

from hitlchat.gate.models import Tool
from tools_studio.drafts import Checked, Draft
from tools_studio.models import Script, StoredVariable
from tools_studio.variables import Kept, Variable


def of_tool(sound: Checked, version: int) -> dict[str, Any]:
    """The columns of the gate's row."""
    draft = sound.draft
    return {
        "name": draft.name,
        "title": draft.title,
        "description": sound.description,
        "input_schema": sound.signature.input_schema,
        "output_schema": sound.signature.output_schema,
        "origin": f"Tool Studio, version {version}",
        "hitl_mode": sound.hitl_mode,
        "prompt_template": draft.prompt_template,
        "condition": draft.condition,
        "deadline_seconds": draft.deadline_seconds,
        "signed_in_only": draft.signed_in_only,
        "risk_level": sound.risk_level,
        "facts": sound.facts,
        "definition_hash": sound.definition_hash,
        "example": draft.example,
    }


def of_script(sound: Checked, version: int) -> dict[str, Any]:
    """The columns of the Studio's row."""
    draft = sound.draft
    return {
        "code": draft.code,
        "group": draft.group,
        "category": draft.category,
        "tags": list(draft.tags),
        "description": draft.description,
        "capabilities": sound.capabilities.as_json(),
        "version": version,
    }


def keep_variables(script: Script, variables: tuple[Kept, ...]) -> None:
    """Make the stored variables these."""
    if kept(script) == {each.name: each for each in variables}:
        return
    script.variables.all().delete()
    StoredVariable.objects.bulk_create(
        StoredVariable(
            script=script, name=each.name, secret=each.secret, value=each.value, fingerprint=each.fingerprint
        )
        for each in variables
    )


def kept(script: Script) -> dict[str, Kept]:
    """The stored variables by name, as they are stored."""
    return {
        row.name: Kept(row.name, row.secret, row.value, row.fingerprint)
        for row in StoredVariable.objects.filter(script=script)
    }


def draft_of(tool: Tool) -> Draft:
    """The tool as its author has it; secrets are named, not told."""
    script: Script = tool.script
    return Draft(
        name=tool.name,
        code=script.code,
        title=tool.title,
        description=script.description,
        group=script.group,
        category=script.category,
        tags=tuple(script.tags),
        capabilities=script.capabilities,
        hitl_mode=tool.hitl_mode,
        prompt_template=tool.prompt_template,
        condition=tool.condition,
        deadline_seconds=tool.deadline_seconds,
        signed_in_only=tool.signed_in_only,
        example=tool.example,
        variables=tuple(each.shown() for each in kept(script).values()),
    )


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
