"""The passphrase of a backup: from a file or a terminal, never from an argument, which all users see."""

import getpass
import sys
from pathlib import Path
from typing import Final

from hitlchat.backup.faults import BadPassphrase

SHORTEST: Final = 12


def read(file: Path | None, *, is_new: bool) -> str | None:
    """Return the first line of `file`, or what a person types, twice if it `is_new`; None without file and terminal.

    Raises: BadPassphrase; OSError
    """
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise BadPassphrase(f"{file} is no text. A passphrase is the first line of a text.") from error
        found = lines[0] if lines else ""
    elif sys.stdin.isatty():
        found = getpass.getpass("Passphrase of the backup: ")
        if is_new and getpass.getpass("Once more: ") != found:
            raise BadPassphrase("The two passphrases are not the same.")
    else:
        return None
    if len(found) < SHORTEST and is_new:
        raise BadPassphrase(f"The passphrase has {len(found)} characters; use at least {SHORTEST}.")
    return found
