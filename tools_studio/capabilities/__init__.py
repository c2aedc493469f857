"""Capabilities, as values: understood strictly, with the risk that follows from them, and told to people, to the type
checker and to the sandbox.
"""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NoReturn

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.base.sentences import translatable
from hitlchat.gate.oversight import HIGHEST_RISK
from tools_studio import variables

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
HOSTS_CAP = 50
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?P<scheme>https?://)?(?P<name>{_LABEL}(?:\.{_LABEL})*)(?::(?P<port>[0-9]{{1,5}}))?")
_SUFFIX = re.compile(rf"\*\.{_LABEL}(?:\.{_LABEL})+")
MOST_RECIPIENTS = 50
MOST_TARGETS = 10
FOLDER = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_RECIPIENT = re.compile(r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]{0,64}@[a-z0-9-]+(\.[a-z0-9-]+)*")
_HITL = Path(__file__).with_name("hitl.pyi").read_text(encoding="utf-8")
_FITS_NO_CALL = "def closed(nothing: Never, /) -> Any: ..."
# Each number of `Fetch` with its key in the declaration, and the least and the most that it may be.
FETCH_NUMBERS: dict[str, tuple[str, int, float]] = {
    "max_bytes": ("maxBytes", 1, MOST_BYTES),
    "timeout_seconds": ("timeoutSeconds", 1, MOST_SECONDS),
    "redirects": ("redirects", 0, MOST_REDIRECTS),
}
_FETCH_KEYS = ("mode", "hosts", "methods", *(key for key, *_ in FETCH_NUMBERS.values()))


class CapabilityError(ValueError):
    """The declaration cannot be understood: a `sentence` about `field`, a dotted place such as `fetch.hosts`."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(f"{field}: {sentence}" if field else sentence)
        self.field, self.sentence = field, sentence


@dataclass(frozen=True)
class Signal:
    """One declared power with the risk level that it asks for."""

    level: int
    reason: str


@dataclass(frozen=True)
class Fetch:
    """Requests over HTTP. `hosts` are the only ones in the mode `allowlist`, else allowed beside public ones.

    `max_bytes` bounds one answer, `timeout_seconds` one request with all its redirects.
    """

    mode: FetchMode
    hosts: tuple[str, ...] = ()
    methods: tuple[str, ...] = FETCH_METHODS
    max_bytes: int = 1024 * 1024
    timeout_seconds: float = 30.0
    redirects: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the declaration without defaults."""
        plain = Fetch(self.mode)
        declared: dict[str, Any] = {"mode": self.mode}
        if self.hosts or self.mode == "allowlist":
            declared["hosts"] = list(self.hosts)
        if self.methods != plain.methods:
            declared["methods"] = list(self.methods)
        for name, (key, _least, _most) in FETCH_NUMBERS.items():
            if (value := getattr(self, name)) != getattr(plain, name):
                declared[key] = value
        return declared

    @property
    def only_reads(self) -> bool:
        return set(self.methods) <= set(READING_METHODS)


@dataclass(frozen=True)
class Files:
    """Files below one folder of the server's data, by the folder's name; tools that name the same one share it."""

    mode: FilesMode
    folder: str


