from typing import Annotated, Any

from hitl import files

MOST_FILES = 80


def every_file(folder: str, left: int) -> list[str]:
    """The files below a folder, those of its own first."""
    names = files.list(folder)
    found = [name for name in names if not name.endswith("/")]
    for name in names:
        if name.endswith("/") and len(found) < left:
            found += every_file(name.rstrip("/"), left - len(found))
    return found[:left]


def matches(path: str, words: str) -> list[dict[str, Any]]:
    try:
        lines = files.read(path).splitlines()
    except ValueError:  # too large, or not text
        return []
    return [
        {"path": path, "line": number, "text": line.strip()[:200]}
        for number, line in enumerate(lines, 1)
        if words in line.lower()
    ]


def run(words: str, folder: str = "", limit: Annotated[int, {"minimum": 1, "maximum": 200}] = 50) -> dict[str, Any]:
    """Search the text files of the workspace for words, whatever their case, and show the lines.

    Args:
        words: what to look for
        folder: only in this folder; empty means everywhere
        limit: how many lines at most
    """
    wanted = words.strip().lower()
    if not wanted:
        raise ValueError("words: expected something to look for")
    paths = every_file(folder, MOST_FILES)
    found = [match for path in paths for match in matches(path, wanted)]
    return {"count": len(found), "files": len(paths), "lines": found[:limit], "all_files": len(paths) < MOST_FILES}
