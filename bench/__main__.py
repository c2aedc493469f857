"""`python -m bench [--small] [PART…]`: measure this installation here, each figure beside its floor and its goal."""

import argparse
import sys
import time

from bench import figures
from bench.parts import PARTS, alone, end_well


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--small", action="store_true", help="see in seconds that it works; the figures say nothing")
    given = parser.parse_args()
    wanted = [name for name in PARTS if name in (given.parts or PARTS)]
    began = time.monotonic()
    end_well()
    print(f"hitlchat bench: {figures.machine()}\n", flush=True)
    goals = [goal for goal in (alone(name, small=given.small) for name in wanted) if goal is not None]
    met, of = (sum(each) for each in zip(*goals, strict=True)) if goals else (0, 0)
    print(f"{met} of {of} goals met; {time.monotonic() - began:.0f} s, {figures.load()}")
    if broken := len(wanted) - len(goals):
        print(f"{broken} of {len(wanted)} parts did not come to an end")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
