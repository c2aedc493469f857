"""Tools as their authors have them: what must be right about one before it is saved, and its rows."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ValidationError

from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.problems import Conflict, Invalid
from hitlchat.gate import prompt, schema
from hitlchat.gate.models import LONGEST_DEADLINE, TOOL_NAME, HitlMode, Tool
from tools_studio import capabilities, risk, variables
from tools_studio.capabilities import Capabilities, CapabilityError
from tools_studio.capabilities.declared import listed
from tools_studio.language import checking, signature
from tools_studio.language.signature import Signature
from tools_studio.language.snippet import SignatureError
from tools_studio.models import GROUP, Category, Script, StoredVariable
from tools_studio.variables import Kept, Variable

SOURCE = "studio"
MOST_TAGS = 10
TAG = re.compile(r"[a-z0-9][a-z0-9 +#.-]{0,31}")
LONGEST = {"title": 120, "description": 4000, "prompt_template": 500, "condition": 2000}


class AuthoringError(Invalid):
    """Problems of a draft, by field; nothing was saved."""

    def __str__(self) -> str:
        return "; ".join(f"{name}: {said}" for name, said in self.errors.items())


@dataclass(frozen=True)
class Draft:
    """A tool as its author has it. `hitl_mode` None: the default for its risk."""

    name: str
    code: str
    title: str = ""
    description: str = ""
    group: str = "tools"
    category: str = Category.CUSTOM.value
    tags: tuple[str, ...] = ()
    capabilities: dict[str, Any] = field(default_factory=dict)
    hitl_mode: str | None = None
    prompt_template: str = ""
    condition: str = ""
    deadline_seconds: int | None = None
    signed_in_only: bool = False
    example: dict[str, Any] | None = None
    variables: tuple[Variable, ...] = ()


@dataclass(frozen=True)
class Checked:
    """A draft that is sound, with all that follows from it."""

    draft: Draft
    signature: Signature
    capabilities: Capabilities
    variables: tuple[Kept, ...]
    risk_level: int
    hitl_mode: HitlMode

    @property
    def description(self) -> str:
        return self.draft.description or self.signature.description

    @property
    def facts(self) -> list[str]:
        """Return what the tool can do, for the person who decides.

        Also that the server adds secrets to what it sends.
        """
        secrets = tuple(kept.name for kept in self.variables if kept.secret)
        return self.capabilities.sentences() + (
            [f"It uses {listed(secrets)}, kept secret on this server."] if secrets else []
        )

    @property
    def definition_hash(self) -> str:
        """Hash everything that makes the tool do what it does, or that a model or a person is told of it."""
        return canonical.sha256(
            {
                "source": SOURCE,
                "name": self.draft.name,
                "description": self.description,
                "input": self.signature.input_schema,
                "output": self.signature.output_schema,
                "code": self.draft.code,
                "group": self.draft.group,
                "capabilities": self.capabilities.as_json(),
                "variables": [kept.identity for kept in self.variables],
            }
        )


def check(draft: Draft, standing: Mapping[str, Kept] | None = None) -> Checked:
    """`standing` has the secrets that are stored, by name. AuthoringError with every field that is wrong."""
    problems: dict[str, str] = {}
    found = _signature(draft.code, problems)
    granted = _capabilities(draft.capabilities, problems)
    _check_words(draft, problems)
    _check_variables(draft, granted, problems)
    if found is not None:
        _check_against(found, draft, problems)
    if problems or found is None or granted is None:
        raise AuthoringError(problems)
    level = risk.assess(granted.as_json()).level
    default = HitlMode.DISABLED if level == 0 else HitlMode.REQUIRED
    kept = variables.keep(draft.variables, standing or {})
    return Checked(draft, found, granted, kept, level, HitlMode(draft.hitl_mode) if draft.hitl_mode else default)


def _signature(code: str, problems: dict[str, str]) -> Signature | None:
    try:
        found = signature.read(code)
        checking.check(code, found)
    except SignatureError as error:
        problems["code"] = f"Line {error.line}: {error}" if error.line else str(error)
        return None
    return found


def _capabilities(raw: dict[str, Any], problems: dict[str, str]) -> Capabilities | None:
    try:
        return capabilities.parse(raw)
    except CapabilityError as error:
        problems["capabilities"] = str(error)
        return None


def _check_words(draft: Draft, problems: dict[str, str]) -> None:
    for name, validator in (("name", TOOL_NAME), ("group", GROUP)):
        try:
            validator(getattr(draft, name))
        except ValidationError as error:
            problems[name] = error.messages[0]
    for name, most in LONGEST.items():
        text = getattr(draft, name)
        if len(text) > most:
            problems[name] = f"At most {most:,} characters, not {len(text):,}."
        elif storable(text) != text:
            problems[name] = "It contains a character that cannot be kept, such as U+0000."
    _check_choices(draft, problems)


def _check_choices(draft: Draft, problems: dict[str, str]) -> None:
    if draft.hitl_mode is not None and draft.hitl_mode not in HitlMode.values:
        problems["hitl_mode"] = f"Expected REQUIRED, CONDITIONAL or DISABLED, not {draft.hitl_mode!r}."
    if draft.category not in Category.values:
        problems["category"] = f"Expected one of {', '.join(Category.values)}."
    if len(draft.tags) > MOST_TAGS or not all(TAG.fullmatch(tag) for tag in draft.tags):
        problems["tags"] = f"Expected at most {MOST_TAGS} tags of small letters, digits and . + # -, such as invoices."
    if draft.deadline_seconds is not None and not 1 <= draft.deadline_seconds <= LONGEST_DEADLINE:
        problems["deadline_seconds"] = "Expected 1 second to 30 days."


def _check_variables(draft: Draft, granted: Capabilities | None, problems: dict[str, str]) -> None:
    if said := variables.problem(draft.variables):
        problems["variables"] = said
    missing = [name for name in (granted.webhook if granted else ()) if name not in {v.name for v in draft.variables}]
    if missing:
        problems["capabilities"] = (
            f"webhook.targets: there is no variable {missing[0]}; add it with the URL as its value"
        )


def _check_against(found: Signature, draft: Draft, problems: dict[str, str]) -> None:
    try:
        prompt.check(draft.prompt_template, found.input_schema.get("properties", {}))
        schema.check_schema(found.input_schema)
        schema.check_patterns(found.input_schema)
    except prompt.BadTemplate as error:
        problems["prompt_template"] = str(error)
    except schema.BadSchema as error:
        problems["code"] = f"The signature gives no valid schema: {error}"
    if draft.example is not None:
        try:
            schema.validate(found.input_schema, draft.example)
        except schema.BadArguments as error:
            problems["example"] = str(error)


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


class Unreadable(Conflict):
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
    """Return the draft with every field that there is now. Raises: Unreadable."""
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
