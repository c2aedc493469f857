"""The history as a file: whole, masked, and on record before its first byte."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import AsyncClient, Client

from hitlchat.approvals.history.listing import Filters
from hitlchat.base.download import END
from hitlchat.gate import decide
from hitlchat.gate.history import finding
from hitlchat.gate.history.finding import COLUMNS
from hitlchat.gate.models import AuditEvent, Decision, ToolCall, new_id
from tests.conftest import signed_in
from tests.gate.asking import approval_of, approved, ask, recording
from tests.gate.racing import database_fails_at

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "hunter2-Zq9"


def export(client: Client, form: str, **filters: str) -> str:
    response = client.post("/history/export", {"format": form, **filters})
    assert response.status_code == 200, response.content
    assert response.streaming
    return response.getvalue().decode()


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def bobs(bob: User, client: Client) -> Client:
    client.force_login(bob)
    return client


def test_both_kinds_have_all_that_the_filter_finds_and_say_where_they_end(bobs: Client, bob: User) -> None:
    tool = recording()
    first, second = approved(bob, tool), ask(bob, tool)
    decide.decline(approval_of(second).pk, signed_in(bob), reason="Not now")
    ask(bob, recording("free", mode="DISABLED"))
    *rows, end = lines(export(bobs, "jsonl", tool="refund"))
    assert [row["id"] for row in rows] == [str(second.pk), str(first.pk)]
    assert end == {"id": END, "rows": 2}
    declined = rows[0]
    assert declined.keys() == COLUMNS.keys()
    assert (declined["outcome"], declined["deciders"], declined["person"]) == ("declined", ["bob"], "bob")
    assert declined["decisions"][0]["reason"] == "Not now"
    assert declined["secondsToDecide"] >= 0
    *cells, last = table(export(bobs, "csv", tool="refund"))
    assert [row["id"] for row in cells] == [row["id"] for row in rows]
    assert json.loads(cells[0]["decisions"]) == declined["decisions"]
    assert (last["id"], last["requestedAt"]) == (END, "2")


@pytest.mark.guarantee("audit:complete")
def test_an_export_is_on_record_with_its_filter_and_how_much_it_was(bobs: Client, bob: User) -> None:
    ask(bob, recording())
    export(bobs, "csv", tool="refund", outcome="waiting", hurried="", risk="2")
    event = AuditEvent.objects.get(name="history.exported")
    assert (event.actor, event.means, event.call) == (bob, "session", None)
    filters = event.data["filter"]
    assert filters.pop("until")
    assert filters == {"tool": "refund", "outcome": "waiting", "risk": 2}
    assert (event.data["format"], event.data["rows"]) == ("csv", 1)


@pytest.mark.guarantee("gate:fail-closed")
def test_what_cannot_be_put_on_record_is_not_exported(bobs: Client, bob: User) -> None:
    ask(bob, recording())
    with database_fails_at('INSERT INTO "gate_auditevent"'), pytest.raises(OperationalError):
        bobs.post("/history/export", {"format": "csv"})
    assert not AuditEvent.objects.filter(name="history.exported").exists()


def test_a_wrong_filter_format_or_request_exports_nothing_and_is_named(bobs: Client) -> None:
    assert bobs.get("/history/export").status_code == 405
    assert Client().post("/history/export", {"format": "csv"}).status_code == 302
    for sent, field in (({"format": "xml"}, "format"), ({"format": "csv", "risk": "9"}, "risk"), ({}, "format")):
        response = bobs.post("/history/export", sent)
        assert response.status_code == 422
        assert f"<code>{field}</code>" in response.content.decode()
    assert not AuditEvent.objects.exists()


@pytest.mark.guarantee("gate:only-people")
def test_nobody_exports_what_they_may_not_see(alice: User, bob: User, charlie: User, client: Client) -> None:
    ask(bob, recording())
    for user, count in ((charlie, 0), (alice, 1), (bob, 1)):
        client.force_login(user)
        assert lines(export(client, "jsonl"))[-1]["rows"] == count


@pytest.mark.guarantee("SR-44")
def test_secrets_leave_in_neither_kind(bobs: Client, bob: User) -> None:
    tool = recording("free", mode="DISABLED")
    call = ask(bob, tool, {"text": f"curl -H 'Authorization: Bearer {SECRET}'"})
    ToolCall.objects.filter(pk=call.pk).update(
        result={"db": [{"password": SECRET}], "url": f"postgresql://x:{SECRET}@db/y"},
        error={"kind": "error", "message": f"token={SECRET}", "line": None},
        output=f"Password={SECRET};",
    )
    asked = approved(bob, recording(prompt_template="Send {args.text}"), {"text": f"api_key: {SECRET}"})
    Decision.objects.filter(approval__call=asked).update(
        reason=f"secret={SECRET}", edited_arguments={"clientSecret": SECRET}
    )
    for form in finding.FORMATS:
        text = export(bobs, form)
        assert SECRET not in text
        assert text.count("•••") + text.count("\\u2022\\u2022\\u2022") >= 8
    # What is secret by its name is hidden wherever else the call has it.
    schema = {"type": "object", "properties": {"password": {"type": "string"}}}
    named = recording("named", prompt_template="Sign in with {args.password}", input_schema=schema)
    call = ask(bob, named, {"password": SECRET})
    ToolCall.objects.filter(pk=call.pk).update(output=f"Signed in with {SECRET} as bob")
    row, _ = lines(export(bobs, "jsonl", tool="named"))
    assert (row["prompt"], row["output"]) == ("Sign in with •••", "Signed in with ••• as bob")
    assert SECRET not in export(bobs, "csv")


def test_every_column_is_documented_in_its_order() -> None:
    text = Path("docs/history.md").read_text(encoding="utf-8")
    assert "\n".join(f"| `{name}` | {words} |" for name, words in COLUMNS.items()) in text
    assert END in text
    assert all(f"`{name}`" in text for name in Filters({}).fields)


def test_a_cell_is_never_a_formula(bobs: Client, bob: User) -> None:
    call = ask(bob, recording("free", mode="DISABLED"))
    for reason, output, name in (("=1+1", "@SUM(A1)", "-2"), ("  =1+1", "\n=1", "\uff1d2")):
        ToolCall.objects.filter(pk=call.pk).update(reason=reason, output=output, tool_name=name)
        (row, _) = table(export(bobs, "csv"))
        assert (row["reason"], row["output"], row["toolName"]) == (f"'{reason}", f"'{output}", f"'{name}")


async def test_it_goes_beyond_one_page_and_streams_under_asgi(bob: User) -> None:
    call = await ToolCall.objects.acreate(tool_name="x", status="succeeded", caller_kind="api", caller=bob)
    columns = await ToolCall.objects.filter(pk=call.pk).values().aget()
    await ToolCall.objects.abulk_create(ToolCall(**columns | {"id": new_id()}) for _ in range(2 * finding.AT_ONCE))
    client = AsyncClient()
    await client.aforce_login(bob)
    response: Any = await client.post("/history/export", {"format": "jsonl"})
    assert response.is_async
    *rows, end = lines("".join([chunk.decode() async for chunk in response.streaming_content]))
    assert len({row["id"] for row in rows}) == end["rows"] == 2 * finding.AT_ONCE + 1
