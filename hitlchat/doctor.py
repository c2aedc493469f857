"""What an operator should know of this installation: each check finds whether something is in order, and what to do.

Nothing is changed but a file that is written, read and removed. No finding holds a secret.
"""

import os
import platform
import re
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.core import mail
from django.core.checks import run_checks
from django.db import DatabaseError, connection
from django.utils import timezone

from hitlchat import health, running, sandbox
from hitlchat.base import database
from hitlchat.base.background import OwnThreads
from hitlchat.checks import LOOPBACK
from hitlchat.record import keys, sealing, verifying
from hitlchat.record.report import Report
from hitlchat.secrets.masking import Mask

# All checks run at once. The longest imports every page, which takes a busy machine this long.
SECONDS: Final = 15.0
RECORD_SECONDS: Final = 3.0
# What is connected to must answer within this time.
NETWORK_SECONDS: Final = 3
CLOCK_SECONDS: Final = {"weak": 1.0, "broken": 5.0}
FREE_BYTES: Final = {"weak": 2**30, "broken": 2**27}
SLOW_WRITE_SECONDS: Final = 0.1
# Six months: what the AI Act has deployers keep of the logs of a high-risk system.
KEPT_DAYS: Final = 180
LOCK: Final = settings.BASE_DIR / "requirements.lock"
SECRETS: Final = ("SECRET_KEY", "EMAIL_HOST_PASSWORD", "OPENAI_API_KEY", "HITL_METRICS_TOKEN", "HITL_RECORD_KEY")

BUSY: Final = "Look at what the other checks say first, then run it again."
# Of Django's checks, what to do here.
ADVICE: Final = {
    **dict.fromkeys(
        ("security.W004", "security.W012", "security.W016"), "Set HTTPS=1 behind a proxy that speaks HTTPS."
    ),
    "security.W008": "Have the proxy redirect HTTP to HTTPS.",
}

State = Literal["ok", "weak", "broken"]
Checks = Mapping[str, "Callable[[], Iterator[Diagnosis]]"]


@dataclass(frozen=True)
class Diagnosis:
    """`check`: what was looked at; `found`: a sentence; `advice`: what to do, empty if there is nothing to do."""

    check: str
    state: State
    found: str
    advice: str = ""


def examine(checks: Checks | None = None, seconds: float = SECONDS) -> Iterator[Diagnosis]:
    """Yield the findings of all checks, which run at the same time; one that fails or hangs is a finding itself."""
    checks = CHECKS if checks is None else checks
    threads, mask, begun = OwnThreads("doctor", len(checks)), _mask(), time.monotonic()
    futures = {name: threads.submit(_all_of, check) for name, check in checks.items()}
    for name, future in futures.items():
        try:
            found = future.result(max(0.0, begun + seconds - time.monotonic()))
        except TimeoutError:
            found = [Diagnosis(name, "broken", f"There was no answer within {seconds:g} seconds.", BUSY)]
        except DatabaseError:
            found = [Diagnosis(name, "broken", "The database did not answer.", "See “database”.")]
        except Exception as error:  # noqa: BLE001 - whatever it is, the operator must know, and the others go on
            found = [Diagnosis(name, "broken", f"The check failed: {type(error).__name__}: {error}", BUSY)]
        for each in found:
            yield Diagnosis(each.check, each.state, mask.text(each.found), mask.text(each.advice))


def weak_settings() -> Iterator[Diagnosis]:
    """Yield the settings with which the gate asks less, or others can do more, than by default."""
    found = [Diagnosis(name, "weak", words, advice) for name, is_weak, words, advice in _weaknesses() if is_weak]
    yield from found or [Diagnosis("settings", "ok", "No setting weakens the gate.")]


