"""Which of the waiting calls are to be shown, as the query string of the inbox says."""

from datetime import timedelta
from typing import Any, Final

from django import forms
from django.core.validators import ProhibitNullCharactersValidator
from django.db.models import Q
from django.http import QueryDict
from django.utils import timezone

from hitlchat.gate import queue
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import CallerKind, ToolCall

# PostgreSQL knows no NUL.
STORABLE: Final = ProhibitNullCharactersValidator()
# What there is to choose from is taken from so many of the most urgent calls.
LOOKED_AT: Final = 200
AGES: Final = {"1": "1 minute", "5": "5 minutes", "15": "15 minutes", "60": "1 hour", "1440": "1 day"}
KINDS: Final = {
    CallerKind.CHAT.value: "The assistant",
    CallerKind.MCP.value: "MCP clients",
    CallerKind.API.value: "API clients",
    CallerKind.STUDIO.value: "Tests in the Studio",
}
SOURCES: Final = {"studio": "Tool Studio", "upstream": "Upstream servers", "project": "This project"}


class Filter(forms.Form):
    """Bound to a query string. What is no choice is named beside its field, and counts for nothing."""

    tool = forms.ChoiceField(label="Tool", required=False, validators=[STORABLE])
    source = forms.ChoiceField(label="Source", required=False, validators=[STORABLE])
    risk = forms.ChoiceField(label="Risk", required=False)
    caller = forms.ChoiceField(label="Called for", required=False, validators=[STORABLE])
    kind = forms.ChoiceField(label="Asked by", required=False)
    age = forms.ChoiceField(label="Waiting for", required=False)

    def __init__(self, sent: QueryDict, rows: list[tuple[str, ...]]) -> None:
        super().__init__(sent, auto_id="filter_%s")
        chosen = {name: str(sent.get(name, "")) for name in self.fields}
        for name, choices in _choices(rows, chosen).items():
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = choices

    @property
    def only(self) -> Q:
        """Of a ToolCall."""
        return wanted({name: self.cleaned_data.get(name, "") for name in self.fields})

    @property
    def count(self) -> int:
        """How many of the fields hide something."""
        return sum(bool(self.cleaned_data.get(name)) for name in self.fields)

    @property
    def query(self) -> str:
        """The fields that are set, as a query string."""
        kept = QueryDict(mutable=True)
        kept.update({name: value for name in self.fields if (value := self.cleaned_data.get(name))})
        return kept.urlencode()


def of(sent: QueryDict, user_id: int, *, narrow: bool = False) -> Filter:
    """Judged already. `narrow`: without what else there is to choose from."""
    rows: list[tuple[str, ...]] = []
    if not narrow:
        calls = ToolCall.objects.filter(pk__in=queue.first(user_id, LOOKED_AT)).order_by()
        rows = list(calls.values_list("tool_name", "source", "caller__username").distinct())
    found = Filter(sent, rows)
    found.is_valid()
    return found


def wanted(given: dict[str, str]) -> Q:
    """What the values of the fields ask of a ToolCall; an empty value asks nothing."""
    columns: dict[str, Any] = {"tool": "tool_name", "source": "source", "risk": "risk_level", "kind": "caller_kind"}
    columns["caller"] = "caller__username"
    only = Q(**{column: given[name] for name, column in columns.items() if given.get(name)})
    if given.get("age"):
        only &= Q(created_at__lte=timezone.now() - timedelta(minutes=int(given["age"])))
    return only


def _choices(rows: list[tuple[str, ...]], chosen: dict[str, str]) -> dict[str, list[tuple[str, str]]]:
    """Each with an empty one, and the one that is chosen also where nothing like it waits any more."""
    tools, sources, callers = ({row[at] for row in rows} for at in range(3))
    return {
        "tool": _listed("All tools", {name: name for name in tools}, chosen["tool"]),
        "source": _listed("All sources", {name: SOURCES.get(name, name) for name in sources}, chosen["source"]),
        "risk": [("", "Any risk"), *((str(level), f"L{level} {word}") for level, word in enumerate(RISK_LABELS))],
        "caller": _listed("Everyone", {name: name for name in callers}, chosen["caller"]),
        "kind": [("", "Anyone"), *KINDS.items()],
        "age": [("", "Any time"), *((value, f"More than {words}") for value, words in AGES.items())],
    }


def _listed(nothing: str, found: dict[str, str], chosen: str) -> list[tuple[str, str]]:
    more = {chosen: SOURCES.get(chosen, chosen)} if chosen else {}
    return [("", nothing), *sorted((more | found).items(), key=lambda item: item[1].lower())]
