"""What a tool may do, as values; and how it is told to people, to the type checker and to the sandbox."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from tools_studio.capabilities import stubs

HOSTS_CAP = 50
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?P<scheme>https?://)?(?P<name>{_LABEL}(?:\.{_LABEL})*)(?::(?P<port>[0-9]{{1,5}}))?")
_SUFFIX = re.compile(rf"\*\.{_LABEL}(?:\.{_LABEL})+")


def canonical(host: object) -> str | None:
    """Lower case, no `https://` (which is meant when nothing is said), or None if it is no host.

    `*.example.com` means every host below example.com, over https.
    """
    if not isinstance(host, str) or len(host) > 300:
        return None
    host = host.lower()
    if _SUFFIX.fullmatch(host):
        return host if len(host) <= 255 and not _is_number(host) else None
    match = _HOST.fullmatch(host)
    if match is None or len(match["name"]) > 253 or not 1 <= int(match["port"] or 1) <= 65535:
        return None
    port = f":{int(match['port'])}" if match["port"] else ""
    scheme = "http://" if match["scheme"] == "http://" else ""
    return f"{scheme}{match['name']}{port}"


def _is_number(host: str) -> bool:
    """Below an address there are no hosts."""
    return host.rpartition(".")[2].isdigit()


FetchMode = Literal["public", "allowlist", "open"]
FilesMode = Literal["read", "write"]

FETCH_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
READING_METHODS = ("GET", "HEAD")
MOST_BYTES = 4 * 1024 * 1024
MOST_SECONDS = 60.0
MOST_REDIRECTS = 5

# What the interpreter itself may do, beside the functions of the module `hitl`.
POWERS = ("now", "random", "sleep")
STORE_READS, STORE_WRITES = ("store.get", "store.keys"), ("store.set", "store.delete")
FILE_READS, FILE_WRITES = ("files.read", "files.list", "files.info"), ("files.write", "files.append", "files.delete")
ALWAYS = ("variable",)
ALL_NAMES = frozenset(
    {
        *("fetch", "now", "secret", "send_email", "webhook"),
        *(*ALWAYS, *STORE_READS, *STORE_WRITES, *FILE_READS, *FILE_WRITES),
    }
)


@dataclass(frozen=True)
class Fetch:
    """Requests over HTTP. `hosts` are all there is in the mode `allowlist`, else those named beside the public ones.

    `max_bytes` bounds one answer, `timeout_seconds` one request with all its redirects.
    """

    mode: FetchMode
    hosts: tuple[str, ...] = ()
    methods: tuple[str, ...] = FETCH_METHODS
    max_bytes: int = 1024 * 1024
    timeout_seconds: float = 30.0
    redirects: int = 0

    def as_json(self) -> dict[str, Any]:
        """The declaration without what is only the default."""
        plain = Fetch(self.mode)
        said: dict[str, Any] = {"mode": self.mode}
        if self.hosts or self.mode == "allowlist":
            said["hosts"] = list(self.hosts)
        for name, key in _FETCH_SETTINGS.items():
            value = getattr(self, name)
            if value != getattr(plain, name):
                said[key] = list(value) if isinstance(value, tuple) else value
        return said

    @property
    def only_reads(self) -> bool:
        return set(self.methods) <= set(READING_METHODS)


_FETCH_SETTINGS = {
    "methods": "methods", "max_bytes": "maxBytes", "timeout_seconds": "timeoutSeconds", "redirects": "redirects",
}  # fmt: skip


@dataclass(frozen=True)
class Files:
    """Files below one folder of the server's data, by the folder's name; tools that name the same one share it."""

    mode: FilesMode
    folder: str


@dataclass(frozen=True)
class Capabilities:
    """What a tool may do. `email` are patterns of recipients, `webhook` names of variables that hold a URL.

    With `reads_only` whatever would change something is left out: what an effect preview gets.
    """

    fetch: Fetch | None = None
    store: bool = False
    files: Files | None = None
    secrets: bool = False
    now: bool = False
    random: bool = False
    sleep: bool = False
    email: tuple[str, ...] = ()
    webhook: tuple[str, ...] = ()
    destructive: bool = False
    reads_only: bool = False

    def as_json(self) -> dict[str, Any]:
        """The canonical declaration: only what is granted, lists sorted."""
        granted: dict[str, Any] = {"fetch": self.fetch.as_json()} if self.fetch else {}
        granted |= {"store": True} if self.store else {}
        granted |= {"files": {"mode": self.files.mode, "folder": self.files.folder}} if self.files else {}
        granted |= {name: True for name in ("secrets", *POWERS) if getattr(self, name)}
        granted |= {"email": {"to": list(self.email)}} if self.email else {}
        granted |= {"webhook": {"targets": list(self.webhook)}} if self.webhook else {}
        return granted | ({"destructive": True} if self.destructive else {})

    def sentences(self) -> list[str]:
        """What the tool can do, for the person who decides."""
        return sentences(self)

    def names(self) -> frozenset[str]:
        """The dotted names that the tool may import from `hitl` and use."""
        return frozenset(self._names())

    def _names(self) -> Iterator[str]:
        yield from ALWAYS
        yield from ("fetch",) if self.fetch else ()
        yield from ("now",) if self.now else ()
        yield from ("secret",) if self.secrets else ()
        yield from STORE_READS if self.store else ()
        yield from STORE_WRITES if self.store and not self.reads_only else ()
        yield from FILE_READS if self.files else ()
        yield from FILE_WRITES if self.files and self.files.mode == "write" and not self.reads_only else ()
        yield from ("send_email",) if self.email and not self.reads_only else ()
        yield from ("webhook",) if self.webhook and not self.reads_only else ()

    def powers(self) -> frozenset[str]:
        """What the interpreter itself may do: read the clock, use chance, sleep."""
        return frozenset(name for name in POWERS if getattr(self, name))

    def stubs(self) -> str:
        """The module `hitl` as this tool sees it, as a `.pyi` for the type checker."""
        return stubs.module(self.names())

    def read_only(self) -> "Capabilities":
        """The same with no power to change anything: requests only read, nothing is written or sent."""
        fetch = self.fetch
        if fetch is not None:
            methods = tuple(method for method in fetch.methods if method in READING_METHODS)
            fetch = replace(fetch, methods=methods) if methods else None
        files = replace(self.files, mode="read") if self.files else None
        return replace(self, fetch=fetch, files=files, email=(), webhook=(), sleep=False, reads_only=True)


def sentences(granted: "Capabilities") -> list[str]:
    """One sentence for each power, the strongest first."""
    said = ["It can destroy what cannot be brought back."] if granted.destructive else []
    said += [_email(granted.email)] if granted.email else []
    said += [f"It can send data to the address kept in {listed(granted.webhook)}."] if granted.webhook else []
    said += [_fetch(granted.fetch)] if granted.fetch else []
    if granted.files:
        does = "read, write and delete" if granted.files.mode == "write" else "read"
        said.append(f"It can {does} the files in the folder {granted.files.folder}.")
    said += ["It can read its secrets."] if granted.secrets else []
    said += ["It can read and change the data it keeps (store)."] if granted.store else []
    said += ["It can read the clock."] if granted.now else []
    said += ["It can use chance."] if granted.random else []
    return said + (["It can wait for some seconds."] if granted.sleep else [])


def listed(words: tuple[str, ...]) -> str:
    """`a, b and c`."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _fetch(fetch: "Fetch") -> str:
    does = "read from" if fetch.only_reads else "reach"
    named = listed(fetch.hosts) if fetch.hosts else ""
    if fetch.mode == "allowlist":
        return f"It can {does} {named}."
    where = "any public host on the internet, " + ("over https" if fetch.mode == "public" else "at any port")
    return f"It can {does} {where}{f', and {named}' if named else ''}."


def _email(recipients: tuple[str, ...]) -> str:
    if "*" in recipients:
        return "It can send e-mail to anyone."
    named = tuple(f"anyone at {each[1:]}" if each[0] == "@" else each for each in recipients)
    return f"It can send e-mail to {listed(named)}."
