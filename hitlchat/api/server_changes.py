"""Changes of upstream tools: from the body of a request, and from objections to the fields of that body."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic.alias_generators import to_camel

from hitlchat.api.server_tool_schemas import Accept, ToolChange
from hitlchat.base.problems import Invalid
from hitlchat.gate.actor import Actor
from hitlchat.upstreams import composing
from hitlchat.upstreams.changes import USUAL, Change, NotConfirmed, Refused, field_of
from hitlchat.upstreams.composing import NotListed
from hitlchat.upstreams.models import ComposedTool, UpstreamServer

Wanted = Sequence[tuple[str, ToolChange]]
"""Changes, each with its place in the body: empty, or `tools.3.`."""

_DECIDED = (
    *("exposed", "alias", "description", "hitl_mode", "prompt_template", "condition", "signed_in_only"),
    *("digest", "warnings_read"),
)
_NO_SUCH_TOOL = "The server has no tool of this name."


class BadChange(Invalid):
    """Nothing was changed. `status` 422: it cannot be; 409: it would be another change than its sender means.

    `errors` has the reasons by their place in the body.
    """

    def __init__(self, status: int, errors: Mapping[str, str]) -> None:
        super().__init__(errors)
        self.status = status


def carry_out(server: UpstreamServer, wanted: Wanted, actor: Actor) -> list[ComposedTool]:
    """All of it in one transaction. BadChange, OnlyAdministrators, OnlyPeople."""
    rows = _rows(server, wanted)
    changes = [_change(row, body) for row, (_, body) in zip(rows, wanted, strict=True)]
    try:
        try:
            return composing.apply(changes, actor, confirmed="")
        except NotConfirmed as asked:
            _check_confirmed(asked, rows, wanted)
            return composing.apply(changes, actor, confirmed=asked.digest)
    except NotConfirmed as error:
        raise BadChange(409, {"confirmLowering": f"{error} Something else was changed just now: try again."}) from error
    except Refused as error:
        raise _refusal(error, rows, wanted) from error


def accept(row: ComposedTool, body: Accept, actor: Actor) -> None:
    """BadChange, OnlyAdministrators, OnlyPeople."""
    try:
        composing.accept(row.pk, body.digest, actor, keep_mode=body.keep_mode, warnings_read=body.warnings_read)
    except NotListed as error:
        raise BadChange(409, {"tool": str(error)}) from error
    except Refused as error:
        field = _field(str(error))
        raise BadChange(409 if field == "digest" else 422, {field: str(error)}) from error


def _rows(server: UpstreamServer, wanted: Wanted) -> list[ComposedTool]:
    names = [str(body.tool) for _, body in wanted]
    known = {row.name: row for row in server.tools.defer("seen", "pinned").filter(name__in=names)}
    said: dict[str, str] = {}
    seen: set[str] = set()
    for name, (place, _) in zip(names, wanted, strict=True):
        if name not in known:
            said[f"{place}tool"] = _NO_SUCH_TOOL
        elif name in seen:
            said[f"{place}tool"] = "It stands twice."
        seen.add(name)
    if said:
        raise BadChange(422, said)
    return [known[name] for name in names]


def _check_confirmed(asked: NotConfirmed, rows: Iterable[ComposedTool], wanted: Wanted) -> None:
    loosened = {each.tool for each in asked.loosenings}
    said = {
        f"{place}confirmLowering": f"{row.name[:64]!r} would run with less oversight. Send true to have it so."
        for row, (place, body) in zip(rows, wanted, strict=True)
        if row.pk in loosened and not body.confirm_lowering
    }
    if said:
        raise BadChange(409, said) from asked


def _change(row: ComposedTool, body: ToolChange) -> Change:
    fields: dict[str, Any] = {name: getattr(body, name) for name in _DECIDED}
    if "deadline_seconds" in body.model_fields_set:
        fields["deadline_seconds"] = body.deadline_seconds or USUAL
    return Change(row.pk, **fields)


def _refusal(error: Refused, rows: Sequence[ComposedTool], wanted: Wanted) -> BadChange:
    said: dict[str, str] = {}
    for row, (place, _) in zip(rows, wanted, strict=True):
        for problem in error.problems.get(row.pk, ()):
            field = f"{place}{_field(problem)}"
            said[field] = f"{said[field]} {problem}" if field in said else problem
    stale = any(field.endswith("digest") for field in said)
    return BadChange(409 if stale else 422, said)


def _field(problem: str) -> str:
    """Return which member of the body a sentence speaks of."""
    return to_camel(field_of(problem))
