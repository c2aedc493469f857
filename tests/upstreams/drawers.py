"""The drawer as its page uses it: what it asks for, and what it sends."""

import re
from typing import Any, Final

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from hitlchat.upstreams.changes import stamp
from hitlchat.upstreams.models import ComposedTool

DRAWER: Final = "/servers/tools"


def of(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def seen(person: User, path: str = DRAWER, **query: Any) -> str:
    answer = of(person).get(path, query, headers={"HX-Request": "true"})
    assert answer.status_code == 200, (path, answer.status_code)
    return answer.content.decode()


def wish(row: ComposedTool, **fields: Any) -> dict[str, str]:
    """The fields of one line, as its form sends them once they were filled in like this."""
    tool = row.tool
    texts = {"alias": tool.name, "hitl_mode": tool.hitl_mode, "condition": tool.condition} if tool else {}
    ticks = {"exposed": row.exposed}
    if fields.keys() & {"description", "prompt_template", "deadline_seconds", "signed_in_only"}:
        texts |= {"description": row.description, "prompt_template": tool.prompt_template if tool else ""}
        texts |= {"deadline_seconds": str((tool and tool.deadline_seconds) or "")}
        ticks |= {"signed_in_only": bool(tool and tool.signed_in_only)}
    said = {"stamp": stamp(row), **ticks, **texts, **fields}
    said = {name: "on" if value is True else value for name, value in said.items() if value is not False}
    return {f"{row.pk}.{name}": value for name, value in said.items()}


def send(person: User, *wishes: dict[str, str], path: str = f"{DRAWER}/of/shop", **more: str) -> str:
    """Return what the page answers to these lines, in a form of the server “shop”."""
    sent: dict[str, str] = {}
    for each in wishes:
        sent |= each
    answer = post(person, path, sent | more)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def offer(person: User, mode: str, ceiling: int, was_mode: str = "both", was_ceiling: int = 5, **more: str) -> str:
    """Return what the page answers to mode and ceiling."""
    sent = {"mode": mode, "ceiling": str(ceiling), "was_mode": was_mode, "was_ceiling": str(was_ceiling)}
    return send(person, sent | more, path=DRAWER)


def post(person: User, path: str, fields: dict[str, str]) -> HttpResponse:
    answer: Any = of(person).post(path, fields, headers={"HX-Request": "true"})
    return answer  # type: ignore[no-any-return]


def confirms(answer: str) -> str:
    """The digest of the question in `answer`."""
    found = re.search(r'name="confirmed" value="([0-9a-f]{64})"', answer)
    assert found, answer
    return found[1]


def applied(answer: str) -> int:
    """Return how many changes were applied according to `answer`."""
    found = re.search(r"data-told[^>]*>(\d+) changes? applied", answer)
    assert found, answer
    return int(found[1])
