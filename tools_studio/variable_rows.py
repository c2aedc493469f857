"""The rows of the Studio's form in which an author names static variables and gives their values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from hitlchat.secrets.references import REFERENCE
from tools_studio.variables import Kept, Variable, resolve

NAME, KIND, VALUE = "variable-name", "variable-kind", "variable-value"
SPARE = 2


@dataclass(frozen=True)
class Row:
    """`kept`: a secret is stored that is shown to nobody; `again`: one was typed and is not shown back."""

    name: str = ""
    secret: bool = False
    value: str = ""
    kept: bool = False
    again: bool = False
    missing: str = ""

    @property
    def empty(self) -> bool:
        return not (self.name or self.value or self.again)


def of(variables: Iterable[Variable], standing: Mapping[str, Kept]) -> list[Row]:
    """The rows for variables as they are stored, and some to fill in; a stored secret's value is None in them."""
    missing = resolve(standing.values()).missing
    rows = [
        Row(each.name, each.secret, each.value or "", _is_kept(each, standing), missing=missing.get(each.name, ""))
        for each in variables
    ]
    return rows + [Row()] * SPARE


def typed(data: Mapping[str, Any], standing: Mapping[str, Kept]) -> list[Row]:
    """The rows as they were posted. A secret that was typed is not sent back, so it has to be typed again."""
    rows = []
    for each in variables(data):
        given = each.value or ""
        hidden = each.secret and given != "" and not REFERENCE.fullmatch(given)
        shown = "" if hidden else given
        rows.append(Row(each.name, each.secret, shown, _is_kept(each, standing), again=hidden))
    return rows + [Row()] * SPARE


def variables(data: Mapping[str, Any]) -> tuple[Variable, ...]:
    """What the posted rows declare. A row with neither a name nor a value is none; a secret without a value stays."""
    if not isinstance(data, QueryDict):
        return ()
    rows = zip(data.getlist(NAME), data.getlist(KIND), data.getlist(VALUE), strict=False)
    return tuple(
        Variable(name.strip(), kind == "secret", None if kind == "secret" and not value else value)
        for name, kind, value in rows
        if name.strip() or value
    )


def _is_kept(variable: Variable, standing: Mapping[str, Kept]) -> bool:
    stored = standing.get(variable.name)
    return bool(variable.secret and stored and stored.secret and stored.value and not REFERENCE.fullmatch(stored.value))
