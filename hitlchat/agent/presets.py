"""Presets as administrators keep them, and what a conversation takes over of one when it begins.

A preset lowers nothing: what it has a conversation ask about is a least, and its tools pass the gate like any.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext_noop

from hitlchat.agent import limits, routes, tool_sets
from hitlchat.agent.administering import Subject
from hitlchat.agent.endpoints import ENVIRONMENT, LONGEST_MODEL
from hitlchat.agent.models import Preset
from hitlchat.agent.routes import NotOffered
from hitlchat.agent.tool_sets import BAD_DESCRIPTION, BAD_NAME, BadTools, is_line, is_name
from hitlchat.base.canonical import storable
from hitlchat.base.problems import Invalid
from hitlchat.base.sentences import translatable
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Asks

ONLY_PEOPLE: Final = gettext_noop("Only an administrator may change presets: sign in, or use an approver token.")
LONGEST_DESCRIPTION, LONGEST_INSTRUCTIONS, LONGEST_STARTER = 300, 10_000, 300
MOST_STARTERS: Final = 6
REMOVED_ENDPOINT = gettext_noop("The model endpoint of this preset was removed or disabled. Ask an administrator.")


class BadPreset(Invalid):
    """The preset cannot be so; `errors` says by field what was expected, and nothing was changed."""


class NameTaken(BadPreset):
    """The name is that of another preset, maybe with other capital letters."""

    status = 409

    def __init__(self) -> None:
        super().__init__({"name": gettext_noop("There is a preset of this name already.")})


class NoSuchPreset(Invalid):
    """No preset of this name is published."""

    field = "preset"

    def __init__(self) -> None:
        super().__init__(gettext_noop("There is no published preset of this name."))


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
    """Return all presets, with what they name."""
    return Preset.objects.select_related("endpoint", "tool_set")


def published() -> QuerySet[Preset]:
    """Return those with which conversations can begin."""
    return rows().filter(published=True)


def named(name: str) -> Preset:
    """Return the published preset of this name. Raises: NoSuchPreset."""
    row = published().filter(name=name).first()
    if row is None:
        raise NoSuchPreset
    return row


def draft_of(row: Preset) -> Draft:
    """Return the preset as it is, to be changed."""
    plain = {name: getattr(row, name) for name in FIELDS}
    endpoint = (row.endpoint.name if row.endpoint else ENVIRONMENT) if row.chooses_model else None
    named = {"endpoint": endpoint, "tool_set": row.tool_set.name if row.tool_set else None}
    return Draft(**plain | named | {"starters": starters(row), "asks": known(row.asks)})


def starters(row: Preset) -> tuple[str, ...]:
    """Return its sentences to begin with; none where they cannot be read."""
    return tuple(tool_sets.names(row.starters) or ())


def known(word: str) -> str:
    """Return the word on what is asked about; one that is not known is taken for every call."""
    return word if word in Asks.values else Asks.EVERY.value


def problems(draft: Draft) -> dict[str, str]:
    """Return all that is wrong with the draft, a sentence for each field."""
    found = _of_texts(draft)
    if draft.asks not in Asks.values:
        found["asks"] = f"Expected one of {', '.join(Asks.values)}."
    for check in (limits.checked, _route, _tool_set):
        try:
            check(asdict(draft))
        except (limits.BadLimits, NotOffered, BadTools) as error:
            found |= error.errors
    return found


def _of_texts(draft: Draft) -> dict[str, str]:
    found: dict[str, str] = {}
    if not is_name(draft.name):
        found["name"] = BAD_NAME
    if not is_line(draft.description, LONGEST_DESCRIPTION):
        found["description"] = BAD_DESCRIPTION
    if len(draft.instructions) > LONGEST_INSTRUCTIONS or storable(draft.instructions) != draft.instructions:
        found["instructions"] = translatable(f"Expected at most {LONGEST_INSTRUCTIONS:,} characters that can be kept.")
    if not is_line(draft.model, LONGEST_MODEL):
        found["model"] = gettext_noop("Expected the name of a model, of up to 200 characters.")
    fits = all(each and is_line(each, LONGEST_STARTER) for each in draft.starters)
    if len(draft.starters) > MOST_STARTERS or not fits:
        found["starters"] = translatable(
            f"Expected up to {MOST_STARTERS} sentences, each one line of up to {LONGEST_STARTER} characters."
        )
    return found


def _route(draft: Mapping[str, Any]) -> dict[str, Any]:
    if draft["endpoint"] is not None:
        return {"chooses_model": True, **routes.columns(draft["endpoint"], draft["model"])}
    if draft["model"]:
        raise NotOffered({"endpoint": gettext_noop("Expected the endpoint that offers the model.")})
    return {"chooses_model": False, "endpoint": None, "model": ""}


def _tool_set(draft: Mapping[str, Any]) -> dict[str, Any]:
    return {"tool_set": None if draft["tool_set"] is None else tool_sets.named_one(draft["tool_set"])}


# -- Changes -----------------------------------------------------------------------------------------------------------


def _recorded(row: Preset) -> dict[str, Any]:
    return asdict(draft_of(row)) | {"starters": list(starters(row))}


_subject = Subject[Preset](
    word="preset",
    rows=rows,
    recorded=_recorded,
    only_people=ONLY_PEOPLE,
    gone=gettext_noop("This preset was deleted."),
    name_taken=NameTaken,
)


def create(draft: Draft, actor: Actor) -> Preset:
    """Add a preset; on record. Raises: BadPreset, NameTaken, OnlyPeople."""
    _subject.require(actor)
    columns = _columns(draft)
    with _subject.naming():
        row = Preset.objects.create(**columns)
        _subject.note_added(row, actor)
    return row


def change(preset_id: UUID, draft: Draft, actor: Actor) -> Preset:
    """Change a preset; on record. Conversations that began with it stay as they are.

    Raises: BadPreset, NameTaken, OnlyPeople, NotFound.
    """
    _subject.require(actor)
    columns = _columns(draft)
    with _subject.naming():
        row = _subject.locked(preset_id)
        _subject.write(row, actor, **columns)
    return row


def remove(preset_id: UUID, actor: Actor) -> None:
    """Delete a preset; on record. Conversations that began with it stay as they are. Raises: OnlyPeople, NotFound."""
    _subject.require(actor)
    with transaction.atomic():
        row = _subject.locked(preset_id)
        _subject.note_removed(row, actor)
        row.delete()


def _columns(draft: Draft) -> dict[str, Any]:
    if errors := problems(draft):
        raise BadPreset(errors)
    given = asdict(draft)
    return given | _route(given) | _tool_set(given) | {"starters": list(draft.starters)}


# -- What a conversation takes over ------------------------------------------------------------------------------------


def columns(row: Preset) -> dict[str, Any]:
    """Return the columns of a conversation that begins with the preset: what that leaves empty is not in them.

    Raises: NotOffered, if its model cannot be asked any more.
    """
    found: dict[str, Any] = {"preset": row.name, "least_asks": known(row.asks)}
    if row.instructions:
        found["instructions"] = row.instructions
    found |= {name: value for name in limits.NAMES if (value := getattr(row, name)) is not None}
    if row.tool_set is not None:
        found |= {"tool_set": row.tool_set, "tools": None}
    return found | (_asked(row) if row.chooses_model else {})


def _asked(row: Preset) -> dict[str, Any]:
    if row.endpoint is not None and (row.endpoint.removed_at is not None or not row.endpoint.enabled):
        raise NotOffered({"preset": REMOVED_ENDPOINT})
    routes.require_offered(row.endpoint, row.model)
    return {"endpoint": row.endpoint, "model": row.model}
