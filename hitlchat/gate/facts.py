"""Digests that events carry of what people read in other tables, so that the record can tell whether it still says so.

Whoever changes which columns are covered gives that a new version: events of before are compared as they were made.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User

from hitlchat.base import canonical
from hitlchat.gate.actor import Actor, Caller
from hitlchat.gate.models import Decision, ToolCall

VERSION: Final = 1
# A call's columns, save for its lease and its deadline, which change without a move, and for whether its tool is still
# there.
_CALL: Final = (
    *("id", "tool_name", "source", "definition_hash", "risk_level", "arguments", "status", "round", "caller_kind"),
    *(
        "caller_id",
        "conversation_id",
        "turn_id",
        "position",
        "model_call_id",
        "rule",
        "reason",
        "grantable",
        "grant_id",
    ),
    *("token_id", "result", "error", "output", "decided_by", "decider_group", "quorum", "not_the_requester"),
    *("escalates_to", "escalates_at", "oversight_digest", "created_at", "started_at", "settled_at"),
)
_DECISION: Final = (
    *("id", "approval_id", "person_id", "round", "verdict", "means", "client", "token_name", "reason"),
    *("edited_arguments", "digest", "first_shown_at", "opened", "hurried", "decided_at"),
)
CALL_COLUMNS: Final = {VERSION: _CALL}
DECISION_COLUMNS: Final = {VERSION: _DECISION}
# What came back, and what of it a program printed.
RESULT_COLUMNS: Final = ("result", "error", "output")

Json = dict[str, Any]


def by(actor: Actor) -> Json:
    """Return who did it, for an event: their id and the name they have now."""
    if actor.user_id is None:
        return {}
    name = actor.name or User.objects.filter(pk=actor.user_id).values_list("username", flat=True).first()
    return {"by": {"id": actor.user_id, "name": name}}


def of_call(call: ToolCall) -> Json:
    """The digest of all of the call's row that people read, as it is now."""
    return {"row": _marked(digest(_values(call, _CALL)))}


def of_decision(decision: Decision) -> Json:
    """The same for a person's answer."""
    return {"decision": _marked(digest(_values(decision, _DECISION)))}


def of_arguments(call: ToolCall) -> Json:
    return {"argumentsDigest": canonical.sha256(call.arguments)}


def undisclosed(call: ToolCall, caller: Caller) -> Json:
    """Return which call it is that nobody is shown, as the digest of a disclosure says of others."""
    return of_origin(call, caller) | of_arguments(call)


def of_result(call: ToolCall) -> Json:
    return {"resultDigest": digest(_values(call, RESULT_COLUMNS))}


def of_origin(call: ToolCall, caller: Caller) -> Json:
    """Return which tool it is a call of, and for whom it was made."""
    tool = {"name": call.tool_name, "source": call.source, "definition": call.definition_hash}
    return {"tool": tool, "caller": {"kind": caller.kind, "id": caller.user_id, "name": caller.user_name}}


def is_same(said: object, columns: Mapping[int, Iterable[str]], row: Mapping[str, Any]) -> bool:
    """Return whether `said`, the digest in an event, is of `row` as it is. False for what no version has written."""
    version, _, _ = str(said).partition(":")
    named = columns.get(int(version)) if version.isdecimal() and len(version) < 4 else None
    return named is not None and said == f"{version}:{digest({name: row[name] for name in named})}"


def digest(values: Mapping[str, Any]) -> str:
    """SHA-256 over columns, as they are read back from the database."""
    return canonical.sha256({name: _plain(value) for name, value in values.items()})


def _marked(made: str) -> str:
    return f"{VERSION}:{made}"


def _values(row: Any, columns: Iterable[str]) -> Json:
    return {name: getattr(row, name) for name in columns}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, UUID):
        return str(value)
    # As JSON has it: a tuple is a list, and every key a text.
    return json.loads(canonical.pretty(value)) if isinstance(value, dict | list | tuple) else value
