"""The page of the rules, and the command that says the same."""

import json
import re
from html import unescape
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from hitlchat.gate import decide
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.gate.policies.loading import load
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approval_of, ask

pytestmark = pytest.mark.django_db(transaction=True)

HOSTILE = "Not \u202ehere <b>now</b>."


@pytest.fixture
def rules(settings: Settings, make_tool: MakeTool) -> None:
    settings.HITL_POLICIES = [
        {"policy": "never_ask", "tools": ["echo"]},
        {"policy": "deny_list", "tools": ["delete_*"], "reason": HOSTILE},
        {"policy": "user_group", "tools": ["*"], "people": "members", "groups": ["finance"], "verdict": "refuse"},
    ]
    make_tool("echo", hitl_mode="CONDITIONAL", example={"text": "as an example"})
    make_tool("look", hitl_mode="DISABLED")
    make_tool("draft", published=False)
    Group.objects.create(name="finance")


@pytest.fixture
def of(client: Client) -> Any:
    def sign_in(user: User) -> Client:
        client.force_login(user)
        return client

    return sign_in


def text_of(page: Client, path: str = "/policies", **query: str) -> str:
    response = page.get(path, query)
    assert response.status_code == 200
    return str(response.content.decode())


def made_up(**fields: str) -> dict[str, str]:
    return {"tool": "echo", "kind": "chat", "person": "alice", "arguments": "{}"} | fields


def test_everyone_signed_in_sees_the_rules_and_what_they_say_is_text(
    rules: None, client: Client, bob: User, of: Any
) -> None:
    for path in ("/policies", "/policies/example"):
        assert client.get(path).status_code == 302
    assert client.post("/policies/simulate").status_code == 302
    page = text_of(of(bob))
    assert '<option value="alice">' not in page
    assert "Do not ask about calls to echo" in page
    assert "HITL_POLICIES, entry 2" in page
    assert "&lt;b&gt;now&lt;/b&gt;" in page
    assert "\u202e" not in page
    assert "draft" not in page
    assert "Add a rule" not in page


def test_administrators_copy_an_example_that_loads(rules: None, alice: User, of: Any) -> None:
    example = re.search(r'id="example-rule">HITL_POLICIES=(.+?)</code>', text_of(of(alice)))
    assert example
    assert load(json.loads(unescape(example[1]).strip("'")))


def test_earned_rules_are_one_click_away_for_administrators(rules: None, alice: User, bob: User, of: Any) -> None:
    assert 'href="/policies/earned"' in text_of(of(alice))
    assert 'href="/policies/earned"' not in text_of(of(bob))


def test_what_can_run_unasked_is_for_those_who_answer_for_it(rules: None, alice: User, bob: User, of: Any) -> None:
    page = text_of(of(alice))
    assert "Tools that can run without asking" in page
    # Once for each row, as no rule tells callers apart.
    assert page.count("May run without asking") == page.count("whoever calls") == 2
    assert "Tools that can run without asking" not in text_of(of(bob))
    bob.user_permissions.add(Permission.objects.get(codename="decide_for_others"))
    assert "Tools that can run without asking" in text_of(of(bob))


@pytest.mark.guarantee("gate:truth")
def test_the_page_does_not_hide_that_grants_let_calls_run_unasked_too(
    alice: User, make_tool: MakeTool, of: Any
) -> None:
    make_tool("echo", hitl_mode="CONDITIONAL")
    page = text_of(of(alice))
    assert "Nothing: every call to a published tool asks or is refused, unless a" in page
    assert '<a href="/grants/">grant</a> covers' in page


def test_the_form_begins_with_the_example_of_the_tool_and_administrators_name_people(
    rules: None, alice: User, bob: User, of: Any
) -> None:
    page = text_of(of(alice), tool="echo")
    for words in ("as an example", "draft (draft: only tests in the Studio)", '<option value="bob">'):
        assert words in page
    assert "as an example" in text_of(of(alice), "/policies/example", tool="echo")
    assert "as an example" not in text_of(of(alice), "/policies/example", tool="look")
    assert of(alice).get("/policies/simulate")["Location"] == "/policies#simulate"


