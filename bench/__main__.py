"""`python -m bench [PART…]`: measure this installation on this machine, each figure beside its floor and its goal."""

import argparse
import signal
import sys
import time
from importlib import import_module
from typing import Final

from bench.home import empty, home

# Each in an order of its own data: ten thousand waiting calls come late, a hundred thousand last.
PARTS: Final = {
    "sandbox": "An authored tool, next to its bare sandbox run",
    "agent": "A whole gated turn through the agent loop",
    "web": "The round trip of a page, at protocol level and in a browser",
    "pages": "What the requests of a page cost the server",
    "tokens": "Streamed text",
    "chat": "The chat as a person feels it",
    "memory": "Memory of the server process",
    "upstreams": "A call of an upstream server's tool, next to the same call by the bare SDK",
    "mcp": "/mcp: calls and lists of an outside client, next to the bare SDK",
    "policies": "What a verdict of each rule costs",
    "gate": "The gate: submit, ask, decide, claim, perform, on record",
    "insights": "The page of insights, with very many calls on record",
    "record": "The record: sealing, verifying, exporting",
    "metrics": "A look at the numbers, with very many calls on record",
    "deciding": "One answer, with few and with very many questions open",
    "history": "The history of a hundred thousand calls",
    "inbox": "The inbox, with few and with very many calls waiting",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=f"of {', '.join(PARTS)}")
    wanted = parser.parse_args().parts or list(PARTS)
    began = time.monotonic()
    # Ended from outside, it still takes its processes and its data along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with home():
        # After Django is set up.
        figures = import_module("bench.figures")
        print(f"hitlchat bench: {figures.machine()}\n")
        every = []
        for name in (name for name in PARTS if name in wanted):
            empty()
            every += figures.show(f"{name}: {PARTS[name]}", import_module(f"bench.{name}").measure())
    goals = [one for one in every if one.goal is not None]
    met = sum(one.verdict == "met" for one in goals)
    print(f"{met} of {len(goals)} goals met; {time.monotonic() - began:.0f} s, {figures.load()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
