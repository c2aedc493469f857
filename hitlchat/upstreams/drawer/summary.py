"""What the drawer says of all servers together: what is exposed, how it is asked about, and what stays out."""

from dataclasses import dataclass

from django.db.models import Count, F, Q

from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import HitlMode, ToolCall
from hitlchat.gate.withdraw import NOT_STARTED
from hitlchat.upstreams import exposure
from hitlchat.upstreams.models import ComposedTool, Exposure, ServerState, ToolState, UpstreamServer

MOST_CHIPS = 60
SILENT = (ServerState.DOWN, ServerState.SIGN_IN, ServerState.UNUSABLE)
_EXPOSED = Q(state=ToolState.EXPOSED)
_CHANGED = Q(held=True) | ~Q(seen_digest=F("pinned_digest")) | ~Q(seen_profile=F("pinned_profile"))


@dataclass(frozen=True)
class Level:
    """One choice of the ceiling, and what it would keep out. `calls`: those it would withdraw."""

    number: int
    above: int
    above_exposed: int
    calls: int

    @property
    def label(self) -> str:
        return f"L{self.number} {RISK_LABELS[self.number]}"


@dataclass(frozen=True)
class Summary:
    offered: int
    exposed: int
    modes: dict[str, int]
    changed: int
    above: int
    silent: int
    levels: tuple[Level, ...]
    exposure: Exposure

    @property
    def asks(self) -> int:
        return self.modes.get(HitlMode.REQUIRED, 0)

    @property
    def policies(self) -> int:
        return self.modes.get(HitlMode.CONDITIONAL, 0)

    @property
    def never(self) -> int:
        return self.modes.get(HitlMode.DISABLED, 0)


@dataclass(frozen=True)
class Chip:
    """An exposed tool. `there`: it is in the catalog, since its server answers."""

    tool: str
    alias: str
    mode: str
    there: bool


def above(ceiling: int) -> Q:
    """Ticked, and kept out by this ceiling alone."""
    return Q(state=ToolState.WITHHELD, risk_inherent__gt=ceiling) & ~_CHANGED


def summary() -> Summary:
    standing = exposure.standing()
    tools = ComposedTool.objects.exclude(state=ToolState.GONE)
    counts = tools.aggregate(
        offered=Count("pk"),
        exposed=Count("pk", filter=_EXPOSED),
        changed=Count("pk", filter=Q(state=ToolState.WITHHELD) & _CHANGED),
        above=Count("pk", filter=above(standing.ceiling)),
    )
    modes = tools.filter(_EXPOSED).order_by().values_list("tool__hitl_mode").annotate(many=Count("pk"))
    silent = UpstreamServer.objects.filter(enabled=True, state__in=SILENT).count()
    return Summary(modes=dict(modes), silent=silent, levels=_levels(), exposure=standing, **counts)


def chips(most: int | None = MOST_CHIPS) -> list[Chip]:
    """Of all that is exposed, by alias; at most so many."""
    found = ComposedTool.objects.filter(_EXPOSED).order_by("tool__name")
    columns = ("pk", "tool__name", "tool__hitl_mode", "tool__published")
    return [Chip(str(pk), *rest) for pk, *rest in found.values_list(*columns)[:most]]


def _levels() -> tuple[Level, ...]:
    """Only of what could be exposed otherwise."""
    fit = ComposedTool.objects.exclude(state__in=[ToolState.GONE, ToolState.UNFIT])
    counted = (
        fit.order_by().values("risk_inherent").annotate(many=Count("pk"), wanted=Count("pk", filter=Q(exposed=True)))
    )
    found = {each["risk_inherent"]: (each["many"], each["wanted"]) for each in counted}
    open_calls = ToolCall.objects.filter(status__in=NOT_STARTED, tool__composed__state=ToolState.EXPOSED)
    risks = open_calls.order_by().values_list("tool__composed__risk_inherent").annotate(many=Count("pk"))
    waiting = dict(risks.values_list("tool__composed__risk_inherent", "many"))
    return tuple(
        Level(
            number,
            above=sum(many for level, (many, _) in found.items() if level > number),
            above_exposed=sum(wanted for level, (_, wanted) in found.items() if level > number),
            calls=sum(many for level, many in waiting.items() if level > number),
        )
        for number in range(1, 6)
    )
