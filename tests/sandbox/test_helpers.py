"""Helper modules: what they offer is what Python's modules of those names answer."""

import asyncio
import calendar
import difflib
import heapq
import hmac
import html
import statistics
import string
import textwrap
import urllib.parse
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitlchat.sandbox import Fault, Report, check, run
from hitlchat.sandbox.values import Meter, to_json
from tests.tables import each_row

PYTHON = {
    "calendar": calendar,
    "difflib": difflib,
    "heapq": heapq,
    "hmac": hmac,
    "html": html,
    "statistics": statistics,
    "string": string,
    "textwrap": textwrap,
    "urllib": urllib,
    "uuid": uuid,
    "Decimal": Decimal,
}
HEAD = (
    "import calendar, difflib, heapq, hmac, html, secrets, statistics, string, textwrap, urllib.parse, uuid\n"
    "import datetime, urls, zones\n"
    "from decimal import Decimal\n"
)
SAME = [
    "urllib.parse.quote('a b/ü?&', safe='')",
    "urllib.parse.quote(b'\\xff a')",
    "urllib.parse.quote_plus('a b+c')",
    "urllib.parse.quote_from_bytes(b'a b')",
    "urllib.parse.unquote('a%20%C3%BC%FF')",
    "urllib.parse.unquote_plus('a+b%2B')",
    "urllib.parse.unquote_to_bytes('a%FF').hex()",
    "urllib.parse.urlencode({'a': 'x y', 'b': 1.5, 'c': None})",
    "urllib.parse.urlencode([('a', [1, 2]), ('b', 'ü')], doseq=True)",
    "urllib.parse.urljoin('https://a.example/b/c?d', '../e')",
    "urllib.parse.parse_qs('a=1&a=2&b=')",
    "urllib.parse.parse_qsl('a=1&b=', keep_blank_values=True)",
    "urllib.parse.urlsplit('https://u:p@a.example:80/b?c=d#e')",
    "urllib.parse.urlparse('https://a.example/b;x?c=d#e').params",
    "urllib.parse.urlunsplit(urllib.parse.urlsplit('https://a.example/b?c'))",
    "urllib.parse.urlunparse(('https', 'a.example', '/b', '', 'c=1', ''))",
    "urllib.parse.urldefrag('https://a.example/#e').fragment",
    "html.escape('<a href=\"x\">\\'&')",
    "html.escape('\"', quote=False)",
    "html.unescape('&lt;&eacute;&#8364;&notit;&#x110000;')",
    "statistics.mean([1, 2, 4])",
    "statistics.mean([1.5, 2.25])",
    "statistics.mean([Decimal('0.1'), Decimal('0.2')])",
    "statistics.mean({1, 2, 3})",
    "statistics.fmean([1, 2], weights=[1, 3])",
    "statistics.geometric_mean([54, 24, 36])",
    "statistics.harmonic_mean([40, 60], weights=[5, 30])",
    "statistics.median([5, 1, 4, 2])",
    "statistics.median_low(['a', 'b'])",
    "statistics.median_high([1, 2])",
    "statistics.median_grouped([1, 2, 2, 3, 4])",
    "statistics.mode(['a', 'b', 'b'])",
    "statistics.multimode('aabbc')",
    "statistics.stdev([1.5, 2.5, 4])",
    "statistics.pstdev([1, 2, 3])",
    "statistics.variance([Decimal(1), Decimal(2)])",
    "statistics.pvariance([0.0, 0.25, 0.25, 1.25])",
    "statistics.quantiles([1, 2, 3, 4, 5], n=10, method='inclusive')",
    "statistics.correlation([1, 2, 3], [1, 2, 4])",
    "statistics.covariance([1, 2, 3], [1, 2, 4])",
    "statistics.linear_regression([1, 2, 3], [2, 4, 7]).slope",
    "textwrap.wrap('the quick brown fox jumps', 10)",
    "textwrap.fill('the quick brown fox', width=9, initial_indent='* ', subsequent_indent='  ')",
    "textwrap.shorten('Hello  world, again', width=12, placeholder='…')",
    "textwrap.dedent('  a\\n    b\\n\\n  c')",
    "textwrap.indent('a\\n\\nb', '> ')",
    "string.capwords('the  quick fox')",
    "string.capwords('a-b', '-')",
    "[string.ascii_letters, string.digits, string.hexdigits, string.punctuation, string.whitespace, string.printable]",
    "[calendar.isleap(2000), calendar.isleap(1900), calendar.leapdays(2000, 2021)]",
    "calendar.monthrange(2024, 2)",
    "calendar.monthcalendar(2026, 11)",
    "calendar.weekday(2026, 11, 21)",
    "calendar.timegm((2026, 11, 21, 12, 0, 0))",
    "[list(calendar.month_name), list(calendar.day_abbr), int(calendar.SUNDAY)]",
    "hmac.digest(b'key', b'message', 'sha256').hex()",
    "[hmac.compare_digest('a', 'a'), hmac.compare_digest(b'a', b'b')]",
    "list(difflib.unified_diff(['a', 'b'], ['a', 'c'], 'old', 'new', lineterm=''))",
    "list(difflib.context_diff(['a', 'b'], ['a', 'c'], n=0))",
    "difflib.get_close_matches('appel', ['ape', 'apple', 'peach', 'puppy'])",
    "heapq.nlargest(2, [3, 1, 2])",
    "heapq.nsmallest(2, ['b', 'a', 'c'])",
    "list(heapq.merge([1, 4], [2, 3]))",
    "str(uuid.uuid5(uuid.NAMESPACE_DNS, 'python.org'))",
    "str(uuid.uuid3(uuid.NAMESPACE_URL, 'https://example.com'))",
    "str(uuid.UUID('{12345678-1234-5678-1234-567812345678}'))",
]
FAILING = [
    "statistics.mean([])",
    "statistics.mean(['a'])",
    "statistics.stdev([1])",
    "statistics.mode([])",
    "html.escape(1)",
    "urllib.parse.urlsplit('http://[a')",
    "urllib.parse.parse_qs('a', strict_parsing=True)",
    "textwrap.wrap('a', 0)",
    "calendar.monthrange(2026, 2, 1, 1)",
    "heapq.nlargest(1, [1, 'a'])",
    "difflib.get_close_matches('a', ['a'], n=0)",
    "uuid.UUID('no')",
    "hmac.digest('key', b'', 'sha256')",
]


