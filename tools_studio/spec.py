"""A tool as its author has it: its fields, declared once, what must be right about them, and its rows and JSON."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.problems import Conflict, Invalid
from hitlchat.base.sentences import translatable
from hitlchat.gate import prompt, schema
from hitlchat.gate import spec as gate
from hitlchat.gate.models import TOOL_NAME, HitlMode, Tool
from hitlchat.secrets.values import Stored, Value
from tools_studio import capabilities, variables
from tools_studio.capabilities import Capabilities, CapabilityError, listed
from tools_studio.language import signature
from tools_studio.language.signature import Signature
from tools_studio.language.snippet import SignatureError
from tools_studio.models import Category, Script, StoredVariable

SOURCE = "studio"
MOST_TAGS = 10
TAG = re.compile(r"[a-z0-9][a-z0-9 +#.-]{0,31}")

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
OBJECT: Schema = {"type": "object"}
LONGEST_DESCRIPTION = 4000


def closed(required: list[str], properties: Schema) -> Schema:
    """Return the schema of an object with these properties and no others."""
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


VARIABLE = closed(["name"], {"name": TEXT, "secret": {"type": "boolean"}, "value": {"type": ["string", "null"]}})


@dataclass(frozen=True)
class Field:
    """A field of a tool: its words for people, its JSON Schema, the row with its column."""

    name: str
    words: str
    schema: Schema
    row: Literal["tool", "script"] = "tool"

    @property
    def key(self) -> str:
        first, *others = self.name.split("_")
        return first + "".join(map(str.capitalize, others))


# All that an author decides about a tool, in the order in which people think of it.
FIELDS = (
    Field("name", gettext_noop("name"), TEXT),
    Field("title", gettext_noop("title"), TEXT),
    Field("description", gettext_noop("description"), TEXT, "script"),
    Field("group", gettext_noop("group"), TEXT, "script"),
    Field("category", gettext_noop("category"), TEXT, "script"),
    Field("code", gettext_noop("code"), TEXT, "script"),
    Field("capabilities", gettext_noop("capabilities"), OBJECT, "script"),
    Field("hitl_mode", gettext_noop("Approval"), {"enum": [*HitlMode.values, None]}),
    Field("prompt_template", gettext_noop("approval prompt"), TEXT),
    Field("condition", gettext_noop("condition"), TEXT),
    Field("deadline_seconds", gettext_noop("time to answer"), {"type": ["integer", "null"]}),
    Field("signed_in_only", gettext_noop("signed-in person decides"), {"type": "boolean"}),
    Field("example", gettext_noop("example"), {"type": ["object", "null"]}),
    Field("tags", gettext_noop("tags"), {"type": "array", "maxItems": MOST_TAGS, "items": TEXT}, "script"),
    Field(
        "variables",
        gettext_noop("variables"),
        {"type": "array", "maxItems": variables.MOST, "items": VARIABLE},
        "script",
    ),
)
KEYS = {each.name: each.key for each in FIELDS}
WORDS = {each.key: each.words for each in FIELDS}


class AuthoringError(Invalid):
    """The problems of a draft, by field; nothing was saved. `capability`: the error of its capabilities."""

    def __init__(self, errors: Mapping[str, str], capability: CapabilityError | None = None) -> None:
        super().__init__(errors)
        self.capability = capability

    def __str__(self) -> str:
        return "; ".join(f"{name}: {words}" for name, words in self.errors.items())


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
    variables: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Checked:
    """A draft that is sound, with all that follows from it."""

    draft: Draft
    signature: Signature
    capabilities: Capabilities
    variables: tuple[Stored, ...]
    risk_level: int
    hitl_mode: HitlMode

    @property
    def description(self) -> str:
        return self.draft.description or self.signature.description

    @property
    def facts(self) -> list[str]:
        """Return sentences about what the tool can do, and its secrets, for the person who decides."""
        secrets = tuple(each.name for each in self.variables if each.secret)
        return self.capabilities.sentences() + (
            [translatable(f"It uses {listed(secrets)}, kept secret on this server.")] if secrets else []
        )

    @property
    def definition_hash(self) -> str:
        """Hash everything that determines what the tool does, or what models and people read about it."""
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
                "variables": [[each.name, each.secret, each.mark] for each in self.variables],
            }
        )


def check(draft: Draft, stored: Mapping[str, Stored] | None = None, *, sections: bool = True) -> Checked:
    """Check all fields of a draft. `stored`: the stored secrets by name. Raises: AuthoringError, with all problems

    `sections`: of the code's docstring, see docstrings.read.
    """
    problems: dict[str, str] = {}
    found: Signature | None = None
    try:
        found = signature.read(draft.code, sections=sections)
        signature.check_preview(draft.code, found)
    except SignatureError as error:
        problems["code"] = f"Line {error.line}: {error}" if error.line else str(error)
    granted, unsound = _capabilities(draft)
    if unsound is not None:
        problems["capabilities"] = str(unsound)
    _check_words(draft, problems)
    if wrong := variables.problem(draft.variables):
        problems["variables"] = wrong
    if found is not None:
        _check_against(found, draft, problems)
    if problems or found is None or granted is None:
        raise AuthoringError(problems, unsound)
    level = granted.risk_level
    default = HitlMode.DISABLED if level == 0 else HitlMode.REQUIRED
    declared = variables.to_store(draft.variables, stored or {})
    return Checked(draft, found, granted, declared, level, HitlMode(draft.hitl_mode) if draft.hitl_mode else default)


def columns(sound: Checked, version: int) -> dict[str, Any]:
    return {each.name: getattr(sound.draft, each.name) for each in FIELDS if each.row == "tool"} | {
        "description": sound.description,
        "input_schema": sound.signature.input_schema,
        "output_schema": sound.signature.output_schema,
        "origin": translatable(f"Tool Studio, version {version}"),
        "hitl_mode": sound.hitl_mode,
        "risk_level": sound.risk_level,
        "facts": sound.facts,
        "definition_hash": sound.definition_hash,
    }


def script_columns(sound: Checked, version: int) -> dict[str, Any]:
    # Variables have rows of their own.
    own = [each.name for each in FIELDS if each.row == "script" and each.name != "variables"]
    return {name: getattr(sound.draft, name) for name in own} | {
        "tags": list(sound.draft.tags),
        "capabilities": sound.capabilities.as_json(),
        "version": version,
    }


def store_variables(script: Script, variables: tuple[Stored, ...]) -> None:
    if stored_variables(script) == {each.name: each for each in variables}:
        return
    script.variables.all().delete()
    StoredVariable.objects.bulk_create(StoredVariable(script=script, **asdict(each)) for each in variables)


def stored_variables(script: Script) -> dict[str, Stored]:
    return {row.name: row.stored for row in StoredVariable.objects.filter(script=script)}


def draft_of(tool: Tool) -> Draft:
    """Return the tool as its author has it; the values of secrets are left out."""
    script: Script = tool.script
    given = {
        each.name: getattr(tool if each.row == "tool" else script, each.name)
        for each in FIELDS
        if each.name != "variables"
    }
    shown = tuple(each.shown() for each in stored_variables(script).values())
    return Draft(**given | {"tags": tuple(script.tags)}, variables=shown)


class Unreadable(Conflict):
    """The JSON has another form than this version of hitlchat gives it."""

    sentence = gettext_noop("It is stored in a form that this version of hitlchat does not understand.")


def as_json(draft: Draft) -> dict[str, Any]:
    """Return every field of `draft`, JSON all the way down; the value of a secret is null."""
    return {each.key: getattr(draft, each.name) for each in FIELDS} | {
        "tags": list(draft.tags),
        "variables": [{"name": each.name, "secret": each.secret, "value": each.value} for each in draft.variables],
    }


def complete(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of a draft, which has each field. Raises: Unreadable."""
    if not isinstance(snapshot, Mapping) or snapshot.keys() != WORDS.keys():
        raise Unreadable
    return {**snapshot}


