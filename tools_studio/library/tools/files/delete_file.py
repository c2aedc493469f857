from typing import Any

from hitl import files


def preview(path: str) -> dict[str, str]:
    info = files.info(path)
    if info is None:
        raise ValueError(f"there is no {path}")
    if info.get("is_folder"):
        return {"Folder": path, "Holds": f"{len(files.list(path))} entries", "Then": "gone for good if it is empty"}
    start = files.read(path)[:200]
    return {"File": path, "Now": f"{info['size']:,} bytes, changed {info['modified']}", "Begins": start, "Then": "gone"}


def run(path: str) -> dict[str, Any]:
    """Delete a file, or an empty folder, of the workspace for good.

    Args:
        path: the file, such as notes/old.txt
    """
    info = files.info(path)
    if info is None:
        raise ValueError(f"there is no {path}")
    if not files.delete(path):
        raise ValueError(f"{path} was not deleted")
    return {"deleted": path, "bytes": info.get("size")}