def one_configuration() -> Iterator[Diagnosis]:
    servers, file = [*running.others()], settings.CONFIGURATION.file
    advice = f"Set it for both in {file}."
    differing = [Diagnosis("configuration", "broken", words, advice) for words in running.differences()]
    which = ", ".join(map(str, servers)) or "none"
    where = f"{file} sets {len(settings.CONFIGURATION.places)} settings" if file.exists() else f"{file} does not exist"
    yield from differing or [Diagnosis("configuration", "ok", f"{where}. Running servers: {which}.")]
    if len(servers) > 1 and not settings.REDIS_URL:
        words = f"{len(servers)} servers run without Redis: pages of one do not hear of what happens at another."
        yield Diagnosis("redis", "broken", words, "Set REDIS_URL for all of them.")


def walls() -> Iterator[Diagnosis]:
    if os.statvfs(folder := tempfile.gettempdir()).f_flag & getattr(os, "ST_NOEXEC", 0):
        yield Diagnosis("sandbox", "broken", "No tool code runs.", f"{sandbox.NO_PROGRAMS.format(folder)}.")
    found = sandbox.status()
    missing = [wall for wall in found.walls if not wall.is_up]
    up = ", ".join(wall.name for wall in found.walls if wall.is_up)
    if up:
        yield Diagnosis("sandbox", "ok", f"{found.interpreter} runs tool code. Walls that are up: {up}.")
    for wall in missing:
        words = f"{wall.name} is missing ({wall.missing})."
        if found.can_run:
            advice = "Use Linux 5.13 or newer, and a container that allows it; then set TOOLS_REQUIRE_JAIL=1."
            yield Diagnosis("sandbox", "weak", words, advice)
        else:
            advice = "Use Linux 5.13 or newer, and a container that allows it; or unset TOOLS_REQUIRE_JAIL."
            yield Diagnosis("sandbox", "broken", f"{words} No tool code runs.", advice)


def clock() -> Iterator[Diagnosis]:
    if connection.vendor == "sqlite":
        yield Diagnosis(
            "clock", "ok", f"It is {timezone.now():%Y-%m-%d %H:%M:%S} UTC. SQLite uses this machine's clock."
        )
        return
    before = timezone.now()
    there = database.now()
    # In the middle of the question, as the answer took a while.
    apart = abs((there - before - (timezone.now() - before) / 2).total_seconds())
    state = _at_least(apart, CLOCK_SECONDS)
    words = f"The clocks of the database and this machine differ by {apart:.1f} s."
    yield Diagnosis(
        "clock", state, words, "" if state == "ok" else "Synchronize both with NTP: deadlines depend on it."
    )


def disk() -> Iterator[Diagnosis]:
    folder = settings.DATA_DIR
    free = shutil.disk_usage(folder).free
    state: State = "ok" if free >= FREE_BYTES["weak"] else "weak" if free >= FREE_BYTES["broken"] else "broken"
    words = f"{free / 2**30:.1f} GiB are free for {folder}."
    yield Diagnosis("disk", state, words, "" if state == "ok" else "Free some space: without any, nothing is decided.")
    begun = time.monotonic()
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix="doctor-") as file:
            file.write(b"hitlchat")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        words = f"{folder} cannot be written: {error.strerror}."
        yield Diagnosis("disk write", "broken", words, "Give the user who runs hitlchat the right to write there.")
        return
    took = time.monotonic() - begun
    words = f"A file was on the disk in {took * 1000:.0f} ms."
    is_slow = took > SLOW_WRITE_SECONDS
    advice = "Each decision waits for that: use a faster disk for the database." if is_slow else ""
    yield Diagnosis("disk write", "weak" if is_slow else "ok", words, advice)


def data() -> Iterator[Diagnosis]:
    """Yield whether the database is there, of this version, and has connections enough."""
    try:
        fault, sentence = health.migration_fault()
    except DatabaseError as error:
        yield Diagnosis("database", "broken", f"It cannot be reached: {error}", "Start it, or correct DATABASE_URL.")
        return
    what = f"{connection.display_name} {'.'.join(map(str, connection.get_database_version()))}"
    if fault:
        yield Diagnosis("database", "broken", f"{what} is {fault}.", sentence)
    else:
        yield Diagnosis("database", "ok", f"{what} can be reached, and is migrated.")
    if connection.vendor == "postgresql":
        yield from _pool()


