"""Second opinion: another model may caution about a call that waits, and can do nothing else.

The gate says what that model reads, no more than the card shows, and what of its answer counts: a caution or nothing.
A caution is never taken back. Whoever asks the model hears from the announcement of a call that it waits.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import BooleanField, Count, Exists, ExpressionWrapper, OuterRef, Q

from hitlchat.base import canonical, database
from hitlchat.base.canonical import storable
from hitlchat.base.lookalikes import fold
from hitlchat.base.visible import see
from hitlchat.gate import question, transition
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import LONGEST_CAUTION, Approval, Decision, SecondOpinion, ToolCall
from hitlchat.gate.status import STARTED, Status
from hitlchat.gate.transition import remark
from hitlchat.secrets.detection import Cover

CAUTIONED: Final = "call.cautioned"
LONGEST_MODEL: Final = 200
_YES: Final = frozenset({Status.APPROVED, *STARTED})
# Words that talk somebody into a yes, in plain lower case. A caution with one of them is lost, and the call waits on.
_SPEAKS_FOR: Final = re.compile(
    r"""
    \bapprov | \bgo\ ahead\b | \bproceed\b | \b(?:verified|reviewed|checked)\b | \bhitlchat\b | :// | \bwww\.
    | \b(?:safe|safely|harmless|benign|legitimate|legit|trustworthy|fine|okay|ok|all\ good)\b
    | \blooks?\ (?:good|right|correct|normal)\b | (?<!not\ )\bas\ (?:requested|expected|intended|asked)\b
    | \b(?:no|without|zero|not\ any)\s+(?:\w+\s+){0,2}
      (?:caution|concern|problem|risk|issue|objection|harm|danger|discrepanc|warning|reason\ to\ decline)
    | \bnothing\b.{0,40}\b(?:wrong|suspicious|unusual|worry|concerning|caution)
    | (?<!longer\ )\bmatches\b | (?<!not\ )\b(?:consistent|in\ line)\ with\b
    | \bgenehmig | \bfreigeb | \bzustimm | \bunbedenklich | \bunproblematisch | \bharmlos | \bin\ ordnung\b
    | \bsicher\b | \bgepr(?:u|ü|ue)ft\b | \bnichts\b.{0,40}\b(?:auff|verd) | \balles\ (?:gut|klar|ok)
    | \bkein(?:e|en|erlei)?\s+(?:\w+\s+){0,2}(?:bedenken|problem|risik|gefahr|einw|vorbehalt|warnung)
    """,
    re.VERBOSE,
)


class NotACaution(ValueError):
    """The text is no sentence that may stand on a card as a caution, and is dropped."""


@dataclass(frozen=True)
class Caution:
    """One sentence against a call. Its opposite is None: there is no type for an opinion in favour of one."""

    sentence: str

    def __post_init__(self) -> None:
        text = self.sentence
        is_line = 0 < len(text) <= LONGEST_CAUTION and text.isprintable() and storable(text) == text
        if not is_line or see(text).warnings or _SPEAKS_FOR.search(fold(text).text):
            raise NotACaution("It is no caution in one line.")


@dataclass(frozen=True)
class Asked:
    """One reading of a question; `text` is what the model reads."""

    approval: UUID
    call: UUID
    round: int
    model: str
    takes_tick: bool
    text: str


def begin(call_id: UUID, model: str, *, takes_tick: bool) -> Asked | None:
    """Return what the model is to read; None: the call waits no more, asks its person, was read or has a caution.

    Each time that a call is asked about it is read at most once, whatever becomes of that.
    """
    waiting = Approval.objects.filter(call_id=call_id, call__status=Status.WAITING)
    found = waiting.select_related("call__tool").first()
    if found is None or question.is_one(found.call):
        return None
    number = found.call.round
    model = model[:LONGEST_MODEL]
    columns = {"round": number, "model": model, "takes_tick": takes_tick}
    _row, is_new = SecondOpinion.objects.get_or_create(approval=found, defaults=columns)
    again = SecondOpinion.objects.filter(approval=found, caution="", round__lt=number)
    if not is_new and again.update(**columns, at=None) != 1:
        return None
    return Asked(found.pk, call_id, number, model, takes_tick, canonical.pretty(read(found)))


def read(approval: Approval) -> dict[str, Any]:
    """Return what is read of a call: nothing that an agent wrote but the arguments, and nothing that looks secret."""
    shown, tool = approval.disclosure, approval.call.tool
    cover = Cover(shown["arguments"])
    provenance = [
        {"path": each["path"], "from": each["from"], "tool": (each["source"] or {}).get("tool", "")}
        | {name: cover.text(each[name]) for name in ("near", "wrote") if name in each}
        for each in shown.get("provenance", [])
    ]
    return {
        "tool": {
            "name": shown["tool"]["name"],
            "description": tool.description if tool else "",
            "from": shown["tool"]["origin"],
            "risk": f"L{shown['risk']}",
        },
        "arguments": cover.value(shown["arguments"]),
        "where_values_come_from": provenance,
        "request_of_the_person": cover.text(shown.get("userPrompt", "")),
    }


def keep(asked: Asked, opinion: Caution | None) -> bool:
    """Keep what came of a reading, and show a caution on the card; False: the question is not open any more."""
    call = ToolCall.objects.filter(pk=asked.call, status=Status.WAITING, round=asked.round).first()
    if call is None:
        return False
    row = SecondOpinion.objects.filter(approval_id=asked.approval, round=asked.round, at=None)
    if opinion is None:
        return row.update(at=database.now()) == 1
    with transaction.atomic():
        # By the call's own row, which a yes moves: of a yes and a caution that takes a tick one comes first.
        if transition.still(call).update(caution_takes_tick=asked.takes_tick) != 1:
            return False
        row.update(at=database.now(), caution=opinion.sentence)
        data = {"approval": str(asked.approval), "model": asked.model, "takesTick": asked.takes_tick}
        remark(call, CAUTIONED, actor=SYSTEM, data={**data, "reason": opinion.sentence})
    return True


@dataclass
class Weighed:
    """Of a tool's calls that a model has read: what people answered, with a caution and without one."""

    cautioned_against: int = 0
    cautioned_approved: int = 0
    plain_against: int = 0
    plain_approved: int = 0

    @property
    def cautioned(self) -> int:
        return self.cautioned_against + self.cautioned_approved

    @property
    def plain(self) -> int:
        return self.plain_against + self.plain_approved


