"""“A signed-in person must decide” in the Studio: turned on by whoever may author, off by people who mean it."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from hitlchat.accounts.models import TokenKind
from hitlchat.gate.models import Tool
from tests.api.conftest import ProgramOf, problem, program_of
from tests.conftest import MakeTool, signed_in
from tests.tools_studio.conftest import save
from tools_studio import authoring, exchange, importing, versions
from tools_studio.models import ScriptVersion

__all__ = ["program_of"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.guarantee("gate:only-people")]


@pytest.fixture
def strict(make_tool: MakeTool) -> Tool:
    return make_tool("echo", hitl_mode="REQUIRED", signed_in_only=True)


def stands() -> bool:
    return Tool.objects.get(name="echo").signed_in_only


def test_the_form_turns_it_on_at_once(author: Client, make_tool: MakeTool) -> None:
    make_tool("echo", hitl_mode="REQUIRED")
    assert save(author, signed_in_only="on").status_code == 302
    assert stands()


def test_the_form_turns_it_off_only_if_that_is_meant(author: Client, strict: Tool) -> None:
    page = save(author).content.decode()
    assert "The word of an MCP client would be enough. Confirm it below, then save." in page
    assert stands()
    assert save(author, lower_anyway="on").status_code == 302
    assert not stands()


@pytest.mark.parametrize(
    "most,said", [(2, "This is always the case above L2."), (4, "This is always the case above L4."), (5, "")]
)
def test_the_form_says_from_which_risk_on_it_is_always_so(
    most: int, said: str, author: Client, strict: Tool, settings: Settings
) -> None:
    settings.HITL_ELICITATION_MAX_RISK = most
    page = author.get("/studio/tools/echo").content.decode()
    assert said in page if said else "always the case" not in page


@pytest.mark.guarantee("SR-27")
def test_a_program_may_turn_it_on_and_not_off(alice: User, make_tool: MakeTool, program_of: ProgramOf) -> None:
    make_tool("echo", hitl_mode="REQUIRED")
    machine, person = program_of(alice, TokenKind.API), program_of(alice)
    assert machine.patch("/tools/echo", {"signedInOnly": True}).json()["signedInOnly"] is True
    problem(machine.patch("/tools/echo", {"signedInOnly": False}), 403)
    # What is left out stays.
    assert machine.patch("/tools/echo", {"deadlineSeconds": 60}).json()["signedInOnly"] is True
    problem(person.patch("/tools/echo", {"signedInOnly": False}), 409)
    body = {"signedInOnly": False, "confirmLowering": True}
    assert person.patch("/tools/echo", body).json()["signedInOnly"] is False


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("wanted", [True, False, None])
def test_an_import_never_turns_it_off(here: bool, wanted: bool | None, alice: User, make_tool: MakeTool) -> None:
    make_tool("echo", hitl_mode="REQUIRED", signed_in_only=here)
    document = exchange.document(Tool.objects.all())
    document["tools"][0] |= {"signedInOnly": wanted, "title": "Another"}
    if wanted is None:
        # An export from before there was the setting.
        del document["tools"][0]["signedInOnly"]
    importing.carry_out(exchange.read_document(document), "replace", signed_in(alice), confirmed=True)
    assert (Tool.objects.get().title, stands()) == ("Another", here or bool(wanted))


def test_what_differs_from_a_file_in_nothing_but_being_stricter_is_the_same(alice: User, strict: Tool) -> None:
    document = exchange.document(Tool.objects.all())
    document["tools"][0]["signedInOnly"] = False
    made = importing.carry_out(exchange.read_document(document), "replace", signed_in(alice), confirmed=True)
    assert [step.action for step in made.steps] == ["same"]


def test_an_earlier_version_does_not_turn_it_off(alice: User, make_tool: MakeTool) -> None:
    tool = make_tool("echo", hitl_mode="REQUIRED")
    authoring.amend(tool, {"signed_in_only": True, "title": "Another"}, signed_in(alice), confirmed=True)
    (save_of_it, _) = versions.saves(ScriptVersion.objects.all())
    assert save_of_it.words == "title, signed-in person decides"
    restored = authoring.restore(ScriptVersion.objects.get(number=1), signed_in(alice), confirmed=True)
    assert (restored.title, restored.signed_in_only) == ("", True)