def test_a_made_up_call_tells_every_rule_and_leaves_nothing(rules: None, alice: User, of: Any) -> None:
    before = AuditEvent.objects.count()
    page = of(alice).post("/policies/simulate", made_up()).content.decode()
    assert "Would run without asking." in page
    assert "Not asked because a rule lets calls to this tool run." in page
    alice.groups.add(Group.objects.get(name="finance"))
    page = of(alice).post("/policies/simulate", made_up(), headers={"HX-Request": "true"}).content.decode()
    assert "Would be refused." in page
    assert "<h1>" not in page
    assert (ToolCall.objects.count(), AuditEvent.objects.count()) == (0, before)


def test_a_made_up_call_can_have_a_value_from_outside(
    alice: User, make_tool: MakeTool, of: Any, settings: Settings
) -> None:
    make_tool("echo", hitl_mode="CONDITIONAL", condition="args_from_outside")
    assert "Would run without asking." in of(alice).post("/policies/simulate", made_up()).content.decode()
    page = of(alice).post("/policies/simulate", made_up(outside="on")).content.decode()
    assert "Would ask a person." in page
    assert command("simulate", "echo", '{"text": "a"}', "--args-from-outside").startswith("ask: ")


def test_what_cannot_be_simulated_is_said_at_its_field(
    subtests: pytest.Subtests, rules: None, alice: User, of: Any
) -> None:
    for fields, told in [
        ({"arguments": "{"}, "not valid JSON"),
        ({"arguments": '{"text": 1}'}, "text"),
        ({"arguments": "[]"}, "must be a JSON object"),
        ({"person": "nobody"}, "Nobody has this name."),
        ({"tool": "nothing"}, "Select a valid choice"),
        ({"kind": "web"}, "Select a valid choice"),
    ]:
        with subtests.test(fields=fields):
            response = of(alice).post("/policies/simulate", made_up(**fields))
            assert response.status_code == 422
            assert told in response.content.decode()


def test_others_simulate_for_themselves_and_published_tools_only(rules: None, alice: User, bob: User, of: Any) -> None:
    alice.groups.add(Group.objects.get(name="finance"))
    assert 'name="person"' not in text_of(of(bob))
    # Whoever is named, it is about bob.
    assert "Would run without asking." in of(bob).post("/policies/simulate", made_up()).content.decode()
    for fields in ({"tool": "draft"}, {"kind": "studio"}):
        assert of(bob).post("/policies/simulate", made_up(**fields)).status_code == 422


def test_a_simulated_call_says_who_may_answer(rules: None, alice: User, make_tool: MakeTool, of: Any) -> None:
    make_tool("plain")
    make_tool("grave", signed_in_only=True)

    def told(tool: str, kind: str) -> str:
        answer = of(alice).post("/policies/simulate", made_up(tool=tool, kind=kind))
        assert answer.status_code == 200
        return str(answer.content.decode())

    assert "alice decides." in told("plain", "chat")
    assert "or through a client at which an administrator says they sit" in told("plain", "mcp")
    assert "the client&#x27;s answer is not enough" in told("grave", "mcp")
    assert "Set on the tool" in told("grave", "mcp")
    assert "decides" not in told("look", "mcp").partition('class="outcome"')[2]


def command(*words: str) -> str:
    out = StringIO()
    call_command("policy", *words, stdout=out)
    return out.getvalue()


def test_the_command_lists_and_simulates(rules: None, alice: User, bob: User) -> None:
    first = command("list").splitlines()[0]
    assert first.startswith("refuse  Refuse delete_*: Not  here")
    assert json.loads(command("list", "--json"))[0]["source"] == "HITL_POLICIES, entry 2"
    told = command("simulate", "echo", '{"text": "a"}', "--user", "bob", "--caller", "mcp")
    assert told.startswith("allow: Not asked because a rule lets calls to this tool run.\n")
    found = json.loads(command("simulate", "look", "--json"))
    assert (found["verdict"], [rule["policy"] for rule in found["rules"]]) == ("allow", ["mode"])
    assert ToolCall.objects.count() == 0


