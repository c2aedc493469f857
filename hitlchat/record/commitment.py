"""What a seal says about one event: a hash that binds every column, and from which a part can be kept back.

`data` is hashed as a tree, each value in it with a salt of its own. So an export can leave the hash in the place of a
secret: the rest still verifies, and nobody can find the secret by trying values (as in SD-JWT, RFC 9901). Which hash
stands where is said beside the data, by path: nothing within the data has a meaning of its own.
Needs neither Django's settings nor a database.
"""

import hashlib
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring_ascii
from types import MappingProxyType
from typing import Any, Final

from hitlchat.base import canonical

COLUMNS = ("id", "name", "call", "actor", "means", "at")
# How the events of a batch are hashed. 1: without the text of `data`, as batches were sealed once.
FORM: Final = 2
# The salt of the text of `data`; the paths of values begin with “/”.
TEXT: Final = "text"

Row = dict[str, Any]
SaltOf = Callable[[str], bytes]
# Hashes of values that are kept back, by path.
Hidden = Mapping[str, str]
NOTHING: Final[Hidden] = MappingProxyType({})
_WORDS: Final = {None: b"null", True: b"true", False: b"false"}


def salt_of_row(salt: str, event_id: int) -> str:
    """The salt of one event, made from that of its batch: 32 hexadecimal digits."""
    return _keyed(bytes.fromhex(salt), str(event_id)).hex()


def salts(salt: str) -> SaltOf:
    """The salt of each value of an event, by its path, made from the event's."""
    key = bytes.fromhex(salt)
    return lambda path: _keyed(key, path)


def row_hash(row: Row, salt_of: SaltOf, form: int = FORM, *, text: str = "", hidden: Hidden = NOTHING) -> bytes:
    """SHA-256 over all columns; `row` has COLUMNS and `data`, all as JSON. canonical.NotJson, ValueError.

    `text`: the digest of the text that `data` is stored as, which binds the order of its keys and how it is spelled.
    """
    if form not in (1, FORM):
        raise ValueError(f"no event is hashed in form {form!r}")
    whole = {**{name: row[name] for name in COLUMNS}, "data": node(row["data"], salt_of, hidden).hex()}
    if form == 1:
        return hashlib.sha256(b"event" + canonical.dumps(whole).encode("ascii")).digest()
    return hashlib.sha256(b"event 2" + canonical.dumps({**whole, "text": text}).encode("ascii")).digest()


def text_digest(text: str, salt_of: SaltOf) -> str:
    return hashlib.sha256(salt_of(TEXT) + text.encode("utf-8", "surrogatepass")).hexdigest()


def unreadable_inner(raw: str, salt_of: SaltOf) -> str:
    """What stands for a row that is no event, as far as anybody can tell, in files."""
    return hashlib.sha256(b"raw" + salt_of(TEXT) + raw.encode("utf-8", "surrogatepass")).hexdigest()


def unreadable_hash(event_id: int, inner: str) -> bytes:
    """Of such a row: no event has the same, since what is hashed begins otherwise."""
    return hashlib.sha256(f"unreadable {event_id} {bytes.fromhex(inner).hex()}".encode("ascii")).digest()


def node(value: Any, salt_of: SaltOf, hidden: Hidden = NOTHING, path: str = "", level: int = 0) -> bytes:
    """The hash of one value of `data`, at `path`; of one that is kept back, what stands for it. NotJson, ValueError."""
    if path in hidden:
        return _kept_back(hidden[path])
    if level > canonical.MAX_DEPTH:
        raise canonical.NotJson("nested too deeply")
    if isinstance(value, dict):
        made = hashlib.sha256(b"object")
        for key in sorted(value):
            made.update(_spelled(key))
            made.update(node(value[key], salt_of, hidden, below(path, key), level + 1))
        return made.digest()
    if isinstance(value, list):
        made = hashlib.sha256(b"array")
        for number, item in enumerate(value):
            made.update(node(item, salt_of, hidden, f"{path}/{number}", level + 1))
        return made.digest()
    return hashlib.sha256(b"value" + salt_of(path) + _spelled(value)).digest()


def paths(value: Any, hidden: Hidden = NOTHING, path: str = "") -> list[str]:
    """Of the values that are not kept back."""
    if path in hidden:
        return []
    if isinstance(value, dict):
        return [each for key in value for each in paths(value[key], hidden, below(path, key))]
    if isinstance(value, list):
        return [each for number, item in enumerate(value) for each in paths(item, hidden, f"{path}/{number}")]
    return [path]


def below(path: str, key: str) -> str:
    """As in a JSON pointer (RFC 6901): no two values have the same path."""
    if "~" in key or "/" in key:
        key = key.replace("~", "~0").replace("/", "~1")
    return f"{path}/{key}"


def _spelled(value: Any) -> bytes:
    """As canonical.dumps spells it, without its detours for a text: there are very many of them."""
    if isinstance(value, str):
        return encode_basestring_ascii(value).encode("ascii")
    return _WORDS[value] if value is None or isinstance(value, bool) else canonical.dumps(value).encode("ascii")


def _kept_back(digest: Any) -> bytes:
    if not isinstance(digest, str) or len(digest) != 64:
        raise ValueError("no hash of a value")
    return bytes.fromhex(digest)


def _keyed(key: bytes, text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=16).digest()
