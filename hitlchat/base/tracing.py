"""Spans of work, for whoever collects traces. Nobody does unless the composition root installs them: then nothing
happens here, and nothing is imported.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

Attributes = dict[str, Any]


@dataclass
class Span:
    """A span of work: takes what is found out meanwhile. Ids and words of our own only, never what it is about."""

    attributes: Attributes = field(default_factory=dict)


class Tracer(Protocol):
    def work(self, run: UUID, conversation: UUID, *, begins: bool) -> AbstractContextManager[Span]:
        """A stretch of work on a run; its first one `begins` it."""

    def ask(self, model: str, provider: str) -> AbstractContextManager[Span]:
        """Return one request to a model, within such a stretch."""


_tracers: list[Tracer] = []


def install(tracer: Tracer | None) -> None:
    """Install the collector from now on; None: nobody collects any more."""
    _tracers[:] = [tracer] if tracer else []


@contextmanager
def work(run: UUID, conversation: UUID, *, begins: bool) -> Iterator[Span]:
    if not _tracers:
        yield Span()
        return
    with _tracers[0].work(run, conversation, begins=begins) as span:
        yield span


@contextmanager
def ask(model: str, provider: str) -> Iterator[Span]:
    if not _tracers:
        yield Span()
        return
    with _tracers[0].ask(model, provider) as span:
        yield span