def from_json(snapshot: Mapping[str, Any]) -> Draft:
    """Return the draft that `as_json` made it from. Raises: Unreadable."""
    snapshot = complete(snapshot)
    try:
        if any({*each} != {*VARIABLE["properties"]} for each in snapshot["variables"]):
            raise Unreadable
        return given(snapshot)
    except (KeyError, TypeError) as error:
        raise Unreadable from error


def given(document: Mapping[str, Any]) -> Draft:
    """Return the draft of a JSON that has at least a name and code. Raises: KeyError, TypeError."""
    fields = {name: document[key] for name, key in KEYS.items() if key in document}
    named = tuple(variables.from_json(each) for each in document.get("variables", ()))
    return Draft(**fields | {"tags": tuple(document.get("tags", ())), "variables": named})


def _capabilities(draft: Draft) -> tuple[Capabilities | None, CapabilityError | None]:
    try:
        granted = capabilities.parse(draft.capabilities)
    except CapabilityError as error:
        return None, error
    declared = {each.name for each in draft.variables}
    if missing := next((name for name in granted.webhook if name not in declared), ""):
        sentence = translatable(f"there is no variable {missing}; add it with the URL as its value")
        return granted, CapabilityError("webhook.targets", sentence)
    return granted, None


def _check_words(draft: Draft, problems: dict[str, str]) -> None:
    for name in ("name", "group"):
        try:
            TOOL_NAME(getattr(draft, name))
        except ValidationError as error:
            problems[name] = error.messages[0]
    if wrong := gate.wrong_text(draft.description, LONGEST_DESCRIPTION):
        problems["description"] = wrong
    problems |= gate.problems(draft)
    if draft.category not in Category.values:
        problems["category"] = translatable(f"Expected one of {', '.join(Category.values)}.")
    if len(draft.tags) > MOST_TAGS or not all(TAG.fullmatch(tag) for tag in draft.tags):
        problems["tags"] = translatable(
            f"Expected at most {MOST_TAGS} tags of small letters, digits and . + # -, such as invoices."
        )


def _check_against(found: Signature, draft: Draft, problems: dict[str, str]) -> None:
    try:
        prompt.check(draft.prompt_template, found.input_schema.get("properties", {}))
        schema.check_schema(found.input_schema)
        schema.check_patterns(found.input_schema)
    except prompt.BadTemplate as error:
        problems["prompt_template"] = str(error)
    except schema.BadSchema as error:
        problems["code"] = translatable(f"The signature gives no valid schema: {error}")
    if draft.example is not None:
        try:
            schema.validate(found.input_schema, draft.example)
        except schema.BadArguments as error:
            problems["example"] = str(error)
