"""What authors are told besides what went wrong."""

from hitlchat.sandbox import Problem, check, run
from tests.tables import each_row


@each_row(
    "body, hint",
    [
        ("import zoneinfo", "(use: import zones)"),
        ("import requests", "(use the capability 'fetch': from hitl import fetch)"),
        ("import urllib.request", "(use the capability 'fetch': from hitl import fetch)"),
        ("from enum import Enum", "(use Literal for an argument, and plain constants inside)"),
        ("x = {'a': 1}\n    del x['a']", "(use .pop() of a dict or list)"),
        ("import re\n    re.sub('a', lambda m: '', 'a')", "(loop over re.finditer and join the parts)"),
        ("import json\n    json.dumps(1, default=str)", "(convert the values before json.dumps)"),
        ("next(x for x in [1])", "(generator expressions are lists here: write next(iter([...]), None))"),
        ("sorted(['b'], key=str.lower)", "(call it on a value, in a lambda: key=lambda text: text.lower())"),
        ("import urllib.parse\n    urllib.parse.urlsplit('').hostname", "(use urls.parts(url)['host'])"),
        ("raise ValueError(\"module 'html' has no attribute 'x'\")", "ValueError: module 'html' has no attribute 'x'"),
    ],
)
async def test_an_error_about_a_gap_says_what_to_write_instead(body: str, hint: str) -> None:
    fault = (await run(f"def run():\n    {body}\n", {})).fault
    assert fault is not None
    assert fault.message.endswith(hint)


async def test_the_check_says_it_at_the_line() -> None:
    [problem] = await check("def run():\n    import zoneinfo\n")
    assert problem == Problem(2, 12, "Cannot resolve imported module `zoneinfo` (use: import zones)")


@each_row(
    "code, column, words",
    [
        ("class A:\n    def __bool__(self): return False\n", 5, "every object counts as true"),
        ("class A:\n    def __len__(self): return 0\n", 5, "every object counts as true"),
        ("x = 1.5\ny = round(x, 2)\n", 5, "use Decimal for money"),
        ("def f(a):\n    return round(max(a, 1), 2)\n", 12, "use Decimal for money"),
        ("x = [1]\ny = next((n for n in x if n), None)\n", 5, "Write next(iter([...]), None)"),
    ],
)
async def test_what_runs_but_may_surprise_is_a_warning_only_where_asked_for(code: str, column: int, words: str) -> None:
    source = f"{code}def run() -> int:\n    return 1\n"
    assert not any(problem.severity == "warning" for problem in await check(source))
    [warning] = [problem for problem in await check(source, advise=True) if problem.severity == "warning"]
    assert (warning.line, warning.column) == (2, column)
    assert words in warning.message


@each_row(
    "line", ["round(x)", "self.round(x, 2)", "background(x, 2)", "# round(x, 2)", "len(x)", "x.next(a for b in c)"]
)
async def test_what_only_looks_alike_is_no_warning(line: str) -> None:
    problems = await check(f"def run() -> int:\n    {line}\n    return 1\n", advise=True)
    assert [problem for problem in problems if problem.severity == "warning"] == []
