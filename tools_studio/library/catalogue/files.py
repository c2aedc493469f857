"""Text files in one folder of the server, called workspace."""

from typing import Any

from tools_studio.library.catalogue.shipped import ShippedTool

_SHARED: dict[str, Any] = {"group": "files", "category": "Files"}
_READ = {"files": {"mode": "read", "folder": "workspace"}}
_WRITE = {"files": {"mode": "write", "folder": "workspace"}}

FILES = (
    ShippedTool(
        name="list_files",
        title="List files",
        prompt_template="List the files in the workspace",
        example={},
        capabilities=_READ,
        tags=("workspace",),
        **_SHARED,
    ),
    ShippedTool(
        name="read_file",
        title="Read file",
        prompt_template="Read a file (path: {args.path})",
        example={"path": "notes/today.txt"},
        capabilities=_READ,
        tags=("workspace",),
        **_SHARED,
    ),
    ShippedTool(
        name="search_files",
        title="Search files",
        prompt_template="Search files (words: {args.words})",
        example={"words": "tea"},
        capabilities=_READ,
        tags=("workspace", "search"),
        **_SHARED,
    ),
    ShippedTool(
        name="write_file",
        title="Write file",
        prompt_template="Write a file (path: {args.path}, text: {args.text})",
        example={"path": "notes/today.txt", "text": "Buy tea."},
        capabilities=_WRITE,
        tags=("workspace",),
        **_SHARED,
    ),
    ShippedTool(
        name="append_to_file",
        title="Append to file",
        prompt_template="Append to a file (path: {args.path}, text: {args.text})",
        example={"path": "notes/today.txt", "text": "Water the plants."},
        capabilities=_WRITE,
        tags=("workspace",),
        **_SHARED,
    ),
    ShippedTool(
        name="delete_file",
        title="Delete file",
        prompt_template="Delete a file for good (path: {args.path})",
        example={"path": "notes/today.txt"},
        capabilities={**_WRITE, "destructive": True},
        tags=("workspace",),
        **_SHARED,
    ),
)