async def value(expression: str, **more: Any) -> Report:
    return await run(f"{HEAD}def run():\n    return {expression}\n", {}, **more)


@each_row("expression", SAME)
async def test_a_helper_answers_as_python_does(expression: str) -> None:
    report = await value(expression)
    assert report.fault is None
    assert report.result == to_json(eval(expression, dict(PYTHON)), Meter("it", 10**6))


@each_row("expression", FAILING)
async def test_a_helper_fails_as_python_does(expression: str) -> None:
    fault = (await value(expression)).fault
    assert fault is not None
    with pytest.raises(Exception) as raised:  # noqa: PT011
        eval(expression, dict(PYTHON))
    told = "ValueError" if isinstance(raised.value, ValueError) else type(raised.value).__name__
    assert fault.message.startswith(f"{told}: ")
    assert fault.message.split(": ", 1)[1].split(" (")[0] in str(raised.value) or "argument" in fault.message


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=12))
def test_texts_of_all_kinds_come_out_as_in_python(texts: list[str]) -> None:
    body = (
        "    return [[urllib.parse.quote(t), urllib.parse.unquote_plus(t), html.escape(t), html.unescape(t),\n"
        "             textwrap.wrap(t, 7), textwrap.dedent(t), textwrap.indent(t, '> '), string.capwords(t)]\n"
        "            for t in texts]\n"
    )
    report = asyncio.run(run(f"{HEAD}def run(texts):\n{body}", {"texts": texts}))
    assert report.result == [
        [
            urllib.parse.quote(t),
            urllib.parse.unquote_plus(t),
            html.escape(t),
            html.unescape(t),
            textwrap.wrap(t, 7),
            textwrap.dedent(t),
            textwrap.indent(t, "> "),
            string.capwords(t),
        ]
        for t in texts
    ], report.fault


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-(10**20), 10**20) | st.floats(-1e9, 1e9), min_size=2, max_size=30))
def test_numbers_of_all_kinds_come_out_as_in_python(numbers: list[float]) -> None:
    names = ("mean", "fmean", "median", "median_low", "pvariance", "stdev", "mode")
    calls = ", ".join(f"statistics.{name}(numbers)" for name in names)
    report = asyncio.run(run(f"{HEAD}def run(numbers):\n    return [{calls}]\n", {"numbers": numbers}))
    assert report.result == [getattr(statistics, name)(numbers) for name in names], report.fault


@each_row("way", ["import statistics", "import statistics as statistics", "from statistics import mean"])
async def test_a_helper_needs_no_await_and_no_grant_in_any_tool(way: str) -> None:
    call = "mean([1, 3])" if "from" in way else "statistics.mean([1, 3])"
    for kind in ("def", "async def"):
        source = f"{way}\nAT_LOAD = {call}\n{kind} run():\n    return [AT_LOAD, {call}]\n"
        assert (await run(source, {})).result == [2, 2]
        assert await check(source) == []


