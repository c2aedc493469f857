"""An address that a server wants a person to open: shown as it is, and only if it leads to the public internet."""

import re
import string
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urlsplit

from hitlchat.outbound import addresses
from hitlchat.secrets.masking import HIDDEN

LONGEST = 2000
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)+(?!\d+\Z|0x)(?:xn--[a-z0-9-]+|[a-z][a-z0-9-]*)")
# Kept for networks of one's own.
_INSIDE = re.compile(r"\.(?:local|localhost|internal|intranet|lan|home|corp|private|home\.arpa|test|invalid)\Z")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class NoLink(ValueError):
    """Nobody is sent there; why, in the middle of a sentence."""


@dataclass(frozen=True)
class Link:
    """`address` in ASCII, as a browser goes there; `host` with its port, if that is an unusual one."""

    address: str
    host: str
    is_encrypted: bool

    @property
    def before(self) -> str:
        return self.address.partition(self.host)[0]

    @property
    def after(self) -> str:
        return self.address.partition(self.host)[2]


def link(url: str) -> Link:
    """NoLink."""
    # What a browser takes for a slash, or leaves out, would lead it elsewhere than where this looks.
    if HIDDEN in url:
        raise NoLink("its address contains a secret of its own connection")
    if not url or len(url) > LONGEST or re.search(r"[\s\\<>\"`{}|^\x00-\x1f\x7f-\x9f]", url):
        raise NoLink("its address cannot be read")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode("ascii").lower(), parts.port
    except (ValueError, UnicodeError):
        raise NoLink("its address cannot be read") from None
    if not host:
        raise NoLink("its address cannot be read")
    if parts.scheme not in _DEFAULT_PORTS:
        raise NoLink("its address is none of the web")
    if "@" in parts.netloc:
        raise NoLink("its address has a user name in it")
    _check_public(host)
    shown = f"[{host}]" if ":" in host else host
    if port is not None and port != _DEFAULT_PORTS[parts.scheme]:
        shown += f":{port}"
    return Link(_in_ascii(parts, shown), shown, parts.scheme == "https")


def _check_public(host: str) -> None:
    if (literal := addresses.literal(host)) is not None:
        if not addresses.is_public(literal):
            raise NoLink("its address leads to a private network")
        return
    if addresses.is_local_name(host) or addresses.is_metadata_name(host) or _INSIDE.search(host):
        raise NoLink("its address leads to a private network")
    if len(host) > 253 or not _NAME.fullmatch(host):
        raise NoLink("its address cannot be read")


def _in_ascii(parts: SplitResult, host: str) -> str:
    path = quote(parts.path or "/", safe=string.punctuation)
    query = f"?{quote(parts.query, safe=string.punctuation)}" if parts.query else ""
    fragment = f"#{quote(parts.fragment, safe=string.punctuation)}" if parts.fragment else ""
    return f"{parts.scheme}://{host}{path}{query}{fragment}"