def redis() -> Iterator[Diagnosis]:
    if not settings.REDIS_URL:
        yield Diagnosis("redis", "ok", "Not used: all is in one process.")
        return
    from redis import Redis, RedisError  # noqa: PLC0415 - only where there is one

    limit = {"socket_timeout": NETWORK_SECONDS, "socket_connect_timeout": NETWORK_SECONDS}
    try:
        with Redis.from_url(settings.REDIS_URL, **limit) as there:
            there.ping()
    except RedisError as error:
        yield Diagnosis("redis", "broken", f"It cannot be reached: {error}", "Start it, or correct REDIS_URL.")
    else:
        yield Diagnosis("redis", "ok", "It answers.")


def mail_server() -> Iterator[Diagnosis]:
    """Yield whether the mail server takes this installation's name and password; nothing is sent."""
    if not settings.EMAIL_HOST:
        yield Diagnosis("mail", "ok", "Not used: EMAIL_HOST is not set, so there are no notices by e-mail.")
        return
    place = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    there = mail.get_connection(timeout=NETWORK_SECONDS)
    try:
        there.open()
    # smtplib's errors are of this kind, too.
    except OSError as error:
        advice = "Compare EMAIL_HOST, EMAIL_PORT, EMAIL_USE_TLS, EMAIL_USE_SSL, EMAIL_HOST_USER with your provider's."
        yield Diagnosis("mail", "broken", f"{place} did not accept us: {error}", advice)
        return
    there.close()
    if settings.EMAIL_HOST_PASSWORD and not (settings.EMAIL_USE_TLS or settings.EMAIL_USE_SSL):
        words = f"{place} accepted us, and the password went there without encryption."
        yield Diagnosis("mail", "weak", words, "Set EMAIL_USE_TLS=1 or EMAIL_USE_SSL=1.")
    else:
        yield Diagnosis("mail", "ok", f"{place} accepted us.")


def record() -> Iterator[Diagnosis]:
    """Yield whether the record is whole, as far as a few seconds go."""
    own, now = keys.own_fingerprint(), keys.current()
    if now is not None and own != now.pk:
        words = f"The record is sealed with the key {now.pk[:16]}…, and this installation has {(own or 'none')[:16]}."
        yield Diagnosis("record", "broken", words, "Give it the same key (HITL_RECORD_KEY): see docs/record.md.")
    age = sealing.unsealed_seconds()
    is_overdue = sealing.is_overdue(age)
    if is_overdue:
        advice = "Start a server, which seals them, or run “manage.py audit seal”."
        yield Diagnosis("record", "weak", f"Events are not sealed; the oldest is {age:.0f} s old.", advice)
    found, begun, part = Report(), time.monotonic(), ""
    for done, every in verifying.steps(found):
        if time.monotonic() - begun > RECORD_SECONDS:
            part = f" ({done} of {every} pieces, as far as {RECORD_SECONDS:g} s go)"
            break
    wrong = [each for each in found.findings if each.kind != "not sealed"]
    for each in wrong[:5]:
        yield Diagnosis("record", "broken", each.words, "Run “manage.py audit verify”, which names everything.")
    if not wrong:
        advice = "Run “manage.py audit verify” for all of it." if part else ""
        yield Diagnosis("record", "ok", f"{found.batches} batches and {found.calls} calls are whole{part}.", advice)


