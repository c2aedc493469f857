"""From a sound draft to rows, and back."""

from typing import Any

from hitlchat.gate.models import Tool
from tools_studio.drafts import Checked, Draft
from tools_studio.models import Script, StoredVariable
from tools_studio.variables import Kept


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
