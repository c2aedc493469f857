"""What hitlchat says of a value: a table of values and the lines on them."""

import base64
import sys
from collections.abc import Callable
from typing import Any

from hitlchat.gate import meant
from hitlchat.gate.meant import MORE, meanings, weight
from tests.tables import each_row

CODE = base64.b64encode(b"rm -rf / --no-preserve-root").decode()


def said(value: Any, name: str = "", currency: str = "") -> list[str]:
    return [
        f"{line.words} {line.value.plain}" if line.value else line.words for line in meanings(value, name, currency)
    ]


@each_row(
    "value, lines",
    [
        ("https://shop.example/orders?id=1", ["Goes to host shop.example"]),
        ("Look at (https://shop.example:8443/x).", ["Goes to host shop.example"]),
        ("//evil.example/x", ["Goes to host evil.example"]),
        ("http://[::1]:8000/", ["Goes to host [::1]"]),
        (
            "https://shop.example%2Forders@%65vil.example/",
            [
                "Goes to host evil.example",
                "Before the @ is a user name, not the host: shop.example/orders",
                "In the value, that host is written as %65vil.example",
            ],
        ),
        (
            "https://evil.example\\@shop.example/",
            [
                "In a browser, which takes the backslash for a slash, it goes to host evil.example",
                "Elsewhere it goes to host shop.example",
            ],
        ),
        (
            "https://xn--80ak6aa92e.com/",
            ["Goes to host xn--80ak6aa92e.com", "In letters, that host is \u0430\u0440\u0440\u04cf\u0435.com"],
        ),
        ("https://xn--\x7f.com/", ["Goes to host xn--U+007F.com"]),
        (
            "https://\uff45vil\u3002example/",
            ["Goes to host evil.example", "In the value, that host is written as \uff45vil\u3002example"],
        ),
        ("http://2130706433/", ["Goes to host 2130706433", "That number is the address 127.0.0.1"]),
        ("http://0x7f.1/", ["Goes to host 0x7f.1", "That number is the address 127.0.0.1"]),
        ("http://127.0.0.1/", ["Goes to host 127.0.0.1"]),
        ("http://999.1.1.1/", ["Goes to host 999.1.1.1"]),
        (
            "https://a.example/%2e%2e/admin?then=%64elete",
            ["Goes to host a.example", "Behind the host, with percent escapes decoded: /../admin?then=delete"],
        ),
        ("// a comment", []),
        ("C:/folder", []),
        ({"hook": ["https://evil.example"]}, ["Goes to host evil.example"]),
    ],
)
def test_of_an_address_the_host_is_picked_out(value: Any, lines: list[str]) -> None:
    assert said(value) == lines


@each_row(
    "value, lines",
    [
        ("df -h && find /srv/archive -mtime +1 -delete && date", ["find /srv/archive -mtime +1 -delete"]),
        ("set -e\nrm  -rf /srv/backup\nls", ["rm -rf /srv/backup"]),
        ("SELECT 1; drop table orders; DELETE FROM carts", ["drop table orders", "DELETE FROM carts"]),
        ("Please delete from the list whom we drop. Confirm - find him.", []),
    ],
)
def test_a_command_that_deletes_is_picked_out(value: Any, lines: list[str]) -> None:
    assert said(value) == [f"A command that deletes: {line}" for line in lines]


@each_row("gap, is_told", [("\n" * 7, True), ("\n" * 3, False), (" " * 60, True), ("\n" + " " * 20, False)])
def test_what_stands_behind_much_empty_space_is_shown(gap: str, is_told: bool) -> None:
    assert said(f"seen{gap}unseen\nhere{gap}") == (["Behind much empty space: unseen here"] if is_told else [])


@each_row(
    "value, lines",
    [
        (CODE, ["Base64, decoded: rm -rf / --no-preserve-root"]),
        (f"run this: {CODE}", ["Base64, decoded: rm -rf / --no-preserve-root"]),
        (CODE.replace("/", "_").replace("+", "-").rstrip("="), ["Base64, decoded: rm -rf / --no-preserve-root"]),
        (base64.b64encode(CODE.encode()).decode(), ["Base64, decoded: rm -rf / --no-preserve-root"]),
        (base64.b64encode("one\u200btwo three four".encode()).decode(), ["Base64, decoded: oneU+200Btwo three four"]),
        ("internationalization of src/components/Button/index", []),
        ("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", []),
        ("550e8400-e29b-41d4-a716-446655440000", []),
        ("A" * 17, []),
        ('{ "\\u0064elete": true }', ['JSON, decoded: {"delete": true}']),
        ('{"plain": true}', []),
        ('{"broken": "\\u0064"', ['With its escapes decoded: {"broken": "d"']),
        ("d\\u0065lete \\x61ll \\u{1f600} \\ud83d\\ude00", ["With its escapes decoded: delete all 😀 😀"]),
        ("\\U00110000 \\u0061", ["With its escapes decoded: \\U00110000 a"]),
        ("\\ud83d", ["With its escapes decoded: U+D83D"]),
        ("C:\\users", []),
    ],
)
def test_what_is_written_in_codes_is_decoded_on_one_line(value: Any, lines: list[str]) -> None:
    assert said(value) == lines


