"""docs/tool-python.md says what works and what does not: each of its snippets is run."""

import ast
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from hitlchat.sandbox import Fault, HostFunction, Limits, check, run
from hitlchat.sandbox.helpers import ALL
from hitlchat.sandbox.limits import VARIABLES, configured, in_words
from tests.tables import each_row
from tools_studio import capabilities

PAGE = (Path(__file__).parents[2] / "docs/tool-python.md").read_text(encoding="utf-8")
MODULES = re.findall(r"^\| `([\w.]+)` \| (?:`\w+` ?)+(?:\(.*\) )?\|$", PAGE, flags=re.MULTILINE)
EMPTY = "class Empty:\n    def __bool__(self):\n        return False\n"
POWERS = ("now", "random", "sleep")
EVERYTHING = {
    "fetch": {"mode": "open", "methods": ["GET", "POST"]},
    "store": True,
    "files": {"mode": "write", "folder": "notes"},
    "secrets": True,
    "now": True,
    "random": True,
    "sleep": True,
    "email": {"to": ["*"]},
    "webhook": {"targets": ["ALERTS_URL"]},
}

Row = list[str]


def rows(*heading: str) -> list[Row]:
    """The rows of all tables with these column heads; code comes without its backticks."""
    found = []
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, flags=re.MULTILINE):
        head, _, *body = [cells(line) for line in table.splitlines()]
        if head == list(heading):
            found += body
    assert found, heading
    return found


def cells(line: str) -> Row:
    return [cell.strip() for cell in line.strip("|\n").split("|")]


def code(cell: str) -> str:
    assert cell.startswith("`"), cell
    assert cell.endswith("`"), cell
    return cell[1:-1]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell.split(" (", maxsplit=1)[0])


def imports(snippet: str) -> str:
    return "".join(f"import {name}\n" for name in MODULES if re.search(rf"(?<![\w.]){re.escape(name)}\.", snippet))


def blocks() -> Iterator[tuple[str, Any]]:
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        source, given = block.split("# gives: ")
        yield source, ast.literal_eval(given)


def test_the_page_is_one_page() -> None:
    assert len(PAGE.splitlines()) < 260


@each_row("source, result", list(blocks()), ids=["first", "classes", "together"])
async def test_a_whole_tool_passes_the_check_and_gives_what_it_says(source: str, result: object) -> None:
    assert await check(source) == []
    report = await run(source, {})
    assert (report.result, report.fault) == (result, None)


@each_row("write, gives", rows("write", "gives"))
async def test_what_works_gives_what_it_says(write: str, gives: str) -> None:
    source = f"{imports(code(write))}def run():\n    return {code(write)}\n"
    report = await run(source, {})
    assert (report.result, report.fault) == (ast.literal_eval(code(gives)), None)
    assert await check(source) == []


@each_row("wrong, because, instead", rows("does not work", "because", "write"))
async def test_what_does_not_work_fails_as_it_says_and_its_substitute_runs(
    wrong: str, because: str, instead: str
) -> None:
    fault = (await run(f"def run():\n    {code(wrong)}\n", {})).fault
    assert fault is not None
    assert code(because) in fault.message
    report = await run(f"def run():\n    {code(instead)}\n    return 1\n", {})
    assert (report.result, report.fault) == (1, None)


@each_row(
    "snippet",
    [
        "class A:\n    @property\n    def x(self): return 1\n",
        "class A:\n    @classmethod\n    def x(cls): return 1\n",
        "class A:\n    @staticmethod\n    def x(): return 1\n",
        "class A:\n    class B: pass\n",
        "async def f(x):\n    async with x: pass\n",
        "type X = int\n",
        "try:\n    pass\nexcept* ValueError:\n    pass\n",
        "from math import *\n",
    ],
)
async def test_what_the_page_says_in_words_does_not_work_either(snippet: str) -> None:
    fault = (await run(f"{snippet}def run():\n    return 1\n", {})).fault
    assert fault is not None
    assert fault.kind == "syntax"


@each_row("write, here, in_python", rows("write", "gives here", "in Python"))
async def test_what_differs_without_an_error_differs_as_it_says(write: str, here: str, in_python: str) -> None:
    report = await run(f"{EMPTY}def run():\n    return {code(write)}\n", {})
    assert report.result == ast.literal_eval(code(here))
    assert report.result != ast.literal_eval(code(in_python))
    known: dict[str, Any] = {}
    exec(EMPTY, known)
    assert eval(code(write), known) == ast.literal_eval(code(in_python))


@each_row("module, offers", rows("module", "what there is"))
async def test_a_module_has_what_the_page_says(module: str, offers: str) -> None:
    name = code(module)
    lines = "".join(f"    {name}.{member}\n" for member in names(offers))
    assert (await run(f"import {name}\ndef run():\n{lines}", {}, powers=POWERS)).fault is None


def test_the_page_has_every_helper_and_nothing_else() -> None:
    said = {code(module): set(names(offers)) for module, offers in rows("module", "what there is")}
    days = {"TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"}
    assert {name: said[name] for name in (module.name for module in ALL)} == {
        module.name: set(module.names) - days for module in ALL
    }


async def answers(*_: Any, **__: Any) -> Any:
    return {"status": 200, "json": []}


async def clock(timezone: str = "UTC") -> datetime:
    return datetime.now(ZoneInfo(timezone))


@each_row("capability, call", rows("capability", "call"))
async def test_a_granted_call_passes_the_check_and_works_and_is_refused_otherwise(capability: str, call: str) -> None:
    granted = capabilities.parse(EVERYTHING)
    name = re.split(r"[.(]", code(call))[0]
    source = f"from hitl import {name}\n\n\ndef run():\n    return {code(call)}\n"
    known = capabilities.ALL_NAMES
    assert (
        await check(source, stubs=capabilities.stubs_of(granted.names()), offered=known, powers=granted.powers()) == []
    )
    grants: dict[str, HostFunction] = {**dict.fromkeys(granted.names(), answers), "now": clock}
    assert (await run(source, {}, grants=grants, offered=known)).fault is None
    fault = (await run(source, {}, offered=known)).fault
    assert fault is not None
    assert fault.kind == "denied"
    assert code(capability) in fault.message or name in fault.message


@each_row("capability, opens", rows("capability", "opens"))
async def test_what_a_capability_opens_in_the_interpreter_is_closed_without_it(capability: str, opens: str) -> None:
    for call in names(opens):
        source = f"{imports(call)}def run():\n    {call}\n"
        assert (await run(source, {}, powers=[code(capability)])).ok
        fault = (await run(source, {}, powers=set(POWERS) - {code(capability)})).fault
        assert fault is not None
        assert fault.kind == "denied"
        assert f"the capability {code(capability)!r}" in fault.message


def test_the_limits_are_those_of_the_settings() -> None:
    said = {code(variable): most for _, most, variable in rows("limit", "at most", "set by")}
    assert said == {variable: words(field) for field, (variable, _) in VARIABLES.items()}


def words(field: str) -> str:
    value = configured(field)
    if field.endswith("_seconds"):
        return f"{value:g} s"
    return in_words(value) if field.endswith("_bytes") else str(value)


async def test_the_limits_without_a_variable_are_as_the_page_says() -> None:
    assert f"nested {Limits().recursion} deep" in PAGE
    deep = "def run():\n    x = 1\n    for _ in range(101):\n        x = [x]\n    return x\n"
    message = "the result must not be nested deeper than 100 levels"
    assert (await run(deep, {})).fault == Fault("error", message)
