"""What the data folder holds besides the database that an installation needs: its keys, mark, and files."""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

from django.conf import settings

FOLDER: Final = "data"
SECRET_KEY: Final = "secret_key"  # noqa: S105 - the name of its file
ATTACHMENTS: Final = "attachments"
KEYS: Final = "record_key"
# What it has of each name, or names that begin with KEYS.
KEPT: Final = (SECRET_KEY, "record_mark", ATTACHMENTS, "files")


def is_kept(name: str) -> bool:
    return name in KEPT or name.startswith(KEYS)


def there() -> list[Path]:
    """List what is kept in the data folder, save for what each program makes there as it starts."""
    return [path for path in members() if path.name != SECRET_KEY and not (path.is_dir() and not any(path.iterdir()))]


def link(to: Path) -> int:
    """Have `to` hold all of it as it is now, and return how many files were left out, being no regular ones.

    All of them are replaced, never written to: so a hard link stays as it is. Those that `to` has stay, too.
    """
    folder, left_out = Path(settings.DATA_DIR), 0
    for path in chain.from_iterable(map(_files, members())):
        # Else it is gone meanwhile.
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(path.lstat().st_mode):
                left_out += 1
                continue
            copy = to / path.relative_to(folder)
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if copy.exists():
                continue
            try:
                copy.hardlink_to(path)
            except FileNotFoundError:
                raise
            except OSError:
                # Not every file system has links.
                shutil.copyfile(path, copy)
    return left_out


def members() -> list[Path]:
    """List what is kept in the data folder."""
    return [path for path in sorted(Path(settings.DATA_DIR).iterdir()) if is_kept(path.name)]


def remove(paths: Iterable[Path]) -> None:
    """Remove what a restore that ended early has put there."""
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def place(from_folder: Path) -> None:
    """Move it into the data folder, in which it is not."""
    for path in sorted(from_folder.iterdir()):
        path.replace(Path(settings.DATA_DIR) / path.name)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
    for folder, below, names in os.walk(path):
        links = [name for name in below if (Path(folder) / name).is_symlink()]
        yield from (Path(folder) / name for name in sorted(names + links))
