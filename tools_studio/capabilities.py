"""The powers that a tool declares: what it may import from `hitl`, and with which limits."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

STORE_NAMES = ("store.get", "store.set", "store.delete", "store.keys")
ALL_NAMES = frozenset({"fetch", "now", *STORE_NAMES})
HOSTS_CAP = 50
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?P<scheme>https?://)?(?P<name>{_LABEL}(?:\.{_LABEL})*)(?::(?P<port>[0-9]{{1,5}}))?")


class CapabilityError(ValueError):
    """The declaration cannot be understood; `field` is the dotted place, such as `fetch.hosts`."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


@dataclass(frozen=True)
class Capabilities:
    """What a tool may do. No `hosts` means no network."""

    hosts: tuple[str, ...] = ()
    store: bool = False
    now: bool = False
    destructive: bool = False

    def as_json(self) -> dict[str, Any]:
        """The canonical declaration: only what is granted, hosts sorted."""
        fetch = {"fetch": {"mode": "allowlist", "hosts": list(self.hosts)}} if self.hosts else {}
        flags = {name: True for name in ("store", "now", "destructive") if getattr(self, name)}
        return fetch | flags

    def sentences(self) -> list[str]:
        """What the tool can do, for the person who decides."""
        said = [f"It can reach {_listed(self.hosts)}."] if self.hosts else []
        said += ["It can read and change the data it keeps (store)."] if self.store else []
        said += ["It can read the clock."] if self.now else []
        said += ["It can destroy what cannot be brought back."] if self.destructive else []
        return said

    def names(self) -> frozenset[str]:
        """The dotted names that the tool may import from `hitl` and use."""
        return frozenset(
            [*["fetch"][: bool(self.hosts)], *["now"][: self.now], *STORE_NAMES[: len(STORE_NAMES) * self.store]]
        )

    def stubs(self) -> str:
        """The module `hitl` as this tool sees it, as a `.pyi` for the type checker."""
        parts = ["import datetime\nfrom typing import Any\n"]
        parts += [_FETCH_STUB] if self.hosts else []
        parts += [_NOW_STUB] if self.now else []
        parts += [_STORE_STUB] if self.store else []
        return "\n".join(parts)


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
            granted |= _READERS[name](name, value)
    return Capabilities(**granted)


def _flag(name: str, value: object) -> dict[str, Any]:
    if value is not True:
        _refuse(name, "expected true or false")
    return {name: True}


def _fetch(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        _refuse(name, 'expected {"mode": "allowlist", "hosts": ["api.example.com"]}')
    if unknown := sorted(str(key) for key in value.keys() - {"mode", "hosts"}):
        _refuse(f"{name}.{unknown[0]}", "unknown setting, expected mode and hosts")
    if value.get("mode") != "allowlist":
        _refuse(f"{name}.mode", 'expected "allowlist"')
    hosts = value.get("hosts")
    if not isinstance(hosts, list | tuple) or not 1 <= len(hosts) <= HOSTS_CAP:
        _refuse(f"{name}.hosts", f"expected a list of 1 to {HOSTS_CAP} hosts")
    return {"hosts": tuple(sorted({_host(f"{name}.hosts", host) for host in hosts}))}


def _host(field: str, host: object) -> str:
    """The host in its one spelling: lower case, no `https://` (which is meant when nothing is said)."""
    match = _HOST.fullmatch(host.lower()) if isinstance(host, str) and len(host) <= 300 else None
    if match is None or len(match["name"]) > 253 or not 1 <= int(match["port"] or 1) <= 65535:
        _refuse(
            field, f"{host!r} is not an exact host such as api.example.com, api.example.com:8443 or http://intranet"
        )
    port = f":{int(match['port'])}" if match["port"] else ""
    scheme = "http://" if match["scheme"] == "http://" else ""
    return f"{scheme}{match['name']}{port}"


def _listed(words: tuple[str, ...]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _refuse(field: str, message: str) -> NoReturn:
    raise CapabilityError(field, message)


_READERS: dict[str, Callable[[str, object], dict[str, Any]]] = {
    "fetch": _fetch,
    "store": _flag,
    "now": _flag,
    "destructive": _flag,
}

_FETCH_STUB = '''def fetch(
    url: str,
    method: str = "GET",
    *,
    params: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    json: Any = None,
    timeout: float = 10.0,
) -> dict[str, Any]:
    """Request `url` on a host that the tool names, and return status, headers, text and json."""
'''
_NOW_STUB = '''def now(timezone: str = "UTC") -> datetime.datetime:
    """The time in `timezone`."""
'''
_STORE_STUB = '''class store:
    """What this tool keeps between calls: JSON values by key."""

    @staticmethod
    def get(key: str, default: Any = None) -> Any: ...
    @staticmethod
    def set(key: str, value: Any) -> None: ...
    @staticmethod
    def delete(key: str) -> None: ...
    @staticmethod
    def keys(prefix: str = "") -> list[str]: ...
'''
