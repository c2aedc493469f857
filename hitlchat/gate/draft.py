"""A draft of rules: tools under another mode or condition, who would decide about them, and other policies."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext_noop
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from hitlchat.base import canonical
from hitlchat.base.problems import Invalid
from hitlchat.base.sentences import translatable
from hitlchat.gate import policy
from hitlchat.gate.models import Tool
from hitlchat.gate.policies.bundled import SIMPLE
from hitlchat.gate.policies.loading import COMPOSED, DEEPEST, Rule, Unloadable, load

DRAFT: Final = "draft"
POLICIES: Final = "policies"
# The columns of a tool that a draft may set.
SETTINGS: Final = ("hitl_mode", "condition")
NOT_HERE: Final = gettext_noop(
    "A draft names no code but what HITL_POLICIES has, with the same options; use manage.py policy replay."
)


class BadDraft(Invalid):
    """A draft that cannot be read; `errors` names the field, and so does the sentence."""

    def __init__(self, field: str, words: str) -> None:
        super().__init__({field: words})

    def __str__(self) -> str:
        return " ".join(f"{field}: {words}" for field, words in self.errors.items())


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True)


class RulesGiven(_Part):
    """Who decides, groups by name; what is left out is as it is without rules. No verdict depends on it."""

    decided_by: Literal["requester", "approvers", "group"] = "requester"
    group: str | None = None
    quorum: int = 1
    not_the_requester: bool = False
    escalate_to: str | None = None
    escalate_after_seconds: int | None = None
    second: str | None = None
    third: str | None = None


class EarnedGiven(_Part):
    """A rule that the record bears out: calls of the tool that meet it run unasked, so many a day."""

    condition: Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S")]
    per_day: Annotated[int, Field(ge=1, le=1000)]
    per_person: Annotated[int, Field(ge=1, le=1000)]


class ToolGiven(_Part):
    hitl_mode: Literal["REQUIRED", "CONDITIONAL", "DISABLED"] | None = None
    condition: Annotated[str, Field(max_length=10_000)] | None = None
    rules: RulesGiven | None = None
    earned: EarnedGiven | None = None

    @property
    def settings(self) -> dict[str, str]:
        """Return the columns of a tool that it sets."""
        return {name: value for name in SETTINGS if (value := getattr(self, name)) is not None}


class Given(_Part):
    """A draft as it is written."""

    tools: dict[str, ToolGiven] = Field(default_factory=dict)
    policies: list[Any] | None = None

    @property
    def as_json(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_none=True, exclude_unset=True)


@dataclass(frozen=True)
class Draft:
    """The tools as they would be, by id, and the rules in place of the installation's; None: those stay. `earned`: the
    earned rules of tools.
    """

    tools: Mapping[UUID, Tool] = field(default_factory=dict)
    rules: tuple[Rule, ...] | None = None
    earned: Mapping[UUID, EarnedGiven] = field(default_factory=dict)


def parse(given: Any) -> Given:
    """Return a draft as it is written, whatever there is of its tools. Raises: BadDraft"""
    try:
        return Given.model_validate_json(canonical.dumps(given))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise BadDraft(".".join(map(str, first["loc"])) or DRAFT, f"{first['msg']}.") from error
    except canonical.NotJson as error:
        raise BadDraft(DRAFT, f"{error}.") from error


def read(given: Any, *, trusted: bool = False) -> Draft:
    """Read a draft. `trusted`: of whoever can run commands, and so may name code. Raises: BadDraft"""
    found = parse(given)
    tools = {tool.name: tool for tool in Tool.objects.filter(name__in=found.tools)}
    changed, earned = {}, {}
    for missing in sorted(found.tools.keys() - tools.keys()):
        raise BadDraft(f"tools.{missing}", translatable(f"There is no tool named {missing!r}."))
    for name, draft in found.tools.items():
        if why := policy.misread_condition(draft.condition or "", {}):
            raise BadDraft(f"tools.{name}.condition", why)
        tool = copy.copy(tools[name])
        if draft.earned is not None:
            earned[tool.pk] = draft.earned
            if why := policy.misread_condition(draft.earned.condition, tool.input_schema):
                raise BadDraft(f"tools.{name}.earned.condition", why)
        for column, value in draft.settings.items():
            setattr(tool, column, value)
        changed[tool.pk] = tool
    rules = None if found.policies is None else _rules(found.policies, trusted=trusted)
    return Draft(changed, rules, earned)


def _rules(entries: list[Any], *, trusted: bool) -> tuple[Rule, ...]:
    """Load the rules of a draft. To load code is to run it: only an operator says which. Raises: BadDraft"""
    theirs = [canonical.dumps(each) for each in _own(settings.HITL_POLICIES)]
    if not trusted and any(canonical.dumps(each) not in theirs for each in _own(entries)):
        raise BadDraft(POLICIES, NOT_HERE)
    try:
        return load(entries, POLICIES)
    except Unloadable as error:
        raise BadDraft(POLICIES, str(error)) from error


def _own(entries: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the entries that could be loaded as anything but a rule that ships."""
    for each in entries if isinstance(entries, list) and depth < DEEPEST else ():
        word = each.get("policy") if isinstance(each, dict) else None
        if isinstance(word, str) and word in COMPOSED:
            yield from _own(each.get("policies"), depth + 1)
        elif not (isinstance(word, str) and word in SIMPLE):
            yield each
