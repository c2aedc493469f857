"""Every text of a tool that a model gets to read, with its place."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hitlchat.upstreams.judge import pointer
from hitlchat.upstreams.judge.offered import Offered


@dataclass(frozen=True)
class Text:
    """`name`: an identifier, whose words are run together."""

    where: str
    text: str
    name: bool = False


def texts(tool: Offered) -> Iterator[Text]:
    """Name, title, description, hints, and each key and each text of the schemas: a model reads them all."""
    yield Text("/name", tool.name, name=True)
    if tool.title is not None:
        yield Text("/title", tool.title)
    if tool.description is not None:
        yield Text("/description", tool.description)
    parts = ("annotations", tool.annotations), ("inputSchema", tool.input_schema), ("outputSchema", tool.output_schema)
    for key, value in parts:
        if value is not None:
            yield from _inside(f"/{key}", value)


def _inside(where: str, value: Any) -> Iterator[Text]:
    """Without recursion: how deep a schema goes is the upstream's choice."""
    waiting = [(where, value)]
    while waiting:
        place, found = waiting.pop()
        if isinstance(found, str):
            yield Text(place, found)
        elif isinstance(found, dict):
            inner = [(pointer.step(place, key), key, each) for key, each in found.items()]
            yield from (Text(step, key, name=True) for step, key, _ in inner)
            waiting.extend((step, each) for step, _, each in reversed(inner))
        elif isinstance(found, list):
            steps = [(pointer.step(place, index), each) for index, each in enumerate(found)]
            waiting.extend(reversed(steps))
