from typing import Any

from hitl import files


def preview(path: str, text: str, replace: bool = False) -> dict[str, str]:
    info = files.info(path)
    lines = f"{len(text.encode()):,} bytes, {len(text.splitlines())} lines"
    if info is None:
        return {"File": path, "Now": "does not exist", "Then": lines}
    then = lines if replace else "not changed: it exists, and replace is off"
    return {"File": path, "Now": f"{info['size']:,} bytes, changed {info['modified']}", "Then": then}


def run(path: str, text: str, replace: bool = False) -> dict[str, Any]:
    """Write a text file in the workspace; one that exists is replaced only if that is asked for.

    Args:
        path: the file, such as notes/today.txt; folders are made as needed
        text: the whole text of the file
        replace: whether a file that exists may be replaced
    """
    before = files.info(path)
    if before is not None and not replace:
        raise ValueError(f"{path} exists already; set replace to write over it")
    files.write(path, text)
    return {"path": path, "bytes": len(text.encode()), "replaced": before is not None}