@dataclass(frozen=True)
class Capabilities:
    """The powers of a tool. `email` are patterns of recipients, `webhook` names of variables that hold a URL.

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
        """Return the canonical declaration: only what is granted, lists sorted."""
        granted: dict[str, Any] = {"fetch": self.fetch.as_json()} if self.fetch else {}
        granted |= {"store": True} if self.store else {}
        granted |= {"files": {"mode": self.files.mode, "folder": self.files.folder}} if self.files else {}
        granted |= {name: True for name in ("secrets", *POWERS) if getattr(self, name)}
        granted |= {"email": {"to": list(self.email)}} if self.email else {}
        granted |= {"webhook": {"targets": list(self.webhook)}} if self.webhook else {}
        return granted | ({"destructive": True} if self.destructive else {})

    def sentences(self) -> list[str]:
        """Return one sentence for each power, the strongest first, for the person who decides."""
        sentences = [
            gettext_noop("Can permanently delete data.") if self.destructive else "",
            _email_words(self.email) if self.email else "",
            translatable(f"Can send data to the address stored in {listed(self.webhook)}.") if self.webhook else "",
            _fetch_words(self.fetch) if self.fetch else "",
            _files_words(self.files) if self.files else "",
            gettext_noop("Can read its secrets.") if self.secrets else "",
            gettext_noop("Can read and change its own stored data.") if self.store else "",
            gettext_noop("Can read the clock.") if self.now else "",
            gettext_noop("Can use random numbers.") if self.random else "",
            gettext_noop("Can wait for some seconds.") if self.sleep else "",
        ]
        return [each for each in sentences if each]

    def signals(self) -> list[Signal]:
        """Return what raises the risk, the worst first."""
        powers = [
            _fetch_signal(self.fetch) if self.fetch else None,
            Signal(2, "keeps data between calls") if self.store else None,
            _files_signal(self.files) if self.files else None,
            Signal(3, "reads secrets") if self.secrets else None,
            Signal(0, "reads the clock") if self.now else None,
            Signal(0, "uses chance") if self.random else None,
            Signal(0, "may wait") if self.sleep else None,
            _email_signal(self.email) if self.email else None,
            Signal(3, "sends data to addresses kept in its variables") if self.webhook else None,
            Signal(HIGHEST_RISK, "can destroy what cannot be brought back") if self.destructive else None,
        ]
        return sorted(filter(None, powers), key=lambda signal: -signal.level)

    @property
    def risk_level(self) -> int:
        return max((signal.level for signal in self.signals()), default=0)

    def names(self) -> frozenset[str]:
        """Return the dotted names that the tool may import from `hitl`."""
        may_change = not self.reads_only
        granted = {
            ALWAYS: True,
            ("fetch",): self.fetch,
            ("now",): self.now,
            ("secret",): self.secrets,
            STORE_READS: self.store,
            STORE_WRITES: self.store and may_change,
            FILE_READS: self.files,
            FILE_WRITES: self.files and self.files.mode == "write" and may_change,
            ("send_email",): self.email and may_change,
            ("webhook",): self.webhook and may_change,
        }
        return frozenset(name for names, is_granted in granted.items() if is_granted for name in names)

    def powers(self) -> frozenset[str]:
        """Return what the interpreter itself may do: read the clock, use chance, sleep."""
        return frozenset(name for name in POWERS if getattr(self, name))

    def read_only(self) -> "Capabilities":
        """Return the capabilities without those that change something: nothing is written or sent."""
        fetch = self.fetch
        if fetch is not None:
            methods = tuple(method for method in fetch.methods if method in READING_METHODS)
            fetch = replace(fetch, methods=methods) if methods else None
        files = replace(self.files, mode="read") if self.files else None
        return replace(self, fetch=fetch, files=files, email=(), webhook=(), sleep=False, reads_only=True)


def canonical(host: object) -> str | None:
    """Return a host in lower case without `https://`, which is the default; None if it is no host.

    `*.example.com` means every host below example.com, over https.
    """
    if not isinstance(host, str) or len(host) > 300:
        return None
    host = host.lower()
    if _SUFFIX.fullmatch(host):
        # Below an address there are no hosts.
        return host if len(host) <= 255 and not host.rpartition(".")[2].isdigit() else None
    match = _HOST.fullmatch(host)
    if match is None or len(match["name"]) > 253 or not 1 <= int(match["port"] or 1) <= 65535:
        return None
    port = f":{int(match['port'])}" if match["port"] else ""
    scheme = "http://" if match["scheme"] == "http://" else ""
    return f"{scheme}{match['name']}{port}"


def parse(raw: object) -> Capabilities:
    """Understand a declaration such as `{"fetch": {"mode": "allowlist", "hosts": ["api.example.com"]}, "now": true}`.

    Null or false grants nothing; an unknown capability is an error. Raises: CapabilityError
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


