"""Understanding a declaration of capabilities: strictly, and with the place of what is wrong."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from tools_studio.capabilities import declared
from tools_studio.capabilities.declared import (
    FETCH_METHODS,
    MOST_BYTES,
    MOST_REDIRECTS,
    MOST_SECONDS,
    Capabilities,
    Fetch,
    Files,
)

MOST_RECIPIENTS = 50
MOST_TARGETS = 10
FOLDER = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_RECIPIENT = re.compile(r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]{0,64}@[a-z0-9-]+(\.[a-z0-9-]+)*")
_FETCH_KEYS = ("mode", "hosts", "methods", "maxBytes", "timeoutSeconds", "redirects")


class CapabilityError(ValueError):
    """The declaration cannot be understood; `field` is the dotted place, such as `fetch.hosts`."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


def parse(raw: object) -> Capabilities:
    """Understand a declaration such as `{"fetch": {"mode": "allowlist", "hosts": ["api.example.com"]}, "now": true}`.

    What is null or false is not granted; what is not known is an error, never ignored.
    """
    if raw is None:
        return Capabilities()
    if not isinstance(raw, Mapping):
        _refuse("", "expected an object of capabilities")
    granted: dict[str, Any] = {}
    for name, value in raw.items():
        if name not in _READERS:
            _refuse(str(name), f"unknown capability, expected one of {', '.join(_READERS)}")
        if value is not None and value is not False:
            granted[name] = _READERS[name](name, value)
    return Capabilities(**granted)


def _flag(name: str, value: object) -> bool:
    if value is not True:
        _refuse(name, "expected true or false")
    return True


def _fetch(name: str, value: object) -> Fetch:
    said = _object(name, value, _FETCH_KEYS, '{"mode": "allowlist", "hosts": ["api.example.com"]}')
    mode = said.get("mode")
    if mode not in ("public", "allowlist", "open"):
        _refuse(f"{name}.mode", 'expected "public", "allowlist" or "open"')
    least = 1 if mode == "allowlist" else 0
    named = _list(f"{name}.hosts", said.get("hosts", []), least, declared.HOSTS_CAP, "hosts")
    settings: dict[str, Any] = {}
    if "methods" in said:
        settings["methods"] = _methods(f"{name}.methods", said["methods"])
    for key, column, most in (
        ("maxBytes", "max_bytes", MOST_BYTES), ("timeoutSeconds", "timeout_seconds", MOST_SECONDS),
        ("redirects", "redirects", MOST_REDIRECTS),
    ):  # fmt: skip
        if key in said:
            settings[column] = _number(f"{name}.{key}", said[key], 0 if key == "redirects" else 1, most)
    return Fetch(mode, tuple(sorted({_host(f"{name}.hosts", host) for host in named})), **settings)


def _host(field: str, host: object) -> str:
    found = declared.canonical(host)
    if found is None:
        _refuse(
            field,
            f"{host!r} is not an exact host such as api.example.com, api.example.com:8443 or http://intranet,"
            " nor *.example.com",
        )
    return found


def _methods(field: str, value: object) -> tuple[str, ...]:
    named = _list(field, value, 1, len(FETCH_METHODS), "methods")
    upper = {each.upper() if isinstance(each, str) else each for each in named if isinstance(each, str)}
    if len(upper) != len(named) or not upper <= set(FETCH_METHODS):
        _refuse(field, f"expected some of {', '.join(FETCH_METHODS)}, each once")
    return tuple(method for method in FETCH_METHODS if method in upper)


def _files(name: str, value: object) -> Files:
    said = _object(name, value, ("mode", "folder"), '{"mode": "read", "folder": "notes"}')
    mode, folder = said.get("mode"), said.get("folder")
    if mode not in ("read", "write"):
        _refuse(f"{name}.mode", 'expected "read" or "write"')
    if not isinstance(folder, str) or not FOLDER.fullmatch(folder):
        _refuse(f"{name}.folder", "expected a name of small letters, digits, _ and -, such as notes")
    return Files(mode, folder)


def _email(name: str, value: object) -> tuple[str, ...]:
    said = _object(name, value, ("to",), '{"to": ["ops@example.com", "@example.com"]}')
    found = set()
    for each in _list(f"{name}.to", said.get("to"), 1, MOST_RECIPIENTS, "recipients"):
        lower = each.lower() if isinstance(each, str) and len(each) <= 254 else ""
        if lower != "*" and not _RECIPIENT.fullmatch(lower):
            _refuse(f"{name}.to", f"{each!r} is neither an address, nor @ and a domain, nor * for anyone")
        found.add(lower)
    return tuple(sorted(found))


def _webhook(name: str, value: object) -> tuple[str, ...]:
    said = _object(name, value, ("targets",), '{"targets": ["ALERTS_URL"]}')
    named = _list(f"{name}.targets", said.get("targets"), 1, MOST_TARGETS, "names of variables")
    for each in named:
        if not isinstance(each, str) or not VARIABLE.fullmatch(each):
            _refuse(f"{name}.targets", f"{each!r} is not the name of a variable such as ALERTS_URL")
    return tuple(sorted(set(named)))


def _object(name: str, value: object, keys: tuple[str, ...], example: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        _refuse(name, f"expected {example}")
    if unknown := sorted(str(key) for key in value if key not in keys):
        _refuse(f"{name}.{unknown[0]}", f"unknown setting, expected {', '.join(keys)}")
    return value


def _list(field: str, value: object, least: int, most: int, what: str) -> list[Any]:
    if not isinstance(value, list | tuple) or not least <= len(value) <= most:
        _refuse(field, f"expected a list of {least} to {most} {what}")
    return list(value)


def _number(field: str, value: object, least: int, most: float) -> int | float:
    is_whole = isinstance(value, int) or (field.endswith("Seconds") and isinstance(value, float))
    if isinstance(value, bool) or not is_whole or not least <= value <= most:  # type: ignore[operator]
        _refuse(field, f"expected a number from {least} to {most:,g}")
    return value  # type: ignore[return-value]


def _refuse(field: str, message: str) -> NoReturn:
    raise CapabilityError(field, message)


_READERS: dict[str, Callable[[str, object], Any]] = {
    "fetch": _fetch,
    "store": _flag,
    "files": _files,
    "secrets": _flag,
    "now": _flag,
    "random": _flag,
    "sleep": _flag,
    "email": _email,
    "webhook": _webhook,
    "destructive": _flag,
}
