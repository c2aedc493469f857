"""Tool sets and presets over REST: kept by administrators, chosen in conversations."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from hitlchat.agent.models import Conversation, Preset, ToolSet
from hitlchat.gate.status import Status
from tests.api.conftest import Program, called, problem
from tests.api.described import described
from tests.conftest import MakeTool

ORDERS = {"name": "Order desk", "description": "Orders", "tools": ["refund"]}
PRESET = {
    "name": "Order desk",
    "instructions": "Look it up first.",
    "toolSet": "Order desk",
    "starters": ["Where is order 42?"],
    "temperature": 0.2,
    "asks": "risky",
    "published": True,
}
AT = "/tool-sets/Order%20desk"
PRESET_AT = "/presets/Order%20desk"


@pytest.fixture
def alices(alices: Program, make_tool: MakeTool) -> Program:
    for name in ("refund", "look"):
        make_tool(name, hitl_mode="DISABLED")
    return alices


@pytest.fixture
def orders(alices: Program) -> dict[str, Any]:
    made: dict[str, Any] = described(alices.post("/tool-sets", ORDERS))
    return made


# -- Tool sets ---------------------------------------------------------------------------------------------------------


def test_a_set_is_added_changed_and_removed(alices: Program, orders: dict[str, Any], bobs: Program) -> None:
    assert {name: orders[name] for name in ORDERS} == ORDERS
    changed = alices.patch(AT, {"tools": ["look", "refund", "ask_user"]})
    assert described(changed)["tools"] == ["ask_user", "look", "refund"]
    assert described(bobs.get(AT)) == described(alices.get("/tool-sets"))[0] == changed.json()
    assert alices.delete(AT).status_code == 204
    problem(alices.get(AT), 404)
    assert described(alices.get("/tool-sets")) == []


def test_new_conversations_begin_with_one_at_a_time(alices: Program, orders: dict[str, Any], bobs: Program) -> None:
    assert described(alices.patch(AT, {"isDefault": True}))["isDefault"]
    made = described(bobs.post("/conversations", {}))
    assert (made["toolSet"], made["tools"]) == ("Order desk", ["refund"])
    problem(alices.delete(AT), 409)
    described(alices.post("/tool-sets", {"name": "Other", "isDefault": True}))
    assert [each["isDefault"] for each in alices.get("/tool-sets").json()] == [False, True]
    assert not described(alices.patch("/tool-sets/Other", {"isDefault": False}))["isDefault"]
    assert described(bobs.post("/conversations", {}))["tools"] is None


def test_what_cannot_be_names_its_field(alices: Program) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"name": "a/b"}, "name"),
        ({"tools": [1]}, "tools.0"),
        ({"isDefault": "yes"}, "isDefault"),
        ({"surprise": 1}, "surprise"),
    ]
    for more, field in rows:
        assert list(problem(alices.post("/tool-sets", ORDERS | more), 422)["errors"]) == [field]
        assert not ToolSet.objects.exists()


def test_only_administrators_change_them_and_no_api_token(
    alices: Program, bobs: Program, machine: Program, orders: dict[str, Any]
) -> None:
    for program in (bobs, machine):
        problem(program.post("/tool-sets", ORDERS | {"name": "Mine"}), 403)
        problem(program.patch(AT, {"tools": ["look"]}), 403)
        problem(program.delete(AT), 403)
        problem(program.post("/presets", PRESET), 403)
    assert alices.get(AT).json() == orders
    assert list(problem(alices.post("/tool-sets", ORDERS), 409)["errors"]) == ["name"]


# -- What a conversation uses ------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_conversation_uses_all_tools_one_set_or_tools_picked_one_by_one(
    alices: Program, orders: dict[str, Any], bobs: Program, bob: User
) -> None:
    made = described(bobs.post("/conversations", {"toolSet": "Order desk"}))
    path = f"/conversations/{made['id']}"
    assert (made["toolSet"], made["tools"], made["toolTrouble"]) == ("Order desk", ["refund"], "")

    def allowed() -> list[bool]:
        found = (called(bob, name, {}, conversation_id=made["id"]) for name in ("refund", "look"))
        return [call.status == Status.ALLOWED for call in found]

    assert allowed() == [True, False]
    picked = described(bobs.patch(path, {"tools": ["look"]}))
    assert (picked["toolSet"], picked["tools"], allowed()) == (None, ["look"], [False, True])
    everything = described(bobs.patch(path, {"tools": None}))
    assert (everything["toolSet"], everything["tools"], allowed()) == (None, None, [True, True])
    again = described(bobs.patch(path, {"toolSet": "Order desk"}))
    assert (again["toolSet"], again["tools"], allowed()) == ("Order desk", ["refund"], [True, False])
    alices.delete(AT)
    gone = described(bobs.get(path))
    assert (gone["toolSet"], gone["tools"], allowed()) == ("Order desk", [], [False, False])
    assert gone["toolTrouble"].startswith("This conversation's tool set “Order desk” was removed")
    assert described(bobs.patch(path, {"toolSet": None}))["tools"] is None


def test_a_choice_that_cannot_be_names_its_field_and_changes_nothing(orders: dict[str, Any], bobs: Program) -> None:
    made = bobs.post("/conversations", {"tools": ["refund"]}).json()
    for body, field in [
        ({"toolSet": "Nothing"}, "toolSet"),
        ({"toolSet": "Order desk", "tools": ["look"]}, "toolSet"),
        ({"tools": ["nothing"]}, "tools"),
        ({"tools": "look"}, "tools"),
        ({"toolSet": 1}, "toolSet"),
    ]:
        for answer in (bobs.patch(f"/conversations/{made['id']}", body), bobs.post("/conversations", body)):
            assert list(problem(answer, 422)["errors"]) == [field]
        assert bobs.get(f"/conversations/{made['id']}").json()["tools"] == ["refund"]
        assert Conversation.objects.count() == 1


# -- Presets -----------------------------------------------------------------------------------------------------------


def test_a_preset_is_added_changed_chosen_and_deleted(alices: Program, orders: dict[str, Any], bobs: Program) -> None:
    made = described(alices.post("/presets", PRESET))
    assert {name: made[name] for name in PRESET} == PRESET
    assert (made["endpoint"], made["model"], made["maxTokens"]) == (None, "", None)
    assert [each["name"] for each in described(bobs.get("/presets"))] == ["Order desk"]
    begun = described(bobs.post("/conversations", {"preset": "Order desk", "temperature": None}))
    assert (begun["preset"], begun["leastAsks"], begun["asks"]) == ("Order desk", "risky", "risky")
    assert (begun["instructions"], begun["toolSet"], begun["temperature"]) == ("Look it up first.", "Order desk", None)
    problem(alices.delete(AT), 409)
    changed = described(alices.patch(PRESET_AT, {"published": False, "endpoint": "environment", "temperature": None}))
    assert (changed["published"], changed["endpoint"], changed["temperature"]) == (False, "environment", None)
    assert described(bobs.get("/presets")) == []
    problem(bobs.get(PRESET_AT), 404)
    assert [each["name"] for each in described(alices.get("/presets"))] == ["Order desk"]
    assert list(problem(bobs.post("/conversations", {"preset": "Order desk"}), 422)["errors"]) == ["preset"]
    assert alices.delete(PRESET_AT).status_code == 204
    assert described(bobs.get(f"/conversations/{begun['id']}")) == begun


def test_what_a_preset_cannot_be_names_its_field(alices: Program, orders: dict[str, Any]) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"toolSet": "Nothing"}, "toolSet"),
        ({"starters": ["x"] * 7}, "starters"),
        ({"maxTokens": 0}, "maxTokens"),
        ({"maxTurns": "5"}, "maxTurns"),
        ({"asks": "never"}, "asks"),
        ({"published": 1}, "published"),
        ({"surprise": 1}, "surprise"),
    ]
    for more, field in rows:
        assert list(problem(alices.post("/presets", PRESET | more), 422)["errors"]) == [field]
    assert not Preset.objects.exists()
    alices.post("/presets", PRESET)
    for more, field in rows:
        assert list(problem(alices.patch(PRESET_AT, more), 422)["errors"]) == [field]