def listed(words: tuple[str, ...]) -> str:
    """`a, b and c`."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def stubs_of(names: Collection[str], closed: Collection[str] = ()) -> str:
    """Return the module `hitl` as a `.pyi` that declares exactly these dotted names; those `closed` fit no call."""
    tree = ast.parse(_HITL)
    tree.body = [part for node in tree.body for part in _declared(node, names, closed)]
    return ast.unparse(tree)


def _flag(name: str, value: object) -> bool:
    if value is not True:
        _refuse(name, "expected true or false")
    return True


def _read_fetch(name: str, value: object) -> Fetch:
    declared = _object(name, value, _FETCH_KEYS, '{"mode": "allowlist", "hosts": ["api.example.com"]}')
    mode = declared.get("mode")
    if mode not in ("public", "allowlist", "open"):
        _refuse(f"{name}.mode", 'expected "public", "allowlist" or "open"')
    hosts = set()
    for host in _list(f"{name}.hosts", declared.get("hosts", []), int(mode == "allowlist"), HOSTS_CAP, "hosts"):
        if (found := canonical(host)) is None:
            _refuse(
                f"{name}.hosts",
                f"{host!r} is not an exact host such as api.example.com, api.example.com:8443 or http://intranet,"
                " nor *.example.com",
            )
        hosts.add(found)
    settings: dict[str, Any] = {}
    if "methods" in declared:
        field = f"{name}.methods"
        named = _list(field, declared["methods"], 1, len(FETCH_METHODS), "methods")
        upper = {each.upper() if isinstance(each, str) else each for each in named if isinstance(each, str)}
        if len(upper) != len(named) or not upper <= set(FETCH_METHODS):
            _refuse(field, f"expected some of {', '.join(FETCH_METHODS)}, each once")
        settings["methods"] = tuple(method for method in FETCH_METHODS if method in upper)
    for column, (key, least, most) in FETCH_NUMBERS.items():
        if key in declared:
            settings[column] = _number(f"{name}.{key}", declared[key], least, most)
    return Fetch(mode, tuple(sorted(hosts)), **settings)


def _files(name: str, value: object) -> Files:
    declared = _object(name, value, ("mode", "folder"), '{"mode": "read", "folder": "notes"}')
    mode, folder = declared.get("mode"), declared.get("folder")
    if mode not in ("read", "write"):
        _refuse(f"{name}.mode", 'expected "read" or "write"')
    if not isinstance(folder, str) or not FOLDER.fullmatch(folder):
        _refuse(f"{name}.folder", "expected a name of small letters, digits, _ and -, such as notes")
    return Files(mode, folder)


def _read_email(name: str, value: object) -> tuple[str, ...]:
    declared = _object(name, value, ("to",), '{"to": ["ops@example.com", "@example.com"]}')
    found = set()
    for each in _list(f"{name}.to", declared.get("to"), 1, MOST_RECIPIENTS, "recipients"):
        lower = each.lower() if isinstance(each, str) and len(each) <= 254 else ""
        if lower != "*" and not _RECIPIENT.fullmatch(lower):
            _refuse(f"{name}.to", f"{each!r} is neither an address, nor @ and a domain, nor * for anyone")
        found.add(lower)
    return tuple(sorted(found))


def _webhook(name: str, value: object) -> tuple[str, ...]:
    declared = _object(name, value, ("targets",), '{"targets": ["ALERTS_URL"]}')
    named = _list(f"{name}.targets", declared.get("targets"), 1, MOST_TARGETS, "names of variables")
    for each in named:
        if not isinstance(each, str) or not variables.NAME.fullmatch(each):
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


def _refuse(field: str, sentence: str) -> NoReturn:
    raise CapabilityError(field, sentence)


_READERS: dict[str, Callable[[str, object], Any]] = {
    "fetch": _read_fetch,
    "store": _flag,
    "files": _files,
    "secrets": _flag,
    "now": _flag,
    "random": _flag,
    "sleep": _flag,
    "email": _read_email,
    "webhook": _webhook,
    "destructive": _flag,
}


def _fetch_words(fetch: Fetch) -> str:
    if fetch.mode == "allowlist":
        hosts = listed(fetch.hosts)
    elif fetch.mode == "public" and fetch.hosts:
        hosts = translatable(f"any public host on the internet, over https, and {listed(fetch.hosts)}")
    elif fetch.mode == "public":
        hosts = gettext_noop("any public host on the internet, over https")
    elif fetch.hosts:
        hosts = translatable(f"any public host on the internet, at any port, and {listed(fetch.hosts)}")
    else:
        hosts = gettext_noop("any public host on the internet, at any port")
    return translatable(f"Can read from {hosts}.") if fetch.only_reads else translatable(f"Can reach {hosts}.")


def _files_words(files: Files) -> str:
    if files.mode == "write":
        return translatable(f"Can read, write and delete the files in the folder {files.folder}.")
    return translatable(f"Can read the files in the folder {files.folder}.")


def _email_words(recipients: tuple[str, ...]) -> str:
    if "*" in recipients:
        return gettext_noop("Can send e-mail to anyone.")
    named = tuple(f"anyone at {each[1:]}" if each[0] == "@" else each for each in recipients)
    return translatable(f"Can send e-mail to {listed(named)}.")


def _fetch_signal(fetch: Fetch) -> Signal:
    reads, hosts = fetch.only_reads, ", ".join(fetch.hosts)
    match fetch.mode:
        case "allowlist" if "*" in hosts:
            if reads:
                words = _("may read from hosts that are not all named: {hosts}")
            else:
                words = _("may fetch from hosts that are not all named: {hosts}")
            return Signal(4, words.format(hosts=hosts))
        case "allowlist":
            words = _("may read from named hosts: {hosts}") if reads else _("may fetch from named hosts: {hosts}")
            return Signal(3, words.format(hosts=hosts))
        case "public":
            words = _("may read from any public host") if reads else _("may fetch from any public host")
            return Signal(3, words + (_(", and {hosts}").format(hosts=hosts) if hosts else ""))
        case "open":
            return Signal(4, _("may read from any host") if reads else _("may fetch from any host"))


def _files_signal(files: Files) -> Signal:
    if files.mode == "read":
        return Signal(3, _("reads files in the folder {folder}").format(folder=files.folder))
    return Signal(4, _("writes and deletes files in the folder {folder}").format(folder=files.folder))


def _email_signal(recipients: tuple[str, ...]) -> Signal:
    if "*" in recipients:
        return Signal(4, "sends e-mail to anyone")
    return Signal(3, _("sends e-mail to {recipients}").format(recipients=", ".join(recipients)))


def _declared(node: ast.stmt, names: Collection[str], closed: Collection[str], prefix: str = "") -> Iterator[ast.stmt]:
    if isinstance(node, ast.FunctionDef):
        name = f"{prefix}{node.name}"
        if name in names:
            yield ast.parse(_FITS_NO_CALL.replace("closed", node.name)).body[0] if name in closed else node
    elif isinstance(node, ast.ClassDef):
        # Without @staticmethod, which the checker does not know: it would take any call for a right one.
        node.body = [part for each in node.body for part in _declared(each, names, closed, f"{node.name}.")]
        if any(isinstance(part, ast.FunctionDef) for part in node.body):
            yield node
    else:
        yield node