def counted(since: datetime, user: User | None = None) -> dict[str, Weighed]:
    """Return for each tool how its calls were answered once a model had read them; of everyone, if there is no `user`.

    Against a call is who declines it, changes it, or answers in its place.
    """
    rows = SecondOpinion.objects.filter(at__gte=since).order_by()
    rows = rows.filter(approval__call__caller=user) if user else rows
    changed = Exists(Decision.objects.filter(approval=OuterRef("pk"), edited_arguments__isnull=False))
    has_caution = ExpressionWrapper(~Q(caution=""), output_field=BooleanField())
    grouped = rows.annotate(has_caution=has_caution, changed=changed)
    found = grouped.values_list("approval__call__tool_name", "approval__call__status", "has_caution", "changed")
    weighed: dict[str, Weighed] = {}
    for tool, status, cautioned, is_changed, number in found.annotate(count=Count("pk")):
        if status in (Status.DECLINED, Status.ANSWERED) or (is_changed and status in _YES):
            answer = "against"
        elif status in _YES:
            answer = "approved"
        else:
            continue
        of_tool, column = weighed.setdefault(tool, Weighed()), f"{'cautioned' if cautioned else 'plain'}_{answer}"
        setattr(of_tool, column, getattr(of_tool, column) + number)
    return weighed
