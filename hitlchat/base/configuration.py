"""The file of settings that server and console share: `hitlchat.env` in the data folder, or the one HITLCHAT_ENV names.

Each line is NAME=value, as systemd and Docker read it; one pair of quotes around the value is left out. What is in the
real environment wins.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from textwrap import wrap
from typing import Final

from django.core.exceptions import ImproperlyConfigured

from hitlchat.base import environment

NAME: Final = "hitlchat.env"
# They say where the file is.
OUTSIDE: Final = ("HITLCHAT_DATA", "HITLCHAT_ENV")
LINE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")
QUOTED: Final = re.compile(r"(['\"])(.*)\1")
# A row of a table of settings: its names, their defaults, and what they mean.
ROW: Final = re.compile(r"^\| (`[A-Z_]+`.*?) \| (.*?) ?\| (.*?) ?\|$", re.MULTILINE)
WIDTH: Final = 118
HEAD: Final = """\
# Settings of this installation, for the server and for manage.py. To change one, remove the # before its name, and
# restart the server. What is set in the environment wins over this file. The values below are the defaults.
"""


@dataclass(frozen=True)
class Configuration:
    """`places`: where each variable is in the file, in words."""

    file: Path
    places: Mapping[str, str]

    def refuse_unknown(self) -> None:
        """Raise for the first line that sets what no setting reads. Raises: ImproperlyConfigured"""
        for name, place in self.places.items():
            if name not in environment.ASKED:
                close = get_close_matches(name, environment.ASKED, 1)
                hint = f"Did you mean {close[0]}?" if close else "docs/operating.md lists all settings."
                raise ImproperlyConfigured(f"{place}: there is no setting {name}. {hint}")


def load(folder: Path) -> Configuration:
    """Put what the file says into the environment. `folder`: the data folder, unless HITLCHAT_DATA names another.

    Raises: ImproperlyConfigured, for a file that cannot be read and for the first line that is wrong.
    """
    # Settings are read a second time to report what was wrong with them.
    for name in environment.PLACES:
        os.environ.pop(name, None)
    environment.PLACES.clear()
    named = environment.text("HITLCHAT_ENV")
    file = Path(named) if named else Path(environment.text("HITLCHAT_DATA") or folder) / NAME
    file = file.resolve()
    places: dict[str, str] = {}
    for place, name, value in _lines(file, must_exist=bool(named)):
        if name == "HITLCHAT_ENV" or (name in OUTSIDE and not named):
            raise ImproperlyConfigured(f"{place}: {name} says where this file is, so set it in the environment")
        if name in places:
            raise ImproperlyConfigured(f"{place}: {name} is already set ({places[name]})")
        places[name] = place
        if name not in os.environ:
            os.environ[name] = value
            environment.PLACES[name] = place
    return Configuration(file, places)


def template(pages: Iterable[str]) -> str:
    """Return a file with every setting that was read, commented out; `pages` have the tables that explain them."""
    text = HEAD
    for names, default, meaning in (row for page in pages for row in ROW.findall(page)):
        defaults = {name: environment.ASKED[name] for name in re.findall(r"`([A-Z_]+)`", names) if name not in OUTSIDE}
        if defaults:
            # A default that is no value, such as a file that is made, is in words.
            words = f"{meaning} (default: {default})" if default and not all(defaults.values()) else meaning
            # Without the marks of Markdown.
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|\*+(\w[^*]*)\*+", r"\1\2", words).replace("`", "")
            text += "\n" + "".join(f"# {line}\n" for line in wrap(plain, WIDTH - 2))
            text += "".join(f"#{name}={value}\n" for name, value in defaults.items())
    return text


def _lines(file: Path, *, must_exist: bool) -> Iterator[tuple[str, str, str]]:
    """Yield the place, the name and the value of each line that sets a variable."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        if not must_exist:
            return
        raise ImproperlyConfigured(f"HITLCHAT_ENV names {file}, which does not exist") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{file} cannot be read: {error}") from error
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        place = f"{file}, line {number}"
        if not (found := LINE.fullmatch(line)):
            raise ImproperlyConfigured(f"{place}: expected NAME=value, or # before a comment")
        value = found[2].strip()
        quoted = QUOTED.fullmatch(value)
        yield place, found[1], quoted[2] if quoted else value
