from typing import Any

from hitl import files

MOST = 100


def run(folder: str = "") -> list[dict[str, Any]]:
    """List what is in the workspace, or in a folder of it, with sizes.

    Args:
        folder: a folder such as notes/2026; empty means the whole top
    """
    names = files.list(folder)
    shown = []
    for name in names[:MOST]:
        info = files.info(name) or {}
        is_folder = bool(info.get("is_folder")) or name.endswith("/")
        shown.append({"path": name, "kind": "folder" if is_folder else "file", "bytes": info.get("size")})
    if len(names) > MOST:
        shown.append({"path": f"and {len(names) - MOST} more", "kind": "note", "bytes": None})
    return shown
