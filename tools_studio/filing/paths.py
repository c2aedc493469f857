"""How a tool names a file: a relative path such as notes/today.txt."""

LONGEST_NAME = 255
MOST_LEVELS = 16
# What a write begins under; it gets its real name when it is whole.
UNFINISHED = ".unfinished-"

Parts = tuple[str, ...]


def parts_of(path: object) -> Parts:
    """The names on the way to a file or folder, at least one. TypeError or ValueError: that is no path."""
    if not isinstance(path, str):
        raise TypeError("a path is a text such as notes/today.txt")
    if not path:
        raise ValueError("the path is empty: expected one such as notes/today.txt")
    if path.startswith("/"):
        raise ValueError(f"{_short(path)} is an absolute path: expected one such as notes/today.txt")
    parts = tuple(path.removesuffix("/").split("/"))
    if len(parts) > MOST_LEVELS:
        raise ValueError(f"{_short(path)} has {len(parts)} levels; at most {MOST_LEVELS} are possible")
    for name in parts:
        if said := _problem(name):
            raise ValueError(f"{_short(path)}: {said}")
    return parts


def is_name(name: str) -> bool:
    """Whether a tool can name this file, and may."""
    return _problem(name) is None


def _problem(name: str) -> str | None:
    if name in ("", "."):
        return "a name between two slashes is missing"
    if name == "..":
        return "a path cannot go up with .."
    if "\\" in name:
        return "the names in a path are parted by /, and have no \\ in them"
    if not name.isprintable():
        return "a name must not have control characters or invisible ones"
    if len(name.encode()) > LONGEST_NAME:
        return f"a name may have at most {LONGEST_NAME} bytes"
    if name.startswith(UNFINISHED):
        return f"names that begin with {UNFINISHED} are not for tools"
    return None


def _short(path: str) -> str:
    return repr(path if len(path) <= 80 else f"{path[:80]}…")