def key_files() -> Iterator[Diagnosis]:
    """Yield the files with keys or data that another user of this machine can read."""
    folder, given = Path(settings.DATA_DIR), settings.HITL_RECORD_KEY
    files = [folder, settings.CONFIGURATION.file, *folder.glob("*key*"), *folder.glob("*.sqlite3*")]
    if given and len(given) < 4096 and Path(given).is_file():
        files.append(Path(given))
    there = [path for path in files if path.is_file() or path.is_dir()]
    found = []
    user, owner = os.geteuid(), folder.stat().st_uid
    for path in there:
        # A file elsewhere may be for a group that this user belongs to.
        wide = 0o077 if folder in (path, *path.parents) else 0o007
        facts = path.stat()
        if facts.st_mode & wide:
            words = f"Others can reach {path} (mode {stat.S_IMODE(facts.st_mode):04o})."
            found.append(Diagnosis("key files", "weak", words, f"chmod {'go' if wide > 0o007 else 'o'}= {path}"))
        # A file elsewhere may also be root's, for a group.
        if owner == user and facts.st_uid != user and (wide > 0o007 or facts.st_uid):
            words = f"{path} belongs to another user ({facts.st_uid})."
            found.append(Diagnosis("key files", "weak", words, f"chown {user} {path}"))
    if owner != user:
        words = f"{folder} belongs to another user ({owner}) than the one who runs this ({user})."
        advice = "Run every command as the user that the server runs as: it may be unable to read what others write."
        found.append(Diagnosis("key files", "weak", words, advice))
    yield from found or [Diagnosis("key files", "ok", f"{len(there)} files and folders are for this user alone.")]


