"""Secrets in what the record exports (SR-44): secrecy.py finds them.

A value that holds one is kept back as a whole: its hash stands for it, so that the seal still fits, with how the rest
of it reads beside it. The record itself keeps what was said; an export goes further than that.
"""

from typing import Any

from hitlchat.masking import HIDDEN as DOTS
from hitlchat.record.commitment import HIDDEN, READS, SaltOf, below, node
from hitlchat.secrecy import Cover, told


def keep_back(cover: Cover, value: Any, salt_of: SaltOf, path: str = "") -> Any:
    """`value`, which is the data of an event, with what stands for a value that is hidden, as commitment.py has it.

    Its own keys, at the top, are hitlchat's, and say nothing of what is secret.
    """
    if isinstance(value, dict):
        if any(key.startswith("$") or cover.text(key) != key for key in value):
            return _stand_in(value, salt_of, path, cover.value(value))
        return {key: _member(cover, key, item, salt_of, path) for key, item in value.items()}
    if isinstance(value, list):
        return [keep_back(cover, item, salt_of, f"{path}/{number}") for number, item in enumerate(value)]
    shown = cover.value(value)
    return value if shown == value else _stand_in(value, salt_of, path, shown)


def _member(cover: Cover, key: str, item: Any, salt_of: SaltOf, path: str) -> Any:
    where = below(path, key)
    if path and told(key, item):
        return _stand_in(item, salt_of, where, DOTS)
    return keep_back(cover, item, salt_of, where)


def _stand_in(value: Any, salt_of: SaltOf, path: str, reads: Any) -> dict[str, Any]:
    return {HIDDEN: node(value, salt_of, path).hex(), READS: reads}