@each_row(
    "expression, message",
    [
        ("html.nothing", "html.nothing does not exist in tools; html offers escape, unescape"),
        ("heapq.heappush([], 1)", "heapq.heappush does not exist in tools; heapq offers merge, nlargest, nsmallest"),
        ("hmac.new(b'', b'')", "hmac.new does not exist in tools; hmac offers compare_digest, digest"),
    ],
)
async def test_what_a_helper_module_lacks_is_said_with_what_it_has(expression: str, message: str) -> None:
    report = await value(expression)
    assert report.fault == Fault("error", message, 5)
    problems = await check(f"{HEAD}def run():\n    return {expression}\n")
    assert [problem.message for problem in problems] == [message]


CHANCE = ["uuid.uuid4()", "secrets.token_hex(4)", "secrets.choice([1])", "secrets.randbelow(5)", "secrets.randbits(4)"]


@each_row("call", [*CHANCE, "secrets.token_urlsafe(4)", "secrets.token_bytes(4).hex()"])
async def test_what_draws_at_random_needs_the_capability(call: str) -> None:
    name = call.partition("(")[0]
    message = f"{name} is not granted to this tool: switch on the capability 'random'"
    assert (await value(call)).fault == Fault("denied", message, 5)
    [problem] = await check(f"{HEAD}def run():\n    return {call}\n")
    assert problem.message == message
    assert (await value(call, powers=["random"])).ok
    assert await check(f"{HEAD}def run():\n    return {call}\n", powers=["random"]) == []


async def test_an_identifier_is_a_text_of_the_usual_form() -> None:
    report = await value("uuid.uuid4()", powers=["random"])
    assert str(uuid.UUID(report.result)) == report.result


@each_row(
    "expression, result",
    [
        ("zones.attach(datetime.datetime(2026, 7, 1, 12), 'Europe/Berlin')", "2026-07-01T12:00:00+02:00"),
        ("zones.attach(datetime.datetime(2026, 10, 25, 2, 30), 'Europe/Berlin')", "2026-10-25T02:30:00+02:00"),
        ("zones.attach(datetime.datetime(2026, 10, 25, 2, 30), 'Europe/Berlin', fold=1)", "2026-10-25T02:30:00+01:00"),
        (
            "zones.convert(datetime.datetime(2026, 7, 1, tzinfo=datetime.timezone.utc), 'Asia/Kolkata')",
            "2026-07-01T05:30:00+05:30",
        ),
        (
            "zones.offset(datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc), 'Asia/Tokyo').total_seconds()",
            32400.0,
        ),
        (
            "zones.abbreviation(datetime.datetime(2026, 7, 1, tzinfo=datetime.timezone.utc), 'Europe/Berlin')",
            "CEST",
        ),
        ("'Europe/Berlin' in zones.names('Europe/')", True),
        ("urls.parts('https://u:p@A.example:8443/b?c=1#d')['host']", "a.example"),
        ("urls.parts('/b?c=1&e=')['query']", {"c": "1", "e": ""}),
    ],
)
async def test_zones_and_urls_give_what_python_has_objects_for(expression: str, result: object) -> None:
    report = await value(expression)
    assert (report.result, report.fault) == (result, None)
    assert await check(f"{HEAD}def run():\n    return {expression}\n") == []


@each_row(
    "expression, message",
    [
        (
            "zones.attach(datetime.datetime(2026, 3, 29, 2, 30), 'Europe/Berlin')",
            "2026-03-29 02:30:00 does not exist in Europe/Berlin: the clocks are put forward over it",
        ),
        ("zones.convert(datetime.datetime(2026, 1, 1), 'Europe/Berlin')", "convert() takes a moment with a time zone"),
        (
            "zones.attach(datetime.datetime(2026, 1, 1), '../../etc/passwd')",
            "'../../etc/passwd' is not a time zone name",
        ),
        ("zones.attach(datetime.datetime(2026, 1, 1), '/etc/passwd')", "'/etc/passwd' is not a time zone name"),
        ("zones.attach(datetime.datetime(2026, 1, 1), 'Europe')", "'Europe' is not a time zone name"),
        ("zones.attach(1, 'Europe/Berlin')", "zones take a datetime, not int"),
    ],
)
async def test_a_moment_that_is_none_and_a_zone_that_is_none_are_named(expression: str, message: str) -> None:
    fault = (await value(expression)).fault
    assert fault is not None
    assert message in fault.message
