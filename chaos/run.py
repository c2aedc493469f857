"""One run of the harness, on the database and the Redis of this process's environment: faults, quiet, and the truth."""

import argparse
import json
import sys
import time
from collections import Counter
from random import Random
from typing import Final

import django

django.setup()

from django.db.models import Q  # noqa: E402
from django.db.models.functions import Now  # noqa: E402

from chaos import faults, truth  # noqa: E402
from chaos.chats import Deed  # noqa: E402
from chaos.stage import Stage, staged  # noqa: E402
from hitlchat.agent.models import Run, RunStatus  # noqa: E402
from hitlchat.gate.models import ToolCall  # noqa: E402
from hitlchat.gate.status import Status  # noqa: E402
from tests.waiting import RanOut, until  # noqa: E402

CHATS: Final = 6
QUIET_SECONDS: Final = 60.0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    given, began = parser.parse_args(), time.monotonic()
    random = Random(given.seed)
    with staged(random) as stage:
        stage.town.open(CHATS)
        tally = faults.play(stage, given.kills, random)
        stage.town.close()
        found = [*tally.stuck, *_unquiet(), *_of_record(stage)]
        found += [f"the model refused a request: {why}" for why in stage.model.take_invalid()]
        orders = [json.loads(order) for order in stage.counter.orders]
        cases = truth.cases(orders, stage.town, stage.model.requests)
    broken = [(case, said) for case in cases if (said := [*truth.violations(case)])]
    found += truth.strays(cases, orders)
    print(_report(tally, cases, orders, stage.town.journal))
    print(f"violations {len(broken) + len(found)}, seed {given.seed}, {time.monotonic() - began:.0f} s")
    for line in [*found, *(line for case, said in broken for line in _told(case, said))]:
        print(line)
    return 1 if found or broken else 0


def _told(case: truth.Case, said: list[str]) -> list[str]:
    """Return a violation with all that is known of the call, in lines."""
    known = [f"runs {case.runs}, told {sorted(case.told)}", *map(str, case.deeds), *case.history]
    return [f"{case.tool} {case.call} {'; '.join(said)}", *(f"    {line}" for line in known)]


def _unquiet() -> list[str]:
    """Wait until nothing goes on by itself; return what does not come to an end."""
    overdue = Q(status=Status.WAITING, deadline__lt=Now())

    def is_quiet() -> bool:
        at_work = Run.objects.filter(status=RunStatus.RUNNING).exists()
        return not at_work and not ToolCall.objects.filter(Q(status__in=truth.OPEN) | overdue).exists()

    try:
        until(is_quiet, "all that was begun comes to an end", seconds=QUIET_SECONDS)
    except RanOut as error:
        return [str(error)]
    return []


def _of_record(stage: Stage) -> list[str]:
    try:
        stage.home.manage("audit", "verify", "--plain")
    except AssertionError as error:
        return [f"the record is not whole: {error}"]
    return []


def _report(tally: faults.Tally, cases: list[truth.Case], orders: list[str], journal: list[Deed]) -> str:
    def counted(what: Counter[str]) -> str:
        return ", ".join(f"{name} {number}" for name, number in sorted(what.items())) or "none"

    return "\n".join(
        [
            f"faults: {counted(tally.faults)}",
            *(f"not tried here: {why}" for why in tally.untried),
            f"kills by moment: {counted(tally.kills)}",
            f"kills with a call or run in this state: {counted(tally.states)}",
            f"answers to people: {counted(Counter(str(deed.answer or 'no answer') for deed in journal))}",
            f"{len(cases)} calls: {counted(Counter(case.status for case in cases))}",
            f"{len(orders)} runs counted outside, {sum(len(case.told) for case in cases)} results told to the model",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
