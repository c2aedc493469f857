"""Model endpoints over REST: kept by administrators, chosen in conversations, their keys in no answer."""

from typing import Any

from django.contrib.auth.models import User

from hitlchat.agent import usage
from hitlchat.agent.answer import Tokens
from hitlchat.agent.model_client import Endpoint
from hitlchat.agent.models import Conversation, Message, ModelEndpoint, Role, Run
from tests.api.conftest import Program, problem
from tests.api.described import described
from tests.scripted_model import ScriptedModel, scripted_model, text

__all__ = ["scripted_model"]

KEY = "sk-of-the-shop-4711"
SHOP = {"name": "shop", "baseUrl": "https://models.example/v1", "model": "large", "key": KEY}


def test_an_endpoint_is_added_changed_and_removed_and_its_key_never_comes_back(alices: Program) -> None:
    made = alices.post("/endpoints", SHOP | {"otherModels": ["small"], "inputPrice": 0.15, "outputPrice": 2})
    found = described(made)
    assert (made.status_code, found["hasKey"], found["keyReference"], found["enabled"]) == (201, True, "", True)
    assert (found["inputPrice"], found["outputPrice"], found["otherModels"]) == (0.15, 2, ["small"])
    assert found["api"] == "chat"
    changed = alices.patch("/endpoints/shop", {"contextLength": 8192, "images": False, "api": "responses"})
    assert (described(changed)["contextLength"], changed.json()["hasKey"], changed.json()["api"]) == (
        8192,
        True,
        "responses",
    )
    read, listed = alices.get("/endpoints/shop"), alices.get("/endpoints")
    assert [each["name"] for each in described(listed)] == ["environment", "shop"]
    answers = [made, changed, read, listed]
    assert [each for each in answers if KEY in each.content.decode()] == []
    referred = described(alices.patch("/endpoints/shop", {"key": "${SHOP_KEY}"}))
    assert (referred["hasKey"], referred["keyReference"]) == (True, "${SHOP_KEY}")
    assert alices.delete("/endpoints/shop").status_code == 204
    problem(alices.get("/endpoints/shop"), 404)


def test_what_cannot_be_names_its_field(alices: Program) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"baseUrl": "models.example"}, "baseUrl"),
        ({"keyHeader": "Cookie"}, "keyHeader"),
        ({"inputPrice": -1}, "inputPrice"),
        ({"contextLength": "many"}, "contextLength"),
        ({"isDefault": False}, "isDefault"),
        ({"surprise": 1}, "surprise"),
    ]
    for more, field in rows:
        assert list(problem(alices.post("/endpoints", SHOP | more), 422)["errors"]) == [field]
    problem(alices.post("/endpoints", SHOP | {"enabled": False, "isDefault": True}), 422)
    assert not ModelEndpoint.objects.exists()
    alices.post("/endpoints", SHOP)
    assert list(problem(alices.post("/endpoints", SHOP | {"name": "Shop"}), 409)["errors"]) == ["name"]


def test_the_endpoint_of_the_environment_is_read_only(alices: Program) -> None:
    found = described(alices.get("/endpoints/environment"))
    assert (found["source"], found["isDefault"]) == ("environment", True)
    assert list(problem(alices.patch("/endpoints/environment", {"model": "x"}), 422)["errors"]) == ["model"]
    problem(alices.delete("/endpoints/environment"), 422)


def test_new_conversations_begin_with_what_an_administrator_says(alices: Program, bobs: Program) -> None:
    alices.post("/endpoints", SHOP | {"isDefault": True})
    assert described(alices.get("/endpoints/environment"))["isDefault"] is False
    assert described(bobs.post("/conversations", {}))["endpoint"] == "shop"
    problem(alices.delete("/endpoints/shop"), 409)
    assert described(alices.patch("/endpoints/environment", {"isDefault": True}))["isDefault"] is True
    assert described(bobs.post("/conversations", {}))["endpoint"] == "environment"


def test_only_administrators_see_endpoints_and_no_api_token_changes_them(
    alices: Program, bobs: Program, machine: Program
) -> None:
    alices.post("/endpoints", SHOP)
    for answer in (bobs.get("/endpoints"), bobs.get("/endpoints/shop"), bobs.post("/endpoints/shop/test")):
        problem(answer, 403)
    assert machine.get("/endpoints").status_code == 200
    problem(machine.patch("/endpoints/shop", {"enabled": False}), 403)
    problem(machine.delete("/endpoints/shop"), 403)


def test_a_conversation_chooses_among_what_enabled_endpoints_offer(alices: Program, bobs: Program) -> None:
    alices.post("/endpoints", SHOP | {"otherModels": ["small"]})
    made = described(bobs.post("/conversations", {"endpoint": "shop", "model": "small"}))
    assert (made["endpoint"], made["model"], made["trouble"]) == ("shop", "small", "")
    path = f"/conversations/{made['id']}"
    assert list(problem(bobs.patch(path, {"model": "huge"}), 422)["errors"]) == ["model"]
    assert list(problem(bobs.patch(path, {"endpoint": "nowhere"}), 422)["errors"]) == ["endpoint"]
    assert described(bobs.patch(path, {"endpoint": "environment"}))["model"] == ""
    described(bobs.patch(path, {"endpoint": "shop"}))
    alices.patch("/endpoints/shop", {"enabled": False})
    assert described(bobs.get(path))["trouble"].startswith(
        "The model endpoint “shop” of this conversation is disabled."
    )
    problem(bobs.post("/conversations", {"endpoint": "shop"}), 422)


def test_an_endpoint_is_tested_and_its_models_listed(alices: Program, scripted_model: ScriptedModel) -> None:
    alices.post("/endpoints", SHOP | {"baseUrl": scripted_model.base_url})
    scripted_model.enqueue(text("ready"))
    tried = described(alices.post("/endpoints/shop/test"))
    assert (tried["ok"], tried["answer"], tried["error"]) == (True, "ready", "")
    assert described(alices.get("/endpoints/shop/models")) == {"models": ["scripted"], "error": ""}
    assert scripted_model.keys == [f"Bearer {KEY}"]


def test_everyone_reads_which_models_there_are(alices: Program, bobs: Program) -> None:
    alices.post("/endpoints", SHOP | {"otherModels": ["small"], "isDefault": True})
    alices.post("/endpoints", SHOP | {"name": "off", "enabled": False})
    found = [(each["endpoint"], each["model"], each["isDefault"]) for each in described(bobs.get("/models"))]
    assert found[1:] == [("shop", "large", True), ("shop", "small", False)]
    assert found[0][0] == "environment"


def test_what_answers_took_is_told_of_message_run_and_conversation(bob: User, bobs: Program) -> None:
    made = Conversation.objects.create(owner=bob, title="counted")
    run = Run.objects.create(conversation=made, status="done")
    row = Message.objects.create(conversation=made, run=run, seq=1, role=Role.ASSISTANT, content="Here.")
    assert described(bobs.get(f"/conversations/{made.pk}"))["usage"] is None
    usage.add(made, Endpoint("", "", "m"), Tokens(100, 20, 64, 12), run_id=run.pk, message_id=row.pk)
    expected = {"inputTokens": 100, "outputTokens": 20, "cachedTokens": 64, "reasoningTokens": 12}
    whole = described(bobs.get(f"/conversations/{made.pk}"))
    told = [whole["usage"], whole["messages"][0]["usage"], described(bobs.get(f"/runs/{run.pk}"))["usage"]]
    assert told == [expected | {"cost": None, "currency": "USD"}] * 3
