"""Secrets in what the record exports (SR-44): secrecy.py finds them.

A value that holds one is kept back as a whole: its hash stands for it, so that the seal still fits, with how the rest
of it reads beside it. The record itself keeps what was said; an export goes further than that.
"""

from typing import Any

from hitlchat.record.commitment import SaltOf, below, node
from hitlchat.secrets.detection import Cover, told
from hitlchat.secrets.masking import HIDDEN as DOTS


class Hiding:
    """Of one event: `hidden` are the hashes of what is kept back, by path, once `of` went over its data."""

    def __init__(self, cover: Cover, salt_of: SaltOf) -> None:
        self._cover, self._salt_of = cover, salt_of
        self.hidden: dict[str, str] = {}

    def of(self, value: Any, path: str = "") -> Any:
        """How `value`, which is the data of an event, reads with its secrets hidden.

        Its own keys, at the top, are hitlchat's, and say nothing of what is secret.
        """
        if isinstance(value, dict):
            if any(self._cover.text(key) != key for key in value):
                return self._keep_back(value, path, self._cover.value(value))
            return {key: self._member(key, item, path) for key, item in value.items()}
        if isinstance(value, list):
            return [self.of(item, f"{path}/{number}") for number, item in enumerate(value)]
        shown = self._cover.value(value)
        return value if shown == value else self._keep_back(value, path, shown)

    def _member(self, key: str, item: Any, path: str) -> Any:
        where = below(path, key)
        return self._keep_back(item, where, DOTS) if path and told(key, item) else self.of(item, where)

    def _keep_back(self, value: Any, path: str, reads: Any) -> Any:
        self.hidden[path] = node(value, self._salt_of, path=path).hex()
        return reads
