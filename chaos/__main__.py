"""`python -m chaos [--kills N] [--seed N]`: kill servers in the middle of calls, and compare with an outside counter.

On SQLite with one process; then, where TEST_DATABASE_URL and TEST_REDIS_URL name them or they are on their usual ports,
on PostgreSQL and Redis with two. Exits with 1 if a call broke a promise, which is printed with its history.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from typing import Final

from tests.run import OF_A_PASS
from tests.services import postgres_url, redis_url

HERE: Final = "SQLite, one process"
THERE: Final = "PostgreSQL and Redis, two processes"


def main() -> int:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=60, help="how many on each database (default: 60)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="repeats the choices of a run")
    parser.add_argument("--on", choices=["sqlite", "servers"], help="only on SQLite, or only on PostgreSQL and Redis")
    given = parser.parse_args()
    places: dict[str, dict[str, str]] = {}
    if given.on != "servers":
        places[HERE] = {}
    database, channel = (None, None) if given.on == "sqlite" else (postgres_url(), redis_url())
    if database and channel:
        places[THERE] = {"DATABASE_URL": database, "REDIS_URL": channel}
    elif given.on == "servers":
        parser.error("Set TEST_DATABASE_URL and TEST_REDIS_URL, or start PostgreSQL and Redis on their usual ports.")
    return max(_run(title, place, given.kills, given.seed) for title, place in places.items())


def _run(title: str, place: dict[str, str], kills: int, seed: int) -> int:
    print(f"--- {title}, {kills} kills, seed {seed}", flush=True)
    kept = {name: value for name, value in os.environ.items() if name not in OF_A_PASS}
    command = [sys.executable, "-m", "chaos.run", "--kills", str(kills), "--seed", str(seed)]
    with tempfile.TemporaryDirectory(prefix="hitlchat-chaos-") as folder:
        own = {"HITLCHAT_DATA": f"{folder}/data", "DJANGO_SETTINGS_MODULE": "hitlchat.settings"}
        return subprocess.run(command, env=kept | own | place, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
