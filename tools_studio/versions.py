"""Every save is a version: who saved what and when, and how two differ line by line."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from hitlchat.base import canonical
from hitlchat.base.diff import Line, lines
from hitlchat.gate.models import Tool
from tools_studio import spec
from tools_studio.models import Script, ScriptVersion
from tools_studio.spec import Draft

# Of one tool: a program may save without end.
MOST = 500


@dataclass(frozen=True)
class Change:
    """One field that differs. `lines`: the diff, if one of the texts has several lines."""

    field: str
    before: str
    after: str

    @property
    def words(self) -> str:
        return spec.WORDS.get(self.field, self.field)

    @property
    def lines(self) -> list[Line]:
        is_long = "\n" in self.before or "\n" in self.after
        return lines(self.before, self.after) if is_long else []


@dataclass(frozen=True)
class Difference:
    """Changes between two versions: the code line by line, the rest field by field."""

    code: list[Line]
    changes: list[Change]

    @property
    def is_empty(self) -> bool:
        return not self.code and not self.changes


@dataclass(frozen=True)
class Save:
    """One version in the list. `fields` are the JSON names of what differs from the version `before`; None: unknown."""

    version: ScriptVersion
    fields: tuple[str, ...] | None
    before: int | None

    @property
    def words(self) -> str:
        if self.fields is None:
            return _("the first stored version")
        return ", ".join(_(spec.WORDS.get(key, key)) for key in self.fields) or _("only its secrets")


def forget(script: Script, names: Collection[str]) -> None:
    """Blank these variables' plain values in earlier versions: they are secrets from now on."""
    for version in script.versions.all() if names else ():
        blanked = [{**each, "value": None} if each["name"] in names else each for each in version.draft["variables"]]
        if blanked != version.draft["variables"]:
            version.draft = {**version.draft, "variables": blanked}
            version.save(update_fields=["draft"])


def record(script: Script, saved: Draft, definition_hash: str, author_id: int | None) -> ScriptVersion:
    """Store `saved` as the present version of `script`, and drop the oldest where there are too many."""
    script.versions.filter(number__lte=script.version - MOST).delete()
    return ScriptVersion.objects.create(
        script=script,
        number=script.version,
        draft=spec.as_json(saved),
        definition_hash=definition_hash,
        author_id=author_id,
    )


def draft_of(version: ScriptVersion, tool: Tool) -> Draft:
    """Return `version` as a draft for `tool`, which keeps its present name, and that a signed-in person must decide.

    Raises: Unreadable
    """
    wanted = spec.from_json(version.draft)
    return replace(wanted, name=tool.name, signed_in_only=wanted.signed_in_only or tool.signed_in_only)


def saves(newest_first: Iterable[ScriptVersion]) -> Iterator[Save]:
    """Yield each version with the fields that it changed; of the last one they are unknown."""
    versions = list(newest_first)
    for version, older in zip(versions, [*versions[1:], None], strict=True):
        if older is None:
            yield Save(version, None, None)
        else:
            yield Save(version, tuple(changed_fields(older.draft, version.draft)), older.number)


def changed_fields(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the JSON names of the fields that differ, in the order of `spec.FIELDS`."""
    return [key for key in {**spec.WORDS, **dict.fromkeys(sorted({**old, **new}))} if old.get(key) != new.get(key)]


def compare(old: dict[str, Any], new: dict[str, Any]) -> Difference:
    """Return how two tools, as their JSON, differ. Raises: Unreadable"""
    old, new = spec.complete(old), spec.complete(new)
    changes = [Change(key, _text(old[key]), _text(new[key])) for key in changed_fields(old, new) if key != "code"]
    return Difference(lines(old["code"], new["code"]), changes)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else canonical.pretty(value, indent=2)