def test_the_command_says_what_it_cannot_simulate(subtests: pytest.Subtests, rules: None, alice: User) -> None:
    for words, told in [
        (("nothing",), "no published tool"),
        (("echo", "{"), "not valid JSON"),
        (("echo", "{}", "--user", "nobody"), "There is no user named 'nobody'"),
    ]:
        with subtests.test(words=words), pytest.raises(CommandError, match=told):
            command("simulate", *words)


def lab(page: Client, fields: dict[str, str] | None = None, *, htmx: bool = False) -> str:
    given = {"tool": "echo", "mode": "CONDITIONAL", "condition": 'args["text"] == "big"', "days": "30"}
    response = page.post("/policies/lab", given | (fields or {}), headers={"HX-Request": "true"} if htmx else {})
    assert response.status_code in {200, 422}
    return str(response.content.decode())


@pytest.fixture
def declined(bob: User, make_tool: MakeTool) -> list[ToolCall]:
    """Calls that bob declined, each for its text, of a tool that asked every time."""
    tool = make_tool("echo")
    calls = [ask(bob, tool, {"text": text}) for text in ("small <b>", "big")]
    for call in calls:
        decide.decline(approval_of(call).pk, signed_in(bob))
    return calls


def test_the_lab_is_for_administrators_who_reach_it_from_the_rules(
    rules: None, alice: User, bob: User, of: Any
) -> None:
    assert of(bob).get("/policies/lab").status_code == 403
    assert "/policies/lab" not in text_of(of(bob))
    assert '<a class="btn" href="/policies/lab">' in text_of(of(alice))


def test_the_lab_shows_first_which_declined_calls_would_have_run(
    declined: list[ToolCall], alice: User, of: Any
) -> None:
    page = of(alice)
    for htmx in (False, True):
        found = lab(page, htmx=htmx)
        assert ("<html" in found) != htmx
        assert "<b>1 declined call would have run.</b>" in found
        assert found.index(f"/history/{declined[0].pk}") < found.index("Would have asked")
        assert str(declined[1].pk) not in found
        assert "1 of 2" in found
        assert "small &lt;b&gt;" in found
    assert "<b>2 declined calls would have run.</b>" in lab(page, {"mode": "DISABLED"})
    assert "No declined call would have run." in lab(page, {"mode": "REQUIRED"})
    assert AuditEvent.objects.filter(name="tool.changed").count() == 0


def test_the_lab_says_what_it_could_not_find_out(
    declined: list[ToolCall], alice: User, make_tool: MakeTool, of: Any
) -> None:
    make_tool("look")
    page = of(alice)
    assert "No recorded calls." in lab(page, {"tool": "look"})
    for condition, raises in (("1 / 0 == 1", True), ("1", False)):
        shown = lab(page, {"condition": condition})
        assert "For 2 calls, a rule gave no answer:" in shown
        assert ("Check the value first, so that the call still asks." in shown) == raises
    wrong: list[tuple[dict[str, str], str]] = [
        ({"condition": "amount >"}, "Not a Python expression"),
        ({"days": "0"}, "greater than or equal to 1"),
        ({"tool": "gone"}, "There is no such tool."),
        ({"mode": "SOMETIMES"}, "Select a valid choice"),
    ]
    for fields, expected in wrong:
        assert expected in lab(page, fields)


def test_the_lab_begins_with_what_the_chosen_tool_has(rules: None, alice: User, make_tool: MakeTool, of: Any) -> None:
    make_tool("zap", hitl_mode="CONDITIONAL", condition='args["text"] == "zap"')
    assert "zap&quot;</textarea>" in text_of(of(alice), "/policies/lab", tool="zap")
    assert "zap&quot;</textarea>" not in text_of(of(alice), "/policies/lab", tool="look")


def test_an_empty_lab_says_what_it_is_for(alice: User, of: Any) -> None:
    assert "No tools to try" in text_of(of(alice), "/policies/lab")
