"""Reading settings from environment variables; a value that does not parse stops the start and names the variable."""

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

YES = {"1", "true", "yes", "on"}
NO = {"0", "false", "no", "off"}


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, default).strip()


def flag(name: str, *, default: bool) -> bool:
    value = text(name).lower()
    if not value:
        return default
    if value not in YES | NO:
        raise ImproperlyConfigured(f"{name} is {value!r}; expected 1 or 0")
    return value in YES


def integer(name: str, default: int, *, least: int = 1, most: int = 10**9) -> int:
    value = text(name)
    if not value:
        return default
    if not value.isascii() or not value.isdigit() or not least <= int(value) <= most:
        raise ImproperlyConfigured(f"{name} is {value!r}; expected a whole number from {least} to {most}")
    return int(value)


def words(name: str, default: list[str]) -> list[str]:
    value = text(name)
    return [word.strip() for word in value.split(",") if word.strip()] if value else default


def data_dir(default: Path) -> Path:
    """The folder that holds everything this installation keeps; made private to the user who runs it."""
    folder = Path(text("HITLCHAT_DATA") or default).resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def secret_key(folder: Path) -> str:
    """`SECRET_KEY`, or one made on the first start and kept in the data folder."""
    if value := text("SECRET_KEY"):
        return value
    file = folder / "secret_key"
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(descriptor, "w", encoding="ascii") as handle:
            handle.write(secrets.token_urlsafe(48))
    key = file.read_text(encoding="ascii").strip()
    if len(key) < 32:
        raise ImproperlyConfigured(f"{file} holds no usable key; delete it to have a new one made, or set SECRET_KEY")
    return key
