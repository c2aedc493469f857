"""Restoring a backup into an empty installation: checked whole before anything is loaded, and put in place last.

What a backup has approved or allowed may have run after it was made, and its grants may have been revoked: so these are
withdrawn and revoked, and a restored installation runs nothing on a yes from before. What was executing becomes unknown
as the server starts, as after a crash.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_noop
from django.utils.version import get_version_tuple

from hitlchat import health
from hitlchat.backup import Damaged, NotEmpty, NotWhole, Unfit, archive, databases, keeping
from hitlchat.backup.archive import BROKEN, Manifest
from hitlchat.backup.making import PURPOSE, sync, version
from hitlchat.base import scratch
from hitlchat.gate.actor import CONSOLE
from hitlchat.gate.grants import giving
from hitlchat.gate.models import Decision, ToolCall, Verdict
from hitlchat.gate.status import Status
from hitlchat.gate.stopping import READY
from hitlchat.gate.transition import note, withdraw
from hitlchat.models import ServerProcess
from hitlchat.record import keys, sealing
from hitlchat.record.report import Finding
from hitlchat.record.verifying import verify
from hitlchat.secrets.sealing import fingerprints

RESTORED: Final = "settings.restored"
MAY_BE_REVOKED: Final = gettext_noop(
    "The installation was restored from a backup, after which it may have been revoked."
)
MAY_HAVE_RUN: Final = gettext_noop(
    "the installation was restored from a backup, and the call may have run after that was made"
)
# The server seals what is left as it starts.
NOT_SEALED: Final = "not sealed"
KIND: Final = "restore"
NAMED: Final = f"hitlchat-{KIND}-locked-*"


@dataclass(frozen=True)
class Restored:
    """What was restored. How many calls were `withdrawn` and grants `revoked`; `warnings`: what to do before the server
    starts.
    """

    manifest: Manifest
    findings: list[Finding]
    withdrawn: int
    revoked: int
    warnings: list[str]


def check(file: Path, passphrase: str | None) -> Manifest:
    """Read a whole backup and write nothing. Raises: Damaged, BadPassphrase, Unfit."""
    return archive.read(file, passphrase, _require_fit, lambda _: None)


def restore(file: Path, passphrase: str | None, *, accept_findings: bool = False) -> Restored:
    """Restore into the configured database and data folder, which are empty, or change nothing.

    Raises: NotEmpty, Damaged, BadPassphrase, Unfit, NotWhole; BadKey, BadMark; OSError, DatabaseError
    """
    _require_empty()
    folder = scratch.make(KIND, settings.DATA_DIR)
    with ExitStack() as last:
        last.callback(folder.remove)
        last.callback(databases.clear)
        undo = last.enter_context(ExitStack())
        data = folder.path / keeping.FOLDER
        data.mkdir(mode=0o700)
        manifest = archive.read(file, passphrase, _require_fit, lambda name: _sink(folder.path, name))
        with databases.loaded(folder.path, manifest):
            with _settings_of(data):
                found = databases.counts(manifest.counts)
                for table, count in manifest.counts.items():
                    if found[table] != count:
                        words = f"The table {table!r} has {found[table]} rows, and {count} in the backup."
                        raise NotWhole(f"{words} Nothing was restored.")
                restored = _settle(manifest, accept_findings=accept_findings)
            undo.callback(lambda: keeping.remove(keeping.members()))
            keeping.place(data)
        undo.pop_all()
    sync(settings.DATA_DIR)
    return restored


def _require_empty() -> None:
    if not databases.is_empty():
        raise NotEmpty("The database is not empty. A backup is restored into a new installation only.")
    left = [path for path in scratch.sweep(settings.DATA_DIR) if path.match(NAMED)]
    if any(Path(settings.DATA_DIR).glob(NAMED)):
        raise NotEmpty("Another restore into this data folder is running.")
    databases.clear()
    if left:
        # Of a restore that was killed: the database, which comes last, is not there.
        keeping.remove(keeping.there())
    if there := keeping.there():
        raise NotEmpty(f"{there[0]} exists. A backup is restored into an empty data folder only.")


def _require_fit(manifest: Manifest) -> None:
    migrations = {*manifest.migrations}
    if manifest.database != connection.vendor:
        names = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
        advice = "Set DATABASE_URL to an empty one." if manifest.database == "postgresql" else "Unset DATABASE_URL."
        raise Unfit(
            f"The backup is of a database on {names[manifest.database]}; this one is on "
            f"{names[connection.vendor]}. {advice}"
        )
    if newer := health.unknown(migrations):
        raise Unfit(
            f"The backup is from a newer version of hitlchat, {manifest.version} ({'.'.join(newer[0])} is unknown "
            "here). Restore it with that version."
        )
    if get_version_tuple(manifest.version) > get_version_tuple(version()):
        raise Unfit(
            f"The backup is from hitlchat {manifest.version}, which is newer than this one ({version()}). Restore it "
            "with that version."
        )
    if sentence := health.unfinished(migrations):
        raise Unfit(sentence)


def _sink(folder: Path, name: str) -> BinaryIO:
    kind, _, rest = name.partition("/")
    if kind == databases.FOLDER:
        path = databases.place(folder, name)
    elif keeping.is_kept(rest.partition("/")[0]):
        path = folder / name
    else:
        raise Damaged(BROKEN)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb")


@contextmanager
def _settings_of(data: Path) -> Iterator[None]:
    """Have the settings be those of the unpacked data folder within; a key that is given in the environment stays."""
    before = {name: getattr(settings, name) for name in ("DATA_DIR", "ATTACHMENTS_DIR", "TOOL_FILES_DIR", "SECRET_KEY")}
    own, unpacked = (Path(folder) / keeping.SECRET_KEY for folder in (settings.DATA_DIR, data))
    is_own = own.exists() and own.read_text(encoding="ascii").strip() == settings.SECRET_KEY
    settings.DATA_DIR = data
    settings.ATTACHMENTS_DIR, settings.TOOL_FILES_DIR = data / "attachments", data / "files"
    if is_own and unpacked.exists():
        settings.SECRET_KEY = unpacked.read_text(encoding="ascii").strip()
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)


def _settle(manifest: Manifest, *, accept_findings: bool) -> Restored:
    """Migrate what is older, verify the record, and put on record that it was restored."""
    if health.migration_fault()[0]:
        call_command("migrate", verbosity=0, interactive=False)
    findings = [each for each in verify().findings if each.kind != NOT_SEALED]
    if findings and not accept_findings:
        raise NotWhole(
            f"The record in the backup is not whole ({len(findings)} findings). {findings[0].words} Nothing was "
            "restored; --with-findings restores it as it is."
        )
    # A yes of one person, where several must approve, may have been taken back since.
    yeses = Decision.objects.filter(approval__call=OuterRef("pk"), round=OuterRef("round"), verdict=Verdict.APPROVE)
    calls = ToolCall.objects.filter(Q(status__in=READY) | Q(Exists(yeses), status=Status.WAITING))
    withdrawn = sum(withdraw(call, MAY_HAVE_RUN, actor=CONSOLE) for call in list(calls))
    revoked = giving.revoke_all(CONSOLE, MAY_BE_REVOKED)
    # Those that ran on the database of the backup run on none that is restored.
    ServerProcess.objects.all().delete()
    data = {"made_at": manifest.made_at.isoformat(), "version": manifest.version}
    note(None, RESTORED, actor=CONSOLE, data={**data, "withdrawn": withdrawn, "revoked": revoked})
    return Restored(manifest, findings, withdrawn, revoked, [*_warnings(manifest)])


def _warnings(manifest: Manifest) -> Iterator[str]:
    if manifest.secret_key not in fingerprints("", PURPOSE).values():
        yield (
            "SECRET_KEY is another one than when the backup was made: set it as it was, or stored secrets cannot be "
            "read."
        )
    key = keys.current()
    if key is not None and key.pk != keys.own_fingerprint():
        yield (
            f"The record is sealed with the key {key.pk[:16]}…, which is not in the backup: set HITL_RECORD_KEY as it "
            "was, or nothing is sealed."
        )
    elif key is not None:
        sealing.seal_all()
