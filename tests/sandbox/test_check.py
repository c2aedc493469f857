"""What the editor is told before a tool is saved."""

from hitlchat.sandbox import Limits, Problem, check
from tests.tables import each_row

KNOWN = ("fetch", "now", "store.get", "store.set")
STUBS = """
from typing import Any
def fetch(url: str, method: str = "GET") -> dict[str, Any]: ...
class store:
    @staticmethod
    def get(key: str, default: Any = None) -> Any: ...
"""


async def test_a_good_tool_has_no_problems() -> None:
    source = (
        "from hitl import fetch, store\n"
        "def run(city: str, days: int = 1) -> dict:\n"
        "    store.get('last')\n"
        "    return fetch(city)['json']\n"
    )
    assert await check(source, stubs=STUBS, offered=KNOWN) == []


async def test_a_tool_that_awaits_is_checked_against_awaitable_calls() -> None:
    body = "    answer = {}fetch(city)\n    return answer['text']\n"
    source = f"from hitl import fetch\nasync def run(city: str) -> str:\n{body}"
    assert await check(source.format("await "), stubs=STUBS, offered=KNOWN) == []
    assert [problem.line for problem in await check(source.format(""), stubs=STUBS, offered=KNOWN)] == [4]


@each_row(
    "source, problem",
    [
        ("def run(:\n", Problem(1, 9, "Expected a parameter or the end of the parameter list")),
        ("def run() -> None:\n    return None\n\n)", Problem(4, 1, "Expected a statement")),
        ("import nothing\ndef run(): ...\n", Problem(1, 8, "Cannot resolve imported module `nothing`")),
        ("def run():\n    return a\n", Problem(2, 12, "Name `a` used when not defined")),
        (
            "# ü€\nfrom hitl import fetch\ndef run():\n    fetch(1)\n",
            Problem(4, 11, "Argument to function `fetch` is incorrect: Expected `str`, found `Literal[1]`"),
        ),
        (
            "from hitl import now\ndef run(): ...\n",
            Problem(1, 18, "now is not granted to this tool: switch on the capability 'now'"),
        ),
        ("from hitl import secrets\ndef run(): ...\n", Problem(1, 18, "Module `hitl` has no member `secrets`")),
        (
            "class E(Exception):\n    pass\ndef run(): ...\n",
            Problem(
                1,
                1,
                "tools cannot use class inheritance and metaclasses "
                "(raise ValueError with a clear message; use plain classes, dataclasses or dicts)",
            ),
        ),
        (
            "def run():\n    yield 1\n",
            Problem(2, 5, "tools cannot use yield expressions (collect into a list and return it)"),
        ),
        ("x = 1 / 0\ndef run(): ...\n", Problem(1, 5, "ZeroDivisionError: division by zero")),
        (
            "from hitl import fetch\nx = fetch('u')\ndef run(): ...\n",
            Problem(2, None, "call fetch inside a function, not while the module loads"),
        ),
        ("def other(): ...\n", Problem(None, None, "the code defines no function run")),
        ("", Problem(None, None, "the code defines no function run")),
        ("x = '\ud800'", Problem(None, None, "the code contains half a character (a lone surrogate)")),
    ],
)
async def test_a_problem_has_its_place_and_one_sentence(source: str, problem: Problem) -> None:
    assert problem in await check(source, stubs=STUBS, offered=KNOWN)


async def test_all_type_problems_are_listed_with_what_the_interpreter_adds() -> None:
    source = "def run() -> str:\n    a: int = 'x'\n    return 1\nclass E(Exception): ...\n"
    assert [problem.line for problem in await check(source)] == [2, 3, 4]


async def test_without_stubs_there_is_no_module_hitl_to_import_from() -> None:
    [problem] = await check("from hitl import fetch\ndef run(): ...\n", offered=KNOWN)
    assert problem.message == "fetch is not granted to this tool: switch on the capability 'fetch'"


async def test_code_that_is_too_large_is_not_looked_at() -> None:
    [problem] = await check("#" * 70_000)
    assert problem == Problem(None, None, "source: the code is larger than the limit of 64 KiB (TOOL_SOURCE_KIB)")


async def test_definitions_that_never_end_are_a_problem() -> None:
    [problem] = await check("while True:\n    pass\n", limits=Limits(cpu_seconds=0.2))
    assert problem.message == "processor time: the tool computes for more than 0.2 s"


async def test_checking_runs_no_function() -> None:
    assert await check("def run():\n    while True:\n        pass\n") == []
