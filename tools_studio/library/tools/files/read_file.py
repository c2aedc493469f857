from typing import Annotated, Any

from hitl import files


def run(
    path: str,
    first_line: Annotated[int, {"minimum": 1}] = 1,
    lines: Annotated[int, {"minimum": 1, "maximum": 2000}] = 400,
) -> dict[str, Any]:
    """Read a text file of the workspace, or some of its lines.

    Args:
        path: the file, such as notes/today.txt
        first_line: the line to begin with
        lines: how many lines at most
    """
    everything = files.read(path).splitlines()
    chosen = everything[first_line - 1 : first_line - 1 + lines]
    last = first_line - 1 + len(chosen)
    return {"path": path, "text": "\n".join(chosen), "lines": len(everything), "more": last < len(everything)}