@each_row(
    "value, lines",
    [
        ("04/03/2026", ["Either 4 March, with the day first, or April 3, with the month first: 04/03/2026"]),
        ("on 4-3-26", ["Either 4 March, with the day first, or April 3, with the month first: 4-3-26"]),
        ("04/04/2026 31/12/2026 2026-03-04 1/2/3/2026", []),
        ("1.000", ["Either 1, with decimals, or 1 000, with thousands set off."]),
        ("-12,340", ["Either -12.34, with decimals, or -12 340, with thousands set off."]),
        ("1.00", []),
        ("1e3", ["Written out: 1 000"]),
        ("-25E-1", ["Written out: -2.5"]),
        ("Etc/GMT+2", ["The sign of such a zone is the other way round. It is UTC-2"]),
        ("Etc/GMT-11", ["The sign of such a zone is the other way round. It is UTC+11"]),
        ("-0", ["Minus zero, the same as 0."]),
        (-0.0, ["Minus zero, the same as 0."]),
        (0, []),
        (True, []),
        (None, []),
        (1000, []),
        (12_000_000, ["With its digits grouped: 12 000 000"]),
        ("12000000", ["With its digits grouped: 12 000 000"]),
        (-5_000_000.5, ["With its digits grouped: -5 000 000.5"]),
    ],
)
def test_a_date_or_a_number_with_two_readings_has_both(value: Any, lines: list[str]) -> None:
    assert said(value) == lines


@each_row(
    "value, name, currency, lines",
    [
        (-5000, "refund_amount", "", ["A negative amount, below zero."]),
        (-5000, "temperature", "", []),
        (1250.5, "paid", "EUR", ["By the tool's schema, an amount of 1 250.5 EUR"]),
        (-3, "paid", "EUR", ["By the tool's schema, an amount of -3 EUR", "A negative amount, below zero."]),
    ],
)
def test_an_amount_is_named(value: Any, name: str, currency: str, lines: list[str]) -> None:
    assert said(value, name, currency) == lines


@each_row("length", [290, 900, 5_000], ids=["in full", "cut", "decoded in part"])
def test_what_is_decoded_is_cut_and_the_line_says_so(length: int) -> None:
    (line,) = meanings(base64.b64encode(b"word " * (length // 5)).decode())
    assert line.value is not None
    assert len(line.value.plain) <= meant.LONGEST
    # Spaces at the end are not counted.
    assert abs(line.cut - max(0, length - meant.LONGEST)) <= 2
    assert bool(line.rest) == (line.cut > 0)


@each_row(
    "value",
    [
        " ".join(f"https://{number}.example" for number in range(50)),
        [f"https://{number}.example" for number in range(50)],
        [{"a": "b"}] * 400,
        "x" * 300_000,
        "https://same.example " * 500,
    ],
)
def test_what_no_line_is_about_is_said(value: Any) -> None:
    found = meanings(value)
    assert len(found) <= meant.MOST_LINES + 1
    assert found[-1].words == MORE


def steps(work: Callable[[], object]) -> int:
    """Return how many lines of Python the work takes."""
    count = 0

    def tracer(_frame: object, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@each_row(
    "part",
    [
        "a",
        CODE,
        "1/2/2026 ",
        "https://a.example ",
        "\\u0041",
        "xn--",
        "Etc/GMT+2 ",
        "[",
        "@",
        "%41",
        "http://%41@",
        "find ",
        "rm -rf ",
        "a" + "\n" * 9,
    ],
)
def test_a_megabyte_takes_no_more_steps_than_a_hundredth_of_it(part: str) -> None:
    small, large = (part * (size // len(part)) for size in (16_000, 1_000_000))
    assert steps(lambda: meanings(large)) <= steps(lambda: meanings(small)) * 20 + 1000


@each_row(
    "name, value, expected",
    [
        ("purge", True, meant.FLAG),
        ("quiet", True, meant.FLAG),
        ("then", "delete", meant.FLAG),
        ("forceDelete", "yes", meant.FLAG),
        ("force", False, meant.OTHER),
        ("callback_url", "x", meant.ADDRESS),
        ("note", "see https://evil.example", meant.ADDRESS),
        ("amount", 5, meant.AMOUNT),
        ("to", "alice", meant.RECIPIENT),
        ("copy", "a@b.example", meant.RECIPIENT),
        ("note", "We did not delete the file that you asked us to delete.", meant.OTHER),
        ("colour", ["red"], meant.OTHER),
    ],
)
def test_what_matters_most_weighs_least(name: str, value: Any, expected: int) -> None:
    assert weight(name, value) == expected
