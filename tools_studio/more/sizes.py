"""How much the folders hold in which tools keep their files."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from hitlchat.sandbox.limits import KIB, in_words

MOST_COUNTED = 20_000
MOST_FOLDERS = 200


@dataclass(frozen=True)
class FolderSize:
    """`whole` is False where there were too many files to count them all."""

    name: str
    files: int
    size: int
    whole: bool = True

    @property
    def words(self) -> str:
        rounded = self.size if self.size < KIB else self.size - self.size % KIB
        many = f"{'' if self.whole else 'over '}{self.files:,} {'file' if self.files == 1 else 'files'}"
        return f"{many}, {in_words(rounded)}"


def folders(base: Path) -> list[FolderSize]:
    """One for each folder below `base`; none if it does not exist yet."""
    try:
        with os.scandir(base) as entries:
            names = sorted(entry.name for entry in islice(entries, MOST_FOLDERS) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    return [_size(base / name) for name in names]


def _size(folder: Path) -> FolderSize:
    sizes = list(islice(_files(folder), MOST_COUNTED + 1))
    counted = sizes[:MOST_COUNTED]
    return FolderSize(folder.name, len(counted), sum(counted), len(sizes) <= MOST_COUNTED)


def _files(folder: Path) -> Iterator[int]:
    """The size of each file below; what goes away meanwhile is left out, and no link is followed."""
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118
            except FileNotFoundError:
                continue
