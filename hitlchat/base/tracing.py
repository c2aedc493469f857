"""Spans of work, for a collector of traces. Unless the composition root installs one, nothing happens here, and nothing
is imported.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID


@dataclass
class Span:
    """A span of work, to which attributes are added meanwhile: ids and words of our own only, never people's data."""

    attributes: dict[str, Any] = field(default_factory=dict)


class Tracer(Protocol):
    def work(self, run: UUID, conversation: UUID, *, begins: bool) -> AbstractContextManager[Span]:
        """A stretch of work on a run; its first one `begins` it."""

    def ask(self, model: str, provider: str) -> AbstractContextManager[Span]:
        """Return one request to a model, within such a stretch."""


_tracers: list[Tracer] = []


def install(tracer: Tracer | None) -> None:
    """Install the collector from now on; None: there is none any more."""
    _tracers[:] = [tracer] if tracer else []


def work(run: UUID, conversation: UUID, *, begins: bool) -> AbstractContextManager[Span]:
    return _tracers[0].work(run, conversation, begins=begins) if _tracers else nullcontext(Span())


def ask(model: str, provider: str) -> AbstractContextManager[Span]:
    return _tracers[0].ask(model, provider) if _tracers else nullcontext(Span())
