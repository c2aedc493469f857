"""Tools as their authors have them, and everything that has to be right about one before it is saved."""

from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ValidationError

from hitlchat.gate import canonical, prompt, schema
from hitlchat.gate.models import TOOL_NAME, HitlMode
from hitlchat.gate.storable import storable
from tools_studio import capabilities, risk, signature
from tools_studio.capabilities import Capabilities, CapabilityError
from tools_studio.models import GROUP
from tools_studio.signature import Signature, SignatureError

SOURCE = "studio"
LONGEST_DEADLINE = 30 * 86400
LONGEST = {"title": 120, "description": 4000, "prompt_template": 500, "condition": 2000}


class AuthoringError(ValueError):
    """What is wrong with a draft, by field; nothing was saved."""

    def __init__(self, problems: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" for name, text in problems.items()))
        self.problems = problems


@dataclass(frozen=True)
class Draft:
    """A tool as its author has it. `hitl_mode` None: the default for its risk."""

    name: str
    code: str
    title: str = ""
    description: str = ""
    group: str = "tools"
    capabilities: dict[str, Any] = field(default_factory=dict)
    hitl_mode: str | None = None
    prompt_template: str = ""
    condition: str = ""
    deadline_seconds: int | None = None
    example: dict[str, Any] | None = None


@dataclass(frozen=True)
class Checked:
    """A draft that is sound, with all that follows from it."""

    draft: Draft
    signature: Signature
    capabilities: Capabilities
    risk_level: int
    hitl_mode: HitlMode

    @property
    def description(self) -> str:
        return self.draft.description or self.signature.description

    @property
    def definition_hash(self) -> str:
        """Over everything that makes the tool do what it does, or that a model or a person is told of it."""
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
            }
        )


def check(draft: Draft) -> Checked:
    """AuthoringError with every field that is wrong."""
    problems: dict[str, str] = {}
    found = _signature(draft.code, problems)
    granted = _capabilities(draft.capabilities, problems)
    _check_words(draft, problems)
    if found is not None:
        _check_against(found, draft, problems)
    if problems or found is None or granted is None:
        raise AuthoringError(problems)
    level = risk.assess(granted.as_json()).level
    default = HitlMode.DISABLED if level == 0 else HitlMode.REQUIRED
    return Checked(draft, found, granted, level, HitlMode(draft.hitl_mode) if draft.hitl_mode else default)


def _signature(code: str, problems: dict[str, str]) -> Signature | None:
    try:
        return signature.read(code)
    except SignatureError as error:
        problems["code"] = f"Line {error.line}: {error}" if error.line else str(error)
        return None


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
    if draft.hitl_mode is not None and draft.hitl_mode not in HitlMode.values:
        problems["hitl_mode"] = f"Expected REQUIRED, CONDITIONAL or DISABLED, not {draft.hitl_mode!r}."
    if draft.deadline_seconds is not None and not 1 <= draft.deadline_seconds <= LONGEST_DEADLINE:
        problems["deadline_seconds"] = "Expected 1 second to 30 days."


def _check_against(found: Signature, draft: Draft, problems: dict[str, str]) -> None:
    try:
        prompt.check(draft.prompt_template, found.input_schema.get("properties", {}))
        schema.check_schema(found.input_schema)
    except prompt.BadTemplate as error:
        problems["prompt_template"] = str(error)
    except schema.BadSchema as error:
        problems["code"] = f"The signature gives no valid schema: {error}"
    if draft.example is not None:
        try:
            schema.validate(found.input_schema, draft.example)
        except schema.BadArguments as error:
            problems["example"] = str(error)
