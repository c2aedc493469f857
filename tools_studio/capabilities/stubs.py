"""The module `hitl` as a tool sees it, for the type checker."""

from collections.abc import Collection

_HEAD = "import datetime\nfrom typing import Any, Never\n\n_Paths = list[str]\n"

_FUNCTIONS = {
    "fetch": '''def fetch(
    url: str,
    method: str = "GET",
    *,
    params: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    json: Any = None,
    auth: str | dict[str, str] | None = None,
    timeout: float | None = None,
) -> dict[str, Any]:
    """Request `url` on a host that the tool may reach, and return status, headers, text and json."""
''',
    "now": '''def now(timezone: str = "UTC") -> datetime.datetime:
    """The time in `timezone`."""
''',
    "variable": '''def variable(name: str) -> str:
    """The value of a plain variable of this tool."""
''',
    "secret": '''def secret(name: str) -> str:
    """The value of a secret of this tool. Prefer fetch(auth=name): then the tool never sees it."""
''',
    "send_email": '''def send_email(to: str | list[str], subject: str, text: str) -> None:
    """Send a plain text message to recipients that the tool may write to."""
''',
    "webhook": '''def webhook(target: str, data: Any) -> dict[str, Any]:
    """Send `data` as JSON to the URL kept in the variable `target`, and return the status."""
''',
}

_CLASSES = {
    "store": (
        '''class store:
    """What this tool keeps between calls: JSON values by key."""

''',
        {
            "store.get": "def get(key: str, default: Any = None) -> Any: ...",
            "store.keys": 'def keys(prefix: str = "") -> list[str]: ...',
            "store.set": "def set(key: str, value: Any) -> None: ...",
            "store.delete": "def delete(key: str) -> bool: ...",
        },
    ),
    "files": (
        '''class files:
    """Text files below this tool's folder, by a path such as notes/today.txt."""

''',
        {
            "files.read": "def read(path: str) -> str: ...",
            "files.list": 'def list(folder: str = "") -> _Paths: ...',  # within the class, `list` is this
            "files.info": "def info(path: str) -> dict[str, Any] | None: ...",
            "files.write": "def write(path: str, text: str) -> None: ...",
            "files.append": "def append(path: str, text: str) -> None: ...",
            "files.delete": "def delete(path: str) -> bool: ...",
        },
    ),
}


def module(names: Collection[str], closed: Collection[str] = ()) -> str:
    """A `.pyi` that declares exactly these dotted names; those that are `closed` fit no call."""
    parts = [_HEAD, *(_closed(name) if name in closed else text for name, text in _FUNCTIONS.items() if name in names)]
    for head, members in _CLASSES.values():
        chosen = {name: _closed(name) if name in closed else line for name, line in members.items() if name in names}
        # Without @staticmethod, which the checker does not know: it would take any call for a right one.
        lines = [f"    {line.strip()}\n" for line in chosen.values()]
        parts += [head + "".join(lines)] if lines else []
    return "\n".join(parts)


def _closed(name: str) -> str:
    return f"def {name.rpartition('.')[2]}(nothing: Never, /) -> Any: ...\n"
