"""What a tool may import from `hitl`: the functions behind its capabilities, and nothing else."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hitlchat.sandbox import HostFunction
from tools_studio import network
from tools_studio.capabilities import Capabilities, email, store
from tools_studio.capabilities.filing import grants
from tools_studio.variables import Resolved


def offered(granted: Capabilities, group: str, values: Resolved) -> dict[str, HostFunction]:
    """By dotted name. `values` are the variables of this tool, which no function shows to another one."""
    known = {**values.plain, **values.secret}

    def value(name: str) -> str:
        """For what the server does with a variable itself, so that the tool need not see it."""
        return _one(name, known, "variable", known)

    every = {
        "now": _now,
        **_values(values),
        **store.grants(group),
        **grants(granted.files),
        **email.grants(granted.email),
        **network.grants(granted.fetch, granted.webhook, value, read_only=granted.reads_only),
    }
    return {name: every[name] for name in granted.names()}


def for_preview(granted: Capabilities, group: str, values: Resolved) -> dict[str, HostFunction]:
    """The same names; those that change something refuse, so that code that imports them can be loaded."""
    reads = granted.read_only()
    return {name: _refusing(name) for name in granted.names()} | offered(reads, group, values)


def _refusing(name: str) -> HostFunction:
    async def refuse(*_args: object, **_named: object) -> None:
        raise PermissionError(f"{name} changes something, and a preview may only read")

    return refuse


def _values(values: Resolved) -> dict[str, HostFunction]:
    async def variable(name: str) -> str:
        if name in values.secret:
            raise PermissionError(f"{name} is a secret: expected secret({name!r}), or fetch(..., auth={name!r})")
        return _one(name, values.plain, "plain variable", values.plain)

    async def secret(name: str) -> str:
        if name in values.plain:
            raise ValueError(f"{name} is a plain variable: expected variable({name!r})")
        return _one(name, values.secret, "secret", values.secret)

    return {"variable": variable, "secret": secret}


def _one(name: object, values: Mapping[str, str], kind: str, there_is: Iterable[str]) -> str:
    """ValueError: there is none, with the names of those there are."""
    if not isinstance(name, str) or name not in values:
        names = ", ".join(sorted(there_is)) or "none"
        raise ValueError(f"this tool has no {kind} {str(name)[:64]!r}; there is: {names}")
    return values[name]


async def _now(timezone: str = "UTC") -> datetime:
    try:
        return datetime.now(ZoneInfo(timezone))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"now: {timezone!r} is no time zone name such as Europe/Berlin") from error
