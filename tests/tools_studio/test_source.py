"""Authored tools, executed through the gate."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.settling import settled
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tests.conftest import MakeTool, caller
from tools_studio.library.install import install
from tools_studio.models import Shipment, StoreEntry

KEEPS = 'from hitl import store\n\n\ndef run(key: str, value: int) -> list:\n    """Keep."""\n    store.set(key, value)\n    return store.keys()\n'  # noqa: E501

pytestmark = pytest.mark.django_db(transaction=True)


def call(user: User, name: str, **arguments: Any) -> ToolCall:
    async def both() -> ToolCall:
        submitted = await submit(CallRequest(name, arguments, caller(user)))
        return await settled(submitted.pk, 20)

    return async_to_sync(both)()


def test_a_tool_gets_its_arguments_and_gives_its_result(make_tool: MakeTool, alice: User) -> None:
    make_tool("echo", hitl_mode="DISABLED")
    done = call(alice, "echo", text="héllo \x00")
    assert (done.status, done.result) == (Status.SUCCEEDED, "héllo \x00")


def test_a_failing_tool_names_its_line(make_tool: MakeTool, alice: User) -> None:
    make_tool("fails", hitl_mode="DISABLED", code='def run() -> str:\n    """Fail."""\n    raise ValueError("no")\n')
    done = call(alice, "fails")
    assert (done.status, done.error) == (Status.FAILED, {"kind": "error", "message": "ValueError: no", "line": 3})


def test_what_a_tool_prints_is_kept_beside_its_result(make_tool: MakeTool, alice: User) -> None:
    make_tool(
        "prints", hitl_mode="DISABLED", code='def run() -> int:\n    """Print."""\n    print("look")\n    return 1\n'
    )
    done = call(alice, "prints")
    assert (done.result, done.output) == (1, "look\n")


def test_a_store_belongs_to_its_group(make_tool: MakeTool, alice: User) -> None:
    for name, group in (("first", "one"), ("second", "two")):
        make_tool(name, code=KEEPS, group=group, capabilities={"store": True}, hitl_mode="DISABLED")
    assert call(alice, "first", key="a", value=1).result == ["a"]
    assert call(alice, "second", key="b", value=2).result == ["b"]
    assert StoreEntry.objects.filter(group="one").count() == 1


def test_a_store_keeps_no_value_that_is_too_large(make_tool: MakeTool, alice: User) -> None:
    code = KEEPS.replace("store.set(key, value)", 'store.set(key, "x" * 70000)')
    make_tool("keeps", code=code, capabilities={"store": True}, hitl_mode="DISABLED")
    done = call(alice, "keeps", key="a", value=1)
    assert done.status == Status.FAILED
    assert "65,536" in done.error["message"]
    assert not StoreEntry.objects.exists()


def test_a_draft_is_in_nobodys_catalog(make_tool: MakeTool, alice: User) -> None:
    make_tool("echo", published=False, hitl_mode="DISABLED")
    refused = call(alice, "echo", text="x")
    assert (refused.status, "no tool" in refused.reason) == (Status.REJECTED, True)


def test_the_library_is_installed_once_and_a_deleted_tool_stays_deleted(alice: User) -> None:
    assert install() == 6
    Tool.objects.get(name="convert_units").delete()
    assert install() == 0
    assert not Tool.objects.filter(name="convert_units").exists()
    assert Shipment.objects.count() == 6


def test_the_tools_that_change_orders_ask_first(alice: User) -> None:
    install()
    asks = set(Tool.objects.filter(hitl_mode="REQUIRED").values_list("name", flat=True))
    assert asks == {"cancel_order", "refund_order"}
    assert call(alice, "get_order", order_id="4711").status == Status.SUCCEEDED
