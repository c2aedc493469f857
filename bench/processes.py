"""Many people at once, on PostgreSQL and Redis, their pages spread over one process, over two and over four."""

from collections.abc import Iterator

from bench import load, people, sizes
from bench.figures import Figure
from bench.measure import median
from bench.people import Visitor

PEOPLE = sizes.of(50, 2)
PROCESSES = sizes.of((1, 2, 4), (1, 2))
# How many times the turns of one process.
GOALS = {2: 1.7, 4: 3.0}


def measure() -> Iterator[Figure]:
    people.ready()
    crowd = [Visitor.new(f"person {name}") for name in range(PEOPLE)]
    of_one = 0.0
    for number in PROCESSES:
        rounds = load.rounds_of(crowd, number)
        where = f"{PEOPLE} people, {number} process{'es' if number > 1 else ''}"
        yield from load.figures(where, rounds)
        used = median(one.cpu for one in rounds)
        of_one = of_one or used
        turns = median(PEOPLE / (max(one.cards) + max(one.ends)) for one in rounds)
        yield Figure(f"{where}: turns per second here", turns, "turns/s", note="beside database, model and browsers")
        if number > 1:
            what = f"{where}: turns of one, with a core for each"
            yield Figure(what, number * of_one / used, "times", goal=GOALS[number], better="more", note="by CPU")
