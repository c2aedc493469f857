"""A resolver of our own in the place of the C library's, which cannot be told to ask another name server."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

Answers = Callable[..., list[str]]


def answering(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Return a function that says what a name leads to, and returns the list of names that are looked up."""
    leads: dict[str, list[tuple[str, ...]]] = {}
    looked_up: list[str] = []

    def getaddrinfo(host: str, port: int, **_: object) -> list[Any]:
        looked_up.append(host)
        if host not in leads:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        addresses = leads[host].pop(0) if len(leads[host]) > 1 else leads[host][0]
        return [(None, None, None, "", (address, port)) for address in addresses]

    def answer(name: str, *addresses: str | tuple[str, ...]) -> list[str]:
        """`name` leads to these addresses. Tuples are the answers to one look-up after the other."""
        one_by_one = [each for each in addresses if isinstance(each, tuple)]
        leads[name] = one_by_one or [tuple(str(each) for each in addresses)]
        return looked_up

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answer
