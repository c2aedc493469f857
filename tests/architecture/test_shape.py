"""How large the program is, and how deep: `make shape` prints it, and docs/architecture.md is held to what exists."""

import re
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import grimp

from tests.architecture.source import ROOT, read

PACKAGES: Final = ("hitlchat", "tools_studio")
# Rows of the database that landed, and programs that ship as data.
LEFT_OUT: Final = (".migrations", "tools_studio.library.tools")
SMALL_LINES: Final = 20
LAYERED: Final = ("hitlchat.gate", "hitlchat.upstreams")
LONGEST_CHAIN: Final = 10


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


@cache
def lines() -> dict[str, int]:
    """The lines of each module, by its name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            if not any(part in name for part in LEFT_OUT):
                found[name] = len(path.read_text().splitlines())
    return found


def longest_chain(package: str) -> int:
    """How many rooms of this package stand above one another; a folder is one. Raises CycleError."""
    inside = {name for name in lines() if name.startswith(f"{package}.")}

    def room(name: str) -> str:
        return name.removeprefix(f"{package}.").partition(".")[0]

    needs: dict[str, set[str]] = {room(name): set() for name in inside}
    for name in inside:
        for other in graph().find_modules_directly_imported_by(name) & inside:
            if room(other) != room(name):
                needs[room(name)].add(room(other))
    height: dict[str, int] = {}
    for name in TopologicalSorter(needs).static_order():
        height[name] = 1 + max((height[other] for other in needs[name]), default=0)
    return max(height.values())


def table() -> str:
    """The figures, a line for each package and one for all."""
    files, size = Counter[str](), Counter[str]()
    for name, count in lines().items():
        package = ".".join(name.split(".")[:2]) if name.startswith("hitlchat.") else name.partition(".")[0]
        files[package] += 1
        size[package] += count
    small = sum(count <= SMALL_LINES for count in lines().values())
    alone = sum(len(graph().find_modules_that_directly_import(name)) == 1 for name in lines())
    return "\n".join(
        (
            *(f"{files[package]:5} files {size[package]:6} lines  {package}" for package in sorted(files)),
            f"{sum(files.values()):5} files {sum(size.values()):6} lines in all",
            f"{small:5} of at most {SMALL_LINES} lines, {alone} imported by one other alone",
            *(f"{longest_chain(package):5} rooms above one another in {package}" for package in LAYERED),
        )
    )


def test_no_room_of_gate_or_upstreams_stands_on_more_than_nine_others() -> None:
    print(f"\n{table()}")  # noqa: T201  What `make shape` is for.
    assert max(map(longest_chain, LAYERED)) <= LONGEST_CHAIN


def test_the_page_about_the_architecture_names_only_what_exists() -> None:
    named = set(re.findall(r"`((?:hitlchat|tools_studio)/[\w/.]+)`", read("docs/architecture.md")))
    assert len(named) > LONGEST_CHAIN
    assert [name for name in sorted(named) if not Path(ROOT, name).exists()] == []
