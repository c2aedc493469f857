"""`${NAME}` in settings of people: a value of the server's environment, looked up when it is used and never stored.

Variables that hitlchat itself reads are withheld, and with TOOLS_ENV all that match none of its patterns; without it,
those of Django, of PostgreSQL's client and of proxies, which hold passwords that are nobody's to pass on.
"""

import fnmatch
import os
import re
from collections.abc import Iterator

from django.conf import settings

from hitlchat.base import environment
from hitlchat.base.sentences import translatable

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
OTHERS = ("DJANGO_*", "PG*", "*_PROXY", "LD_*", "SSH_*")


class Missing(LookupError):
    """A reference has no value that may be used; the message names the variable."""


def names(text: str) -> Iterator[str]:
    """The variables that `text` refers to."""
    return (match[1] for match in REFERENCE.finditer(text))


def withheld(name: str) -> str | None:
    """Return why nobody may refer to this variable; None if they may."""
    if name in environment.ASKED:
        return translatable(f"{name} belongs to hitlchat itself and is not for tools.")
    listed = any(fnmatch.fnmatchcase(name, allowed) for allowed in settings.TOOLS_ENV)
    if settings.TOOLS_ENV and not listed:
        return translatable(f"{name} is not among the variables that tools may use (TOOLS_ENV).")
    if not listed and any(fnmatch.fnmatch(name.upper(), pattern) for pattern in OTHERS):
        return translatable(f"{name} is for other programs. To let tools use it, add it to TOOLS_ENV.")
    return None


def value_of(name: str) -> str:
    """The variable's value, never empty. Missing."""
    if why := withheld(name):
        raise Missing(why)
    if value := os.environ.get(name, ""):
        return value
    raise Missing(f"the environment variable {name} is not set on this server.")


def filled(text: str) -> str:
    """`text` with every reference replaced by its value. Missing."""
    return REFERENCE.sub(lambda match: value_of(match[1]), text)
