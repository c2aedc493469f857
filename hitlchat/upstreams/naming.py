"""Aliases for the tools of one Apply, and for the drawer before it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from hitlchat.gate.models import Tool
from hitlchat.upstreams.judge import aliases as rules
from hitlchat.upstreams.models import ComposedTool

Wanted = tuple[ComposedTool, str | None]
"""A tool and the alias that somebody wants for it: None for the one that it has, "" for the default."""


@dataclass(frozen=True)
class Names:
    given: dict[UUID, str]
    problems: dict[UUID, list[str]]


def proposals(rows: Iterable[ComposedTool]) -> dict[UUID, str]:
    """The alias of each tool: the one it has, else the one it would get. With their servers and tools loaded."""
    return aliases([(row, None) for row in rows]).given


def aliases(wanted: list[Wanted]) -> Names:
    """One alias for each tool, no two alike, and none that another tool has; or what speaks against it."""
    taken = set(Tool.objects.values_list("name", flat=True))
    chosen = {row.pk: alias for row, alias in wanted if alias and not (row.tool and row.tool.name == alias)}
    others = [(row, alias) for row, alias in wanted if row.pk not in chosen]
    given = _default(others, taken)
    defaults, alike = set(given.values()), Counter(map(rules.shape, chosen.values()))
    problems: dict[UUID, list[str]] = {}
    for row, _ in wanted:
        if (alias := chosen.get(row.pk)) is None:
            continue
        own = {row.tool.name} if row.tool else set()
        if found := rules.objections(alias, (taken - own) | defaults):
            problems[row.pk] = [f"Alias: {each.sentence}" for each in found]
        elif alike[rules.shape(alias)] > 1:
            problems[row.pk] = [f"Alias: “{alias}” is, or looks like, what another tool is to be called now."]
        given[row.pk] = alias
    return Names(given, problems)


def _default(wanted: list[Wanted], taken: set[str]) -> dict[UUID, str]:
    """The alias that each has, unless the default is asked for; new ones keep clear of all others."""
    has = {row.pk: row.tool.name for row, alias in wanted if row.tool and alias in {None, row.tool.name}}
    offers = {row.pk: (row.server.name, row.name) for row, _ in wanted if row.pk not in has}
    own = {row.tool.name for row, _ in wanted if row.tool and row.pk in offers}
    assigned = rules.assign(offers.values(), taken - own, {})
    return has | {pk: assigned[offer] for pk, offer in offers.items()}
