"""What a call would do, as its tool says: looked at before a person is asked, within limits, and never in the way."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from hitlchat.base import canonical
from hitlchat.gate import sources
from hitlchat.gate.models import ToolCall
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, prepare
from tests.conftest import caller
from tests.gate.asking import approval_of, ask, leap, recording, run, say_yes, status
from tests.gate.sources_for_tests import looked
from tests.tables import each_row

pytestmark = pytest.mark.django_db

TABLE = {"columns": ["order", "paid"], "rows": [["4711", "143.00"], ["4712", ""]]}


def shown(bob: User, said: list[Any], *now: Any, **columns: Any) -> Any:
    """The preview on the card of a call whose preview is `now`."""
    said[:] = now
    return approval_of(ask(bob, recording(source="previewing", **columns))).disclosure.get("preview")


def test_a_preview_is_looked_at_with_what_would_run_and_for_whom(bob: User, previews: list[Any]) -> None:
    found = shown(bob, previews, Preview(text="Refunds 129.00 EUR"))
    assert found == {"text": "Refunds 129.00 EUR", "table": None, "error": None, "cut": []}
    assert looked == [({"text": "hello", "amount": 1}, caller(bob))]


def test_a_tool_without_a_preview_is_asked_about_as_ever(bob: User, previews: list[Any]) -> None:
    assert shown(bob, previews, None) is None
    assert "preview" not in approval_of(ask(bob, recording("other"))).disclosure


@each_row("mode,arguments", [("DISABLED", {"text": "a"}), ("REQUIRED", {"text": 1})])
def test_nothing_is_looked_at_when_nobody_is_asked(mode: str, arguments: Any, bob: User, previews: list[Any]) -> None:
    previews.append(Preview(text="x"))
    ask(bob, recording(source="previewing", mode=mode), arguments)
    assert looked == []


def test_a_preview_cannot_change_what_is_asked_about(bob: User, previews: list[Any]) -> None:
    async def meddling(arguments: dict[str, Any]) -> Preview:
        arguments["text"] = "something else"
        return Preview(text="x")

    previews.append(meddling)
    call = ask(bob, recording(source="previewing"))
    assert approval_of(call).disclosure["arguments"] == call.arguments == {"text": "hello", "amount": 1}


async def gives_up(_: object) -> Preview:
    raise asyncio.CancelledError


BAD: dict[str, tuple[Any, str]] = {
    "raises": (RuntimeError("the secret of the source"), "An error in hitlchat, not in the tool, kept it"),
    "gives up": (gives_up, "An error in hitlchat"),
    "its own failure": (Preview(error="Line 3: no such order"), "Line 3: no such order"),
    "text": ("a bare text", "neither a text nor a table"),
    "nothing in it": (Preview(), "neither a text nor a table"),
    "number": (Preview(text=5), "neither a text nor a table"),  # type: ignore[arg-type]
    "error no text": (Preview(error=[]), "neither a text nor a table"),  # type: ignore[arg-type]
    "no rows key": (Preview(table={"columns": ["a"]}), "neither a text nor a table"),
    "more keys": (Preview(table={**TABLE, "style": "x"}), "neither a text nor a table"),
    "rows of several lengths": (Preview(table={"columns": [], "rows": [["a"], ["a", "b"]]}), "neither a text"),
    "columns and rows of other lengths": (Preview(table={"columns": ["a"], "rows": [["a", "b"]]}), "neither a text"),
    "cells no text": (Preview(table={"columns": [], "rows": [["a", 1]]}), "neither a text nor a table"),
    "no cells": (Preview(table={"columns": [], "rows": []}), "neither a text nor a table"),
    "text no text beside a table": (Preview(text=5, table=TABLE), "neither a text nor"),  # type: ignore[arg-type]
}


@pytest.mark.guarantee("gate:fail-closed")
def test_a_preview_that_fails_says_so_and_the_person_is_asked(
    subtests: pytest.Subtests, bob: User, previews: list[Any]
) -> None:
    tool = recording(source="previewing")
    for case, (said, error) in BAD.items():
        with subtests.test(case=case):
            previews[:] = [said]
            call = ask(bob, tool)
            found = approval_of(call).disclosure["preview"]
            assert error in found["error"]
            assert "secret" not in found["error"]
            assert (found["text"], found["table"]) == (None, None)
            assert status(call) == Status.WAITING


@each_row("source", ["missing", "nowhere", "unmakeable"])
def test_a_source_that_is_not_there_has_failed_previews(source: str, bob: User) -> None:
    assert approval_of(ask(bob, recording(source=source))).disclosure["preview"]["error"]


def test_a_preview_that_hangs_is_left_alone_after_some_seconds(bob: User, previews: list[Any]) -> None:
    async def hangs(_: object) -> Preview:
        leap()
        try:
            await asyncio.Event().wait()
        finally:
            # It does not let itself be stopped at once either.
            await asyncio.sleep(0)
        return Preview(text="never")

    assert shown(bob, previews, hangs)["error"] == "The preview took longer than 5 seconds."


def test_whoever_stops_asking_stops_the_preview(bob: User, previews: list[Any]) -> None:
    ended = []

    async def hangs(_: object) -> Preview:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        return Preview(text="never")

    async def impatient(request: CallRequest) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(prepare(request), 0.2)
        await asyncio.sleep(0)

    previews.append(hangs)
    tool = recording(source="previewing")
    async_to_sync(impatient)(CallRequest(tool.name, {"text": "a"}, caller(bob)))
    assert ended == [True]


# -- From what preview code returns -----------------------------------------------------------------------------------

VALUES: dict[str, tuple[Any, Preview]] = {
    "text": ("x", Preview(text="x")),
    "empty text": ("", Preview(text="")),
    "object": ({"a": 1, "b": None}, Preview(table={"columns": [], "rows": [["a", "1"], ["b", ""]]})),
    "objects": ([{"a": "1", "b": True}], Preview(table={"columns": ["a", "b"], "rows": [["1", "true"]]})),
    "nested": ({"a": ["é", {"b": 1.5}]}, Preview(table={"columns": [], "rows": [["a", '["é", {"b": 1.5}]']]})),
}
OTHERS: dict[str, Any] = {
    "number": 5,
    "nothing": None,
    "empty object": {},
    "empty list": [],
    "empty objects": [{}],
    "texts": ["a", "b"],
    "other keys": [{"a": 1}, {"b": 1}],
    "another order": [{"a": 1, "b": 2}, {"b": 1, "a": 2}],
    "NaN": {"a": float("nan")},
    "no JSON": [{"a": object()}],
    "bytes": b"x",
}


def test_a_text_or_a_table_is_made_of_a_value(subtests: pytest.Subtests) -> None:
    for case, (value, expected) in VALUES.items():
        with subtests.test(case=case):
            assert Preview.of(value) == expected


def test_of_any_other_value_a_failed_preview_is_made(subtests: pytest.Subtests) -> None:
    for case, value in OTHERS.items():
        with subtests.test(case=case):
            made = Preview.of(value)
            assert made.error is not None
            assert made.error.startswith("It gave")
            assert (made.text, made.table) == (None, None)


def test_a_value_within_itself_is_no_table() -> None:
    row: dict[str, Any] = {}
    row["row"] = row
    assert "not JSON" in str(Preview.of(row).error)


# -- Limits -----------------------------------------------------------------------------------------------------------


def test_what_is_too_long_is_cut_and_says_how_much() -> None:
    found = sources.frozen_preview(Preview(text="x" * 9_234))
    assert (found["text"], found["cut"]) == ("x" * 8000, ["1,234 more characters of the text are left out."])
    assert sources.frozen_preview(Preview(text="x" * 8001))["cut"] == ["1 more character of the text is left out."]
    assert len(sources.frozen_preview(Preview(error="x" * 9000))["error"]) == 500


def test_a_table_that_is_too_large_is_cut_and_says_how_much() -> None:
    table = {"columns": [str(n) for n in range(14)], "rows": [["a" * 501, *["b"] * 13]] * 60}
    found = sources.frozen_preview(Preview(table=table))
    assert {len(row) for row in [found["table"]["columns"], *found["table"]["rows"]]} == {12}
    left_out = 60 - len(found["table"]["rows"])
    assert found["cut"] == [
        f"{left_out} more rows are left out.",
        "2 more columns are left out.",
        f"{60 - left_out} more characters of long values are left out.",
    ]
    assert sum(len(cell) for row in found["table"]["rows"] for cell in row) <= sources.LONGEST_TABLE
    many = sources.frozen_preview(Preview(table={"columns": ["n"], "rows": [["1"]] * 51}))
    assert many["cut"] == ["1 more row is left out."]


def test_a_change_of_what_is_left_out_is_a_change() -> None:
    one, other = (sources.frozen_preview(Preview(text="x" * 9000 + end)) for end in "ab")
    assert one["text"] == other["text"]
    assert canonical.dumps(one) != canonical.dumps(other)


def test_a_preview_within_the_limits_is_kept_whole() -> None:
    assert sources.frozen_preview(Preview(table=TABLE)) == {"text": None, "table": TABLE, "error": None, "cut": []}


@each_row("value", ["\x00\u202e\ud800", "x" * 300_000], ids=["odd characters", "huge"])
def test_no_text_keeps_the_call_from_being_asked_about_and_run(value: str, bob: User, previews: list[Any]) -> None:
    assert shown(bob, previews, Preview(text=value))["text"] == value[:8000]
    call = ToolCall.objects.get()
    say_yes(bob, call)
    assert run(call)
