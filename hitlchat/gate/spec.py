"""The fields of a tool, declared once: what they are called, how long they may be, and what each means to the gate.

Drafts, forms, REST and versions of every source have them by these names; a new field begins here and in the model.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext_noop

from hitlchat.base.canonical import storable
from hitlchat.base.sentences import translatable
from hitlchat.gate.models import LONGEST_DEADLINE, HitlMode, Tool


@dataclass(frozen=True)
class Field:
    """A column of `Tool` that the record watches.

    `setting`: decided for a tool of any source. `guards`: with another value people may be asked about less, read
    otherwise or have longer to answer. `inherited`: the next tool of the name asks at least as much by it.
    """

    name: str
    words: str
    setting: bool = False
    guards: bool = False
    inherited: bool = False


# All that decides whether anyone is asked, or what they read. Schemas are in the definition's hash.
FIELDS: Final = (
    Field("name", gettext_noop("Name")),
    Field("source", gettext_noop("Source")),
    Field("title", gettext_noop("Title"), guards=True),
    Field("description", gettext_noop("Description")),
    Field("hitl_mode", gettext_noop("Approval"), setting=True, guards=True, inherited=True),
    Field("condition", gettext_noop("Condition"), setting=True, guards=True, inherited=True),
    Field("prompt_template", gettext_noop("Approval prompt"), setting=True, guards=True),
    Field("deadline_seconds", gettext_noop("Seconds to answer"), setting=True, guards=True),
    Field("signed_in_only", gettext_noop("A signed-in person must decide"), setting=True, guards=True, inherited=True),
    Field("risk_level", gettext_noop("Risk level"), guards=True),
    Field("risk_inherent", gettext_noop("Inherent risk"), guards=True),
    Field("risk_unknown", gettext_noop("Risk unknown"), guards=True),
    Field("facts", gettext_noop("What it can reach")),
    Field("published", gettext_noop("Published")),
    Field("definition_hash", gettext_noop("Definition")),
)
WORDS: Final = {each.name: each.words for each in FIELDS}
WATCHED: Final = tuple(WORDS)
SETTINGS: Final = tuple(each.name for each in FIELDS if each.setting)
INHERITED: Final = tuple(each.name for each in FIELDS if each.inherited)
# Most characters, as the columns have them.
LONGEST: Final = {
    each.name: each.max_length or 0
    for each in Tool._meta.fields  # noqa: SLF001 - public, says Django
    if each.name in ("title", "condition", "prompt_template")
}


def problems(draft: Any) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a draft's title and settings, as (field, sentence); `hitl_mode` None is left open."""
    for name, most in LONGEST.items():
        if wrong := wrong_text(getattr(draft, name), most):
            yield name, wrong
    if draft.hitl_mode is not None and draft.hitl_mode not in HitlMode.values:
        yield (
            "hitl_mode",
            translatable(f"Expected REQUIRED, CONDITIONAL or DISABLED, not {draft.hitl_mode!r}."),
        )
    if draft.deadline_seconds is not None and not 1 <= draft.deadline_seconds <= LONGEST_DEADLINE:
        yield "deadline_seconds", gettext_noop("Expected 1 second to 30 days.")


def wrong_text(text: str, most: int) -> str:
    """Return what is wrong with a text; empty if nothing."""
    if len(text) > most:
        return translatable(f"At most {most:,} characters, not {len(text):,}.")
    return "" if storable(text) == text else gettext_noop("Contains a character that cannot be stored, such as U+0000.")
