"""What to write instead: for errors that tell an author only what is missing, and for code that may surprise."""

import re

from hitlchat.sandbox import helpers
from hitlchat.sandbox.grants import MODULE
from hitlchat.sandbox.report import Problem

FETCH = f"use the capability 'fetch': from {MODULE} import fetch"
FILES = f"use the capability 'files': from {MODULE} import files"
INSTEAD = {
    "abc": "classes cannot inherit here",
    "aiohttp": FETCH,
    "contextlib": "use try and finally, or a class with __enter__ and __exit__",
    "enum": "use Literal for an argument, and plain constants inside",
    "fractions": "use decimal",
    "glob": FILES,
    "httpx": FETCH,
    "io": "csv.reader and csv.DictReader take text.splitlines()",
    "logging": "use print: what a tool prints is kept with its result",
    "numpy": "use math and statistics",
    "operator": "use a lambda, such as lambda row: row['name']",
    "pandas": "use csv and statistics",
    "pickle": "use json",
    "pytz": "use: import zones",
    "requests": FETCH,
    "shutil": FILES,
    "smtplib": f"use the capability 'email': from {MODULE} import send_email",
    "socket": FETCH,
    "sqlite3": f"use the capability 'store': from {MODULE} import store",
    "tempfile": FILES,
    "urllib.request": FETCH,
    "urllib3": FETCH,
    "zoneinfo": "use: import zones",
}
_NO_MODULE = re.compile(r"No module named '([\w.]+)'|Cannot resolve imported module `([\w.]+)`")
HINTS = (
    (r"cannot use yield expressions", "collect into a list and return it"),
    (r"cannot use class inheritance", "raise ValueError with a clear message; use plain classes, dataclasses or dicts"),
    (r"cannot use method decorators", "use a plain method, or a function outside the class"),
    (r"cannot use the 'del' statement", "use .pop() of a dict or list"),
    (r"cannot use class bodies containing", "put it before the class"),
    (r"callable replacement is not yet supported", "loop over re.finditer and join the parts"),
    (r"unexpected keyword argument 'default'", "convert the values before json.dumps"),
    (r"'list' object is not an iterator", "generator expressions are lists here: write next(iter([...]), None)"),
    (r"type object '(\w+)' has no attribute", "call it on a value, in a lambda: key=lambda text: text.lower()"),
    (r"object has no attribute '__name__'", "write the name as a text"),
    (r"functools' has no attribute 'wraps'", "leave it out: functions have no name here"),
    (r"from 'dataclasses'|'dataclasses' has no", "a dataclass in the result becomes an object by itself"),
    (r"name 'ConnectionError' is not defined", "fetch raises TimeoutError and ValueError"),
    (r"name 'callable' is not defined|name 'issubclass' is not defined", "use isinstance, or compare type(x)"),
    (r"datetime' has no attribute 'UTC'|name 'UTC' from 'datetime'", "write datetime.timezone.utc"),
    (r"'OrderedDict'", "a dict keeps its order"),
    (r"\.(?:Split|Parse)Result' object has no attribute|`_(?:Split|Parsed)`", "use urls.parts(url)['host']"),
)
_HINTS = [(re.compile(pattern), hint) for pattern, hint in HINTS]

# Found by their look alone: a warning in vain costs less than a surprise.
SURPRISES = [
    (
        re.compile(r"^\s+(?:async\s+)?def\s+__(?:bool|len)__\b"),
        "__bool__ and __len__ of a class are not asked here, without an error: every object counts as true",
    ),
    (
        re.compile(r"(?<![\w.])round\((?:[^(),]|\([^()]*\))*,"),
        "round(x, n) rounds what is written, not what is stored: 2.675 gives 2.68, in Python 2.67; money needs Decimal",
    ),
    (
        re.compile(r"(?<![\w.])next\(\s*\([^()]*\sfor\s"),
        "next() of a generator expression fails: they are lists here. Write next(iter([...]), None)",
    ),
]
LOOKED_AT_CHARS = 500


def advised(message: str) -> str:
    """`message`, with what to write instead if that is known."""
    if offer := helpers.missing(message):
        return offer
    message = message.removesuffix(" (unknown location)")
    hint = _instead(message) or next((hint for pattern, hint in _HINTS if pattern.search(message)), None)
    return f"{message} ({hint})" if hint else message


def _instead(message: str) -> str | None:
    found = _NO_MODULE.search(message)
    name = (found[1] or found[2]) if found else ""
    return INSTEAD.get(name) or INSTEAD.get(name.partition(".")[0])


def warnings(source: str) -> list[Problem]:
    """Where code that runs may do something else than its author expects. By its text: nobody parses it here."""
    found = []
    for number, line in enumerate(source.splitlines(), 1):
        code = line[:LOOKED_AT_CHARS].split("#")[0]
        for pattern, message in SURPRISES:
            if match := pattern.search(code):
                column = match.start() + 1 + len(match[0]) - len(match[0].lstrip())
                found.append(Problem(number, column, message, "warning"))
    return found
