from typing import Any

from hitl import files


def preview(path: str, text: str) -> dict[str, str]:
    info = files.info(path)
    now = f"{info['size']:,} bytes" if info else "does not exist"
    count = len(text.splitlines())
    return {"File": path, "Now": now, "Then": f"{count} more {'line' if count == 1 else 'lines'} at the end"}


def run(path: str, text: str) -> dict[str, Any]:
    """Add a text as new lines at the end of a file in the workspace; a file that is not there is made.

    Args:
        path: the file, such as notes/log.txt
        text: the lines to add
    """
    files.append(path, text if text.endswith("\n") else f"{text}\n")
    info = files.info(path) or {}
    return {"path": path, "bytes": info.get("size")}
