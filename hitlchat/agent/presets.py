"""Presets as administrators keep them, and what a conversation takes over of one when it begins.

A preset lowers nothing: what it has a conversation ask about is a least, and its tools pass the gate like any.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext_noop

from hitlchat.agent import limits, routes, tool_sets
from hitlchat.agent.administering import BadDraft, Subject, is_line, wrong_names
from hitlchat.agent.endpoints import ENVIRONMENT, LONGEST_MODEL
from hitlchat.agent.models import Preset
from hitlchat.agent.routes import NotOffered
from hitlchat.agent.tool_sets import BadTools
from hitlchat.base.canonical import storable
from hitlchat.base.problems import Invalid, required
from hitlchat.base.sentences import translatable
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Asks

LONGEST_INSTRUCTIONS, LONGEST_STARTER = 10_000, 300
MOST_STARTERS: Final = 6


class NoSuchPreset(Invalid):
    field = "preset"

    sentence = gettext_noop("There is no published preset with this name.")


@dataclass(frozen=True)
class Draft:
    """A preset as an administrator describes it; None and empty parts are left to who begins a conversation.

    `endpoint`: by name, that of the environment included; `tool_set`: by name.
    """

    name: str
    description: str = ""
    instructions: str = ""
    endpoint: str | None = None
    model: str = ""
    tool_set: str | None = None
    starters: tuple[str, ...] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    max_turns: int | None = None
    asks: str = Asks.TOOLS.value
    published: bool = False


FIELDS: Final = tuple(Draft.__dataclass_fields__)


def rows() -> QuerySet[Preset]:
    return Preset.objects.select_related("endpoint", "tool_set")


def published() -> QuerySet[Preset]:
    """Return those with which conversations can begin."""
    return rows().filter(published=True)


def named(name: str) -> Preset:
    """Return the published preset of this name. Raises: NoSuchPreset."""
    return required(published().filter(name=name).first(), NoSuchPreset)


def draft_of(row: Preset) -> Draft:
    plain = {name: getattr(row, name) for name in FIELDS}
    endpoint = (row.endpoint.name if row.endpoint else ENVIRONMENT) if row.chooses_model else None
    named = {"endpoint": endpoint, "tool_set": row.tool_set.name if row.tool_set else None}
    return Draft(**plain | named | {"starters": starters(row), "asks": asks_word(row.asks)})


def starters(row: Preset) -> tuple[str, ...]:
    """Return its sentences to begin with; none where they cannot be read."""
    return tuple(tool_sets.names(row.starters) or ())


def asks_word(word: str) -> str:
    """Return the word on what is asked about; one that is not known is taken for every call."""
    return word if word in Asks.values else Asks.EVERY.value


def problems(draft: Draft) -> dict[str, str]:
    found = wrong_names(draft.name, draft.description)
    if len(draft.instructions) > LONGEST_INSTRUCTIONS or storable(draft.instructions) != draft.instructions:
        found["instructions"] = translatable(
            f"Expected at most {LONGEST_INSTRUCTIONS:,} characters that can be stored."
        )
    if not is_line(draft.model, LONGEST_MODEL):
        found["model"] = gettext_noop("Expected the name of a model, of up to 200 characters.")
    if len(draft.starters) > MOST_STARTERS or not all(
        each and is_line(each, LONGEST_STARTER) for each in draft.starters
    ):
        found["starters"] = translatable(
            f"Expected up to {MOST_STARTERS} sentences, each one line of up to {LONGEST_STARTER} characters."
        )
    if draft.asks not in Asks.values:
        found["asks"] = f"Expected one of {', '.join(Asks.values)}."
    for check in (limits.checked, route, _tool_set):
        try:
            check(asdict(draft))
        except (limits.BadLimits, NotOffered, BadTools) as error:
            found |= error.errors
    return found


def route(draft: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns for the endpoint and model of a draft, which may have neither. Raises: NotOffered."""
    if draft["endpoint"] is not None:
        return {"chooses_model": True, **routes.columns(draft["endpoint"], draft["model"])}
    if draft["model"]:
        raise NotOffered({"endpoint": gettext_noop("Expected the endpoint that offers the model.")})
    return {"chooses_model": False, "endpoint": None, "model": ""}


def _tool_set(draft: Mapping[str, Any]) -> dict[str, Any]:
    return {"tool_set": None if draft["tool_set"] is None else tool_sets.named_one(draft["tool_set"])}


def _columns(draft: Draft, _row: Preset | None) -> dict[str, Any]:
    if errors := problems(draft):
        raise BadDraft(errors)
    given = asdict(draft)
    return given | route(given) | _tool_set(given) | {"starters": list(draft.starters)}


_subject = Subject[Preset, Draft](
    word="preset",
    rows=rows,
    recorded=lambda row: asdict(draft_of(row)) | {"starters": list(starters(row))},
    columns=_columns,
    only_people=gettext_noop("Only an administrator may change presets: sign in, or use an approver token."),
    gone=gettext_noop("This preset was deleted."),
    name_taken=gettext_noop("There is already a preset with this name."),
)

# Conversations that began with a preset stay as they are when it changes.
create, change = _subject.create, _subject.change


def remove(preset_id: UUID, actor: Actor) -> None:
    """Delete a preset; on record. Conversations that began with it stay as they are. Raises: OnlyPeople, NotFound."""
    with _subject.removing(preset_id, actor) as row:
        row.delete()


# -- What a conversation takes over ------------------------------------------------------------------------------------


def columns(row: Preset) -> dict[str, Any]:
    """Return the columns of a conversation that begins with the preset: what that leaves empty is not in them.

    Raises: NotOffered, if its model cannot be asked any more.
    """
    found: dict[str, Any] = {"preset": row.name, "least_asks": asks_word(row.asks)}
    if row.instructions:
        found["instructions"] = row.instructions
    found |= {name: value for name in limits.NAMES if (value := getattr(row, name)) is not None}
    if row.tool_set is not None:
        found |= {"tool_set": row.tool_set, "tools": None}
    if not row.chooses_model:
        return found
    if row.endpoint is not None and (row.endpoint.removed_at is not None or not row.endpoint.enabled):
        why = gettext_noop("The model endpoint of this preset was removed or disabled. Ask an administrator.")
        raise NotOffered({"preset": why})
    routes.require_offered(row.endpoint, row.model)
    return found | {"endpoint": row.endpoint, "model": row.model}
