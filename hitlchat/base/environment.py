"""Reading settings from environment variables; a value that does not parse stops the start and names the variable."""

import json
import logging
import os
import re
import secrets
import stat
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

YES = {"1", "true", "yes", "on"}
NO = {"0", "false", "no", "off"}
# The rights of everyone but the user who runs this.
OTHERS = 0o077
# Every variable that was read here, with its default: hitlchat's own, some secret, which no tool may refer to.
ASKED: dict[str, str] = {}
# Where the variables that came from the file of settings are in it, for messages.
PLACES: dict[str, str] = {}

Default = TypeVar("Default", float, None)

logger = logging.getLogger(__name__)


def text(name: str, default: str = "") -> str:
    ASKED[name] = default
    return os.environ.get(name, default).strip()


def flag(name: str, *, default: bool) -> bool:
    value = text(name, "1" if default else "0").lower()
    if not value:
        return default
    if value not in YES | NO:
        raise ImproperlyConfigured(f"{_placed(name)} is {value!r}; expected 1 or 0")
    return value in YES


def integer(name: str, default: int, *, least: int = 1, most: int = 10**9) -> int:
    value = text(name, str(default))
    if not value:
        return default
    if not value.isascii() or not value.isdigit() or not least <= int(value) <= most:
        raise ImproperlyConfigured(f"{_placed(name)} is {value!r}; expected a whole number from {least} to {most}")
    return int(value)


def number(name: str, default: Default, *, least: float, most: float) -> float | Default:
    """Return a number that may have a fraction, as `integer` does."""
    value = text(name, "" if default is None else f"{default:g}")
    if not value:
        return default
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value) or not least <= float(value) <= most:
        raise ImproperlyConfigured(f"{_placed(name)} is {value!r}; expected a number from {least:g} to {most:g}")
    return float(value)


def entries(name: str) -> list[Any]:
    """Return a list as JSON; its readers check the entries."""
    try:
        found = json.loads(text(name) or "[]", object_pairs_hook=_unique)
    except ValueError as error:
        raise ImproperlyConfigured(f"{_placed(name)} is not valid JSON: {error}") from error
    if not isinstance(found, list):
        example = '[{"policy": "always_ask", "tools": ["*"]}]'
        raise ImproperlyConfigured(f"{_placed(name)} must be a JSON list, such as {example}")
    return found


def address(name: str) -> str:
    """Return the address of a server without a slash at its end; empty if there is none."""
    value = text(name).rstrip("/")
    if value and not re.fullmatch(r"https?://[^\s/?#@\\]+(/[^\s?#\\]*)?", value):
        raise ImproperlyConfigured(
            f"{_placed(name)} is {value!r}; expected an address such as https://hitl.example.com"
        )
    return value


def words(name: str, default: list[str]) -> list[str]:
    value = text(name, ",".join(default))
    return [word.strip() for word in value.split(",") if word.strip()] if value else default


def apps(name: str) -> list[str]:
    """Return the names of Django apps, each of which Python finds."""
    found = words(name, [])
    for app in found:
        if not all(map(str.isidentifier, app.split("."))) or find_spec(app.partition(".")[0]) is None:
            raise ImproperlyConfigured(
                f"{_placed(name)} names {app!r}; expected packages that Python finds, with commas between them. "
                "Install it, or have PYTHONPATH name the folder that holds it"
            )
    return found


def data_dir(default: Path) -> Path:
    """The folder that holds everything this installation keeps; made private to the user who runs it."""
    folder = Path(text("HITLCHAT_DATA") or default).resolve()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        keep_private(folder)
    except OSError as error:
        raise ImproperlyConfigured(
            f"{error}. HITLCHAT_DATA must be a folder of the user that the server runs as"
        ) from error
    return folder


def keep_private(folder: Path) -> None:
    """Take the rights of everyone else from `folder` and whatever is directly in it, or if they could enter, from all
    of it. The log tells of each path.
    """
    was_open = bool(folder.stat().st_mode & OTHERS)
    found = [path for path in (folder, *(folder.rglob("*") if was_open else folder.iterdir())) if _is_open(path)]
    for path in found:
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
            path.chmod(mode & ~OTHERS)
        except FileNotFoundError:
            continue
        except OSError as error:
            logger.warning("%s can be reached by other users, and its mode cannot be changed: %s", path, error)
        else:
            logger.warning("%s could be reached by other users (mode %04o): now only by this one", path, mode)


def private_file(file: Path) -> Path:
    """Return `file`, made empty for this user alone if it is missing: SQLite would let others read it."""
    with suppress(FileNotFoundError):
        write_once(file, "")
    return file


def secret_key(folder: Path) -> str:
    """`SECRET_KEY`, or one made on the first start and kept in the data folder."""
    if value := text("SECRET_KEY"):
        return value
    file = folder / "secret_key"
    try:
        key = random_text(file)
    except OSError as error:
        raise ImproperlyConfigured(f"{error}. Run every command as the user that the server runs as") from error
    if len(key) < 32:
        raise ImproperlyConfigured(f"{file} contains no usable key. Delete it to create a new one, or set SECRET_KEY")
    return key


def random_text(file: Path) -> str:
    """Return the text in `file`, made at random for this user alone if the file is missing."""
    write_once(file, secrets.token_urlsafe(48))
    return file.read_text(encoding="ascii").strip()


def write_once(file: Path, text: str) -> None:
    """Write a new file for this user alone; one that is there stays as it is."""
    with suppress(FileExistsError):
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            handle.write(text)


def channel_prefix(redis_url: str) -> str:
    """Return the prefix of the channels of an installation, which holds the number of its Redis database."""
    return f"hitlchat{urlsplit(redis_url).path.strip('/') or '0'}"


def _placed(name: str) -> str:
    return f"{name} ({PLACES[name]})" if name in PLACES else name


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"one of the keys {', '.join((repr(key) for key, _ in pairs))} occurs twice")
    return found


def _is_open(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:  # just gone, as a journal is
        return False
    return bool(mode & OTHERS) and not stat.S_ISLNK(mode)
