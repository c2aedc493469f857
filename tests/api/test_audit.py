"""The record, as JSON and as CSV."""

import csv
import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.utils import timezone
from pytest_django import Settings

from hitlchat.accounts.models import Token, TokenKind
from hitlchat.base.download import END
from hitlchat.gate import decide
from hitlchat.gate.models import AuditEvent, Seal
from hitlchat.record.sealing import seal_all
from tests.api.conftest import Ask, Program, ProgramOf, problem
from tests.conftest import signed_in

pytestmark = pytest.mark.servers("the SQL differs between the databases")


def names(response: Any) -> list[str]:
    return [event["name"] for event in response.json()]


def table(text: str) -> list[dict[str, str]]:
    *rows, end = csv.DictReader(io.StringIO(text))
    assert (end["id"], end["name"]) == (END, str(len(rows)))
    return rows


def test_only_an_administrator_reads_the_record(bob: User, program_of: ProgramOf) -> None:
    problem(program_of(bob).get("/audit"), 403)
    problem(program_of(bob).get("/audit", format="csv"), 403)


@pytest.mark.guarantee("audit:complete")
def test_the_record_has_what_was_asked_and_who_answered(
    bob: User, alices: Program, program_of: ProgramOf, ask: Ask
) -> None:
    approval = ask(bob)
    program_of(bob).post(f"/approvals/{approval.pk}/reject", {"reason": "No."})
    declined, waiting, _ = alices.get("/audit").json()
    assert (waiting["name"], declined["name"]) == ("call.waiting", "call.declined")
    assert (declined["actor"], declined["means"], declined["toolName"]) == ("bob", "token", "echo")
    assert declined["callId"] == str(approval.call_id)
    assert declined["data"]["reason"] == "No."
    assert declined.keys() == {"id", "name", "at", "callId", "toolName", "actor", "means", "words", "data", "batch"}


def test_the_record_is_filtered(bob: User, alices: Program, program_of: ProgramOf, ask: Ask) -> None:
    first, second = ask(bob, text="a"), ask(bob, text="b")
    program_of(bob).post(f"/approvals/{first.pk}/approve")
    assert names(alices.get("/audit", name="call.approved")) == ["call.approved"]
    assert names(alices.get("/audit", call=second.call_id)) == ["call.waiting"]
    now = timezone.now()
    assert len(names(alices.get("/audit", since=(now - timedelta(hours=1)).isoformat()))) == 4
    assert names(alices.get("/audit", since=(now + timedelta(hours=1)).isoformat())) == []
    assert names(alices.get("/audit", limit=1)) == ["call.approved"]
    last = AuditEvent.objects.latest("id").pk
    assert names(alices.get("/audit", before=last)) == ["call.waiting", "call.waiting", "tool.created"]
    for wrong in ({"since": "yesterday"}, {"since": "2026-01-01T00:00:00"}, {"call": "x"}, {"format": "xml"}):
        assert problem(alices.get("/audit", **wrong), 422)["errors"].keys() == wrong.keys()


def test_the_record_as_csv_has_every_event_in_order(
    bob: User, alices: Program, program_of: ProgramOf, ask: Ask
) -> None:
    approval = ask(bob)
    program_of(bob).post(f"/approvals/{approval.pk}/reject", {"reason": "No, thanks"})
    response = alices.get("/audit", format="csv")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response.streaming
    rows = table(response.getvalue().decode())
    assert [row["name"] for row in rows] == ["tool.created", "call.waiting", "call.declined"]
    assert '"reason":"No, thanks"' in rows[2]["data"]
    assert [
        row["name"] for row in table(alices.get("/audit", format="csv", name="call.declined").getvalue().decode())
    ] == ["call.declined"]


def test_a_cell_is_never_a_formula(alices: Program) -> None:
    evil = User.objects.create_user("@SUM", password=None)
    AuditEvent.objects.create(name="=1+1", actor=evil, means="-2")
    (row,) = table(alices.get("/audit", format="csv").getvalue().decode())
    assert (row["name"], row["actor"], row["means"]) == ("'=1+1", "'@SUM", "'-2")


async def test_the_csv_streams_under_asgi_and_goes_beyond_one_page(alice: User) -> None:
    await AuditEvent.objects.abulk_create(AuditEvent(name=f"test.{n}", means="system") for n in range(1203))
    token = await sync_to_async(Token.make)(alice, TokenKind.API)
    response: Any = await AsyncClient().get("/api/audit?format=csv", headers={"Authorization": f"Bearer {token}"})
    assert response.is_async
    text = "".join([chunk.decode() async for chunk in response.streaming_content])
    assert [row["name"] for row in table(text)] == [f"test.{n}" for n in range(1203)]


def test_an_event_says_which_batch_seals_it_and_the_seals_can_be_read(
    bob: User, alices: Program, program_of: ProgramOf, ask: Ask, settings: Settings, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path
    ask(bob)
    seal_all()
    ask(bob, text="b")
    assert [event["batch"] for event in alices.get("/audit").json()] == [None, 1, 1]
    (one,) = alices.get("/audit/seals").json()
    row = Seal.objects.get()
    assert (one["number"], one["count"], one["hash"], one["previous"], one["droppedAt"]) == (1, 2, row.hash, "", None)
    assert alices.get("/audit/seals", before=1).json() == []
    problem(program_of(bob).get("/audit/seals"), 403)


def test_that_the_record_was_taken_out_is_on_record(alice: User, alices: Program) -> None:
    alices.get("/audit", format="csv", name="call.declined")
    event = AuditEvent.objects.get(name="record.exported")
    assert (event.actor, event.data["format"], event.data["filters"]) == (alice, "csv", {"name": "call.declined"})


def test_no_secret_is_in_the_csv(alices: Program, bob: User, ask: Ask) -> None:
    approval = ask(bob, text="hello")
    edited = {"text": "curl -H 'Authorization: Bearer s3cr3t-t0ken'"}
    decide.approve(approval.pk, signed_in(bob), edited=edited)
    text = alices.get("/audit", format="csv").getvalue().decode()
    assert "s3cr3t-t0ken" not in text
    assert "Authorization: Bearer" in text
