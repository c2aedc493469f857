import datetime
from typing import Any, Never

_Paths = list[str]

def fetch(
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

def now(timezone: str = "UTC") -> datetime.datetime:
    """The time in `timezone`."""

def variable(name: str) -> str:
    """The value of a plain variable of this tool."""

def secret(name: str) -> str:
    """The value of a secret of this tool. Prefer fetch(auth=name): then the tool never sees it."""

def send_email(to: str | list[str], subject: str, text: str) -> None:
    """Send a plain text message to recipients that the tool may write to."""

def webhook(target: str, data: Any) -> dict[str, Any]:
    """Send `data` as JSON to the URL kept in the variable `target`, and return the status."""

class store:
    """What this tool keeps between calls: JSON values by key."""

    def get(key: str, default: Any = None) -> Any: ...
    def keys(prefix: str = "") -> list[str]: ...
    def set(key: str, value: Any) -> None: ...
    def delete(key: str) -> bool: ...

class files:
    """Text files below this tool's folder, by a path such as notes/today.txt."""

    def read(path: str) -> str: ...
    def list(folder: str = "") -> _Paths: ...
    def info(path: str) -> dict[str, Any] | None: ...
    def write(path: str, text: str) -> None: ...
    def append(path: str, text: str) -> None: ...
    def delete(path: str) -> bool: ...