def versions() -> Iterator[Diagnosis]:
    """Yield what runs here, and the packages that are not those of the lock file."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("django", "pydantic-monty", "mcp", "cryptography"))
    words = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {libraries}."
    others = [*_not_locked()]
    if others:
        words += f" Not as in {LOCK.name}: {', '.join(others[:5])}{'…' if len(others) > 5 else ''}."
    yield Diagnosis("versions", "weak" if others else "ok", words, "Run “make setup”." if others else "")


def system_checks() -> Iterator[Diagnosis]:
    for each in run_checks(include_deployment_checks=True):
        if not each.is_silenced():
            state: State = "broken" if each.is_serious() else "weak"
            yield Diagnosis(
                str(each.id), state, " ".join(str(each.msg).split()), ADVICE.get(str(each.id), str(each.hint or ""))
            )
    yield Diagnosis("check --deploy", "ok", "All of Django's checks ran.")


CHECKS: Final[Checks] = {
    "settings": weak_settings,
    "configuration": one_configuration,
    "sandbox": walls,
    "clock": clock,
    "disk": disk,
    "database": data,
    "redis": redis,
    "mail": mail_server,
    "record": record,
    "key files": key_files,
    "versions": versions,
    "check --deploy": system_checks,
}


def _all_of(check: Callable[[], Iterator[Diagnosis]]) -> list[Diagnosis]:
    return [*check()]


def _weaknesses() -> Iterator[tuple[str, bool, str, str]]:
    """Yield a setting, whether it weakens the gate, how, and what to do."""
    yield from _weak_gate()
    hosts = {*settings.ALLOWED_HOSTS}
    is_open = not hosts <= LOOPBACK
    words = "Error pages show code and settings."
    yield "DEBUG", settings.DEBUG, words, "Unset DEBUG."
    words = "The server answers by any name, so that links can be forged."
    yield "ALLOWED_HOSTS", "*" in hosts, words, "List the names by which people reach it."
    words = f"It listens on {settings.HOST} without HTTPS: passwords can be read on the way."
    is_plain = f"[{settings.HOST}]" not in LOOPBACK and settings.HOST not in LOOPBACK and not settings.HTTPS
    yield "HOST", is_plain, words, "Put a proxy with HTTPS in front, set HTTPS=1, and listen on 127.0.0.1."
    words = "Clients are believed which address they have, although HTTPS is 0 and there seems to be no proxy."
    is_believed = settings.TRUSTED_PROXIES > 0
    yield "TRUSTED_PROXIES", is_believed and not settings.HTTPS, words, "Set it to the number of your proxies."
    words = "Everyone seems to come from the proxy: one person's wrong passwords pause signing in for all."
    yield "TRUSTED_PROXIES", settings.HTTPS and not is_believed, words, "Set it to the number of your proxies."
    words = "Administrators can start programs on this machine, which may do all that the server may."
    yield "MCP_ALLOW_STDIO", settings.MCP_ALLOW_STDIO, words, "Unset it unless you need such upstream servers."
    for name in ("MCP_ALLOW_PRIVATE", "MODEL_ALLOW_PRIVATE", "NOTICE_ALLOW_PRIVATE"):
        words = "Administrators can have this server connect to addresses of the private network."
        yield name, is_open and getattr(settings, name), words, f"Set {name}=0 unless you need that."


def _weak_gate() -> Iterator[tuple[str, bool, str, str]]:
    words = "Approvals are switched off: every tool runs without asking."
    yield "HITL_ENABLED", not settings.HITL_ENABLED, words, "Unset HITL_ENABLED."
    risk = settings.HITL_ELICITATION_MAX_RISK
    words = f"Up to L{risk}, the word of a trusted MCP client is enough for a yes."
    yield "HITL_ELICITATION_MAX_RISK", risk > 1, words, "Unset it, unless each of those clients is used by one person."
    minutes = settings.HITL_FRESH_SIGN_IN_MINUTES
    words = f"A sign-in counts as recent for {minutes} minutes when an L5 call is approved."
    yield "HITL_FRESH_SIGN_IN_MINUTES", minutes > 60, words, "Set it to 60 or less."
    words = "Nobody is held up who approves faster than the cards can be read."
    yield "HITL_QUICK_YESES", settings.HITL_QUICK_YESES == 0, words, "Unset HITL_QUICK_YESES."
    days = settings.HITL_RECORD_DAYS
    words = f"The record's events are dropped after {days} days."
    yield "HITL_RECORD_DAYS", 0 < days < KEPT_DAYS, words, f"Keep them for {KEPT_DAYS} days, or for ever."
    words = "Tools may refer to every variable of the environment, also to passwords of other programs."
    yield "TOOLS_ENV", "*" in settings.TOOLS_ENV, words, "Name patterns, such as SHOP_*."


def _pool() -> Iterator[Diagnosis]:
    """Yield whether PostgreSQL takes as many connections as the pools of all servers may open."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
        )
        (most,) = cursor.fetchone()
    servers = max(1, running.others().count())
    needed = servers * settings.DATABASE_POOL_SIZE
    words = f"Servers may open {needed} of {most} connections ({servers} with DATABASE_POOL_SIZE each)."
    # One for the next command.
    is_enough = needed < most
    advice = "" if is_enough else "Raise max_connections, or lower DATABASE_POOL_SIZE."
    yield Diagnosis("connections", "ok" if is_enough else "broken", words, advice)


def _not_locked() -> Iterator[str]:
    """Yield each package of the lock file that is here in another version, or not at all."""
    if not LOCK.exists():
        return
    for name, expected, only_for in re.findall(r"(?m)^([\w.-]+)==([^\s;]+)( ;)?", LOCK.read_text(encoding="utf-8")):
        try:
            here = version(name)
        except PackageNotFoundError:
            here = "missing"
        if here != expected and not (only_for and here == "missing"):
            yield f"{name} {here}"


def _at_least(value: float, limits: dict[str, float]) -> State:
    return "broken" if value >= limits["broken"] else "weak" if value >= limits["weak"] else "ok"


def _mask() -> Mask:
    """Return what hides the secrets of the settings, wherever an error tells them."""
    values = [getattr(settings, name) for name in SECRETS] + settings.SECRET_KEY_FALLBACKS
    values += [unquote(urlsplit(url).password or "") for url in (settings.DATABASE_URL, settings.REDIS_URL)]
    values += [unquote(each.partition("=")[2]) for each in settings.OTEL_EXPORTER_OTLP_HEADERS.split(",")]
    # The record's key may be in a file, whose name is no secret.
    return Mask(value for value in values if value and not (len(value) < 4096 and Path(value).is_file()))
