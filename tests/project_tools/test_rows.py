"""The catalog follows the code when a server starts, and is left alone when there is nothing to do."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hitlchat.gate.models import Tool
from hitlchat.gate.status import Status
from hitlchat.project_tools import DECLARED, tool
from hitlchat.project_tools.source import after_migrate, keep_in_step
from tests.conftest import MakeTool
from tests.gate.asking import ask, fresh, run
from tests.project_tools.conftest import Offer

pytestmark = pytest.mark.django_db(transaction=True)


def refund(order: str) -> str:
    """Pay money back."""
    return order


def test_a_function_is_in_the_catalog_after_the_start(offer: Offer) -> None:
    tool(risk=3, title="Refund an order", deadline_seconds=60, destructive=True)(refund)
    offer()
    row = Tool.objects.get()
    assert (row.name, row.title, row.description, row.source) == (
        "refund",
        "Refund an order",
        "Pay money back.",
        "project",
    )
    assert (row.published, row.hitl_mode, row.risk_level, row.deadline_seconds) == (True, "REQUIRED", 5, 60)
    assert row.origin == "Function tests.project_tools.test_rows.refund of this server's own project"
    assert row.facts[-1] == "Can permanently delete data."


def test_nothing_is_written_when_nothing_changed(offer: Offer) -> None:
    tool(risk=3)(refund)
    offer()
    before = Tool.objects.get().updated_at
    with CaptureQueriesContext(connection) as queries:
        offer()
    assert [query["sql"].split()[0] for query in queries] == ["SELECT"]
    assert Tool.objects.get().updated_at == before


def test_what_stands_in_the_code_wins_over_what_is_stored(bob: User, offer: Offer) -> None:
    tool(risk=3)(refund)
    offer()
    call = ask(bob, Tool.objects.get(), {"order": "A"})
    Tool.objects.update(hitl_mode="DISABLED", risk_level=0, published=False)
    offer()
    row = Tool.objects.get()
    assert (row.hitl_mode, row.risk_level, row.published) == ("REQUIRED", 3, True)
    assert fresh(call).status == Status.WAITING


def test_what_an_older_rule_allowed_is_withdrawn(bob: User, offer: Offer) -> None:
    tool(risk=0)(refund)
    offer()
    call = ask(bob, Tool.objects.get(), {"order": "A"})
    assert call.status == Status.ALLOWED
    DECLARED.clear()
    tool(risk=0, hitl="CONDITIONAL")(refund)
    offer()
    assert fresh(call).reason == "Not run: the rule that allowed it was changed."


@pytest.mark.servers("row locks tell two at a time apart")
def test_a_function_that_is_gone_takes_its_tool_along_and_leaves_the_record(bob: User, offer: Offer) -> None:
    tool(risk=3)(refund)
    offer()
    call = ask(bob, Tool.objects.get(), {"order": "A"})
    DECLARED.clear()
    offer()
    call = fresh(call)
    assert not Tool.objects.exists()
    assert (call.status, call.tool_name) == (Status.WITHDRAWN, "refund")
    assert call.reason == "Not run: the function was removed from this server's project."


def test_a_name_that_another_tool_has_is_not_taken_over(
    make_tool: MakeTool, bob: User, offer: Offer, caplog: pytest.LogCaptureFixture
) -> None:
    authored = make_tool("refund")
    tool(risk=0)(refund)
    offer()
    row = Tool.objects.get()
    assert (row.pk, row.source, row.hitl_mode) == (authored.pk, "studio", "REQUIRED")
    assert "refund is not offered: another tool has the name refund" in caplog.text
    DECLARED.clear()
    offer()
    assert Tool.objects.get().source == "studio"


@pytest.mark.servers("row locks tell two at a time apart")
def test_servers_that_start_at_once_make_one_row(offer: Offer) -> None:
    tool(risk=3)(refund)
    offer()
    Tool.objects.all().delete()
    together = Barrier(4)

    def start(_: int) -> None:
        together.wait(40)
        try:
            keep_in_step()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(start, range(4)))
    assert Tool.objects.get().name == "refund"


@pytest.mark.servers("row locks tell two at a time apart")
def test_migrating_brings_the_rows_in_step(offer: Offer) -> None:
    tool(risk=3)(refund)
    offer()
    Tool.objects.all().delete()
    call_command("migrate", verbosity=0)
    assert Tool.objects.get().name == "refund"


class StateOfAnotherVersion:
    """Of the app registry as a migration leaves it, what is asked for."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def get_model(self, *_: str) -> Any:
        if self._model is None:
            raise LookupError
        return self._model


@pytest.mark.parametrize("model", [None, User], ids=["no table", "other columns"])
def test_a_table_of_another_version_is_left_alone(model: Any, offer: Offer) -> None:
    tool(risk=3)(refund)
    offer()
    Tool.objects.all().delete()
    after_migrate(using="default", apps=StateOfAnotherVersion(model))
    assert not Tool.objects.exists()


def test_a_function_that_changed_only_by_its_preview_is_another_one(offer: Offer) -> None:
    tool(risk=3)(refund)
    offer()
    before = Tool.objects.get().definition_hash
    DECLARED.clear()
    tool(risk=3, preview=_preview)(refund)
    offer()
    assert Tool.objects.get().definition_hash != before


def _preview(order: str) -> str:
    return order


def test_the_gate_offers_it_to_programs_like_every_tool(alice: User, client: Client, offer: Offer) -> None:
    tool(risk=0)(refund)
    offer()
    client.force_login(alice)
    assert [each["name"] for each in client.get("/api/tools").json()] == ["refund"]
    assert client.patch("/api/tools/refund", {"hitlMode": "DISABLED"}, "application/json").status_code == 404
    assert client.delete("/api/tools/refund").status_code == 404
    call = ask(alice, Tool.objects.get(), {"order": "A"}, kind="api")
    assert run(call)
