"""The host functions behind `hitl.files`."""

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings

from hitlchat.sandbox import HostFunction
from tools_studio.capabilities import Files
from tools_studio.filing.folder import Folder
from tools_studio.filing.paths import Parts, parts_of
from tools_studio.filing.walking import Outside

logger = logging.getLogger(__name__)

T = TypeVar("T")


def grants(granted: Files | None) -> dict[str, HostFunction]:
    """What of it the mode allows, by name; paths are relative to the folder. The disk is waited for in a thread.

    They raise ValueError, PermissionError for links that lead outside, and TimeoutError.
    """
    if granted is None:
        return {}
    kept = Folder(Path(settings.TOOL_FILES_DIR), granted.folder)
    return _reading(kept) | (_writing(kept) if granted.mode == "write" else {})


def _reading(kept: Folder) -> dict[str, HostFunction]:
    async def read(path: str) -> str:
        return await _done("read", path, kept.read, parts_of(path))

    async def list_(folder: str = "") -> list[str]:
        return await _done("list", folder, kept.listing, parts_of(folder) if folder else ())

    async def info(path: str) -> dict[str, Any] | None:
        return await _done("info", path, kept.info, parts_of(path))

    return {"files.read": read, "files.list": list_, "files.info": info}


def _writing(kept: Folder) -> dict[str, HostFunction]:
    async def write(path: str, text: str) -> None:
        await _done("write", path, kept.write, parts_of(path), _text(text))

    async def append(path: str, text: str) -> None:
        await _done("append", path, kept.append, parts_of(path), _text(text))

    async def delete(path: str) -> bool:
        return await _done("delete", path, kept.delete, parts_of(path))

    return {"files.write": write, "files.append": append, "files.delete": delete}


async def _done(name: str, path: str, work: Callable[..., T], *args: Parts | str) -> T:
    """What `work` returns; what it raises in words for the tool."""
    try:
        return await asyncio.to_thread(work, *args)
    except Outside as error:
        raise PermissionError(f"files.{name}: {path!r}: {error}") from None
    except TimeoutError as error:
        raise TimeoutError(f"files.{name}: {error}") from None
    except ValueError as error:
        raise ValueError(f"files.{name}: {path!r}: {error}") from None
    except FileNotFoundError:
        raise ValueError(f"files.{name}: there is no {path!r}") from None
    except NotADirectoryError:
        raise ValueError(f"files.{name}: {path!r}: a part of it is no folder, or a link") from None
    except OSError as error:
        logger.warning("files.%s failed: %s", name, error.strerror)
        if error.errno == errno.ELOOP:
            raise PermissionError(f"files.{name}: {path!r}: it is a link, and that is not followed") from None
        raise ValueError(f"files.{name}: {path!r}: {os.strerror(error.errno or errno.EIO)}") from None


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError("files: the content must be a text")
    return text
