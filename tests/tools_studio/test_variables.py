"""Static variables of a tool: what may be declared, what is stored, and what a run gets."""

import pytest
from django.contrib.auth.models import User
from django.test import override_settings

from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Tool
from hitlchat.secrets import sealing
from hitlchat.secrets.values import Value
from tests.conftest import ECHO, MakeTool, signed_in
from tests.tables import each_row
from tools_studio import authoring, spec, variables
from tools_studio.models import ScriptVersion, StoredVariable
from tools_studio.spec import AuthoringError, Draft, check, draft_of

pytestmark = pytest.mark.django_db

KEY = "sk-very-secret-0815"
SECRET = Value("SHOP_KEY", KEY)


def resolved(tool: Tool) -> variables.Resolved:
    return variables.resolve(spec.stored_variables(tool.script).values())


def test_a_secret_is_sealed_where_it_is_stored_and_whole_when_the_tool_runs(make_tool: MakeTool) -> None:
    tool = make_tool("shop", variables=(SECRET, Value("SHOP", "Corner shop", secret=False)))
    assert KEY not in str(list(StoredVariable.objects.values_list()))
    assert resolved(tool) == variables.Resolved({"SHOP": "Corner shop"}, {"SHOP_KEY": KEY}, {}, (KEY,))


def test_a_secret_is_never_shown_again(make_tool: MakeTool) -> None:
    tool = make_tool("shop", variables=(SECRET,))
    assert draft_of(tool).variables == (Value("SHOP_KEY", None),)
    assert KEY not in str(list(ScriptVersion.objects.values_list()))


def test_a_secret_that_is_not_typed_again_is_kept(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("shop", variables=(SECRET,))
    changed = authoring.amend(tool, {"variables": (Value("SHOP_KEY"),)}, signed_in(alice))
    assert resolved(changed).secret == {"SHOP_KEY": KEY}
    assert changed.definition_hash == tool.definition_hash


def test_a_secret_cannot_be_read_by_calling_it_plain(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("shop", variables=(SECRET,))
    changed = authoring.amend(tool, {"variables": (Value("SHOP_KEY", secret=False),)}, signed_in(alice))
    assert resolved(changed).plain == {}
    assert "SHOP_KEY" in resolved(changed).missing


@pytest.mark.guarantee("gate:same-call")
def test_another_secret_is_another_definition(make_tool: MakeTool, alice: User) -> None:
    tool = make_tool("shop", variables=(SECRET,))
    other = Value("SHOP_KEY", "sk-another-secret")
    assert authoring.amend(tool, {"variables": (other,)}, signed_in(alice)).definition_hash != tool.definition_hash


def test_a_reference_is_read_from_the_environment_when_the_tool_runs(
    make_tool: MakeTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = make_tool("shop", variables=(Value("SHOP_KEY", "${CORNER_SHOP_KEY}"),))
    assert resolved(tool).missing == {
        "SHOP_KEY": "SHOP_KEY: the environment variable CORNER_SHOP_KEY is not set on this server."
    }
    monkeypatch.setenv("CORNER_SHOP_KEY", KEY)
    assert resolved(tool).secret == {"SHOP_KEY": KEY}
    assert draft_of(tool).variables[0].value == "${CORNER_SHOP_KEY}"


def test_what_comes_from_the_environment_is_masked_also_when_it_is_called_plain(
    make_tool: MakeTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORNER_SHOP", "an-address-of-ours")
    tool = make_tool(
        "shop", variables=(Value("SHOP", "${CORNER_SHOP}", secret=False), Value("NOTE", "plain", secret=False))
    )
    assert resolved(tool).hidden == ("an-address-of-ours",)


@each_row("own", ["SECRET_KEY", "DATABASE_URL", "OPENAI_API_KEY"])
def test_hitlchats_own_environment_is_not_for_tools(own: str) -> None:
    assert "belongs to hitlchat" in str(variables.problem([Value("MINE", f"${{{own}}}", secret=False)]))


@each_row("name", ["DJANGO_SUPERUSER_PASSWORD", "PGPASSWORD", "HTTPS_PROXY"])
def test_passwords_of_other_programs_are_for_tools_only_if_the_operator_says_so(name: str) -> None:
    given = [Value("MINE", f"${{{name}}}", secret=False)]
    assert "TOOLS_ENV" in str(variables.problem(given))
    with override_settings(TOOLS_ENV=[name]):
        assert variables.problem(given) is None


@override_settings(TOOLS_ENV=["SHOP_*"])
def test_the_operator_may_name_what_tools_may_refer_to() -> None:
    assert variables.problem([Value("A", "${SHOP_KEY}", secret=False)]) is None
    assert "TOOLS_ENV" in str(variables.problem([Value("A", "${HOME}", secret=False)]))


@each_row(
    "variable, said",
    [
        (Value("shop key", "x", secret=False), "not a valid variable name"),
        (Value("SHOP_KEY", "short"), "at least 6 characters"),
        (Value("NOTE", "x" * 4001, secret=False), "4,000"),
        (Value("NOTE", "a\x00b", secret=False), "U+0000"),
    ],
    ids=["name", "short secret", "long", "null"],
)
def test_a_wrong_variable_is_refused_in_words(variable: Value, said: str) -> None:
    with pytest.raises(AuthoringError) as caught:
        check(Draft("t", ECHO, variables=(variable,)))
    assert said in caught.value.errors["variables"]


def test_a_name_is_given_once() -> None:
    assert "twice" in str(variables.problem([Value("A", "1", secret=False), Value("A", "2", secret=False)]))


def test_a_webhooks_target_is_one_of_the_variables() -> None:
    declared = {"webhook": {"targets": ["ALERTS_URL"]}}
    with pytest.raises(AuthoringError, match="ALERTS_URL"):
        check(Draft("t", ECHO, capabilities=declared))
    url = Value("ALERTS_URL", "https://hooks.example/T0/B1")
    assert check(Draft("t", ECHO, capabilities=declared, variables=(url,))).capabilities.webhook


def test_a_tool_whose_variable_has_no_value_stays_a_draft(make_tool: MakeTool) -> None:
    tool = make_tool("shop", published=False, variables=(Value("SHOP_KEY"),))
    with pytest.raises(AuthoringError) as caught:
        authoring.publish(tool, SYSTEM)
    assert caught.value.errors == {"variables": "SHOP_KEY has no value yet."}


def test_the_person_who_decides_reads_which_secrets_the_server_adds(make_tool: MakeTool) -> None:
    assert (
        "It uses SHOP_KEY, kept secret on this server."
        in make_tool("shop", variables=(SECRET, Value("NOTE", "x", secret=False))).facts
    )


def test_a_secret_sealed_with_a_former_key_is_read_while_that_key_is_named() -> None:
    with override_settings(SECRET_KEY="k" * 50):
        token = sealing.seal(KEY, "test")
    with override_settings(SECRET_KEY="n" * 50, SECRET_KEY_FALLBACKS=["k" * 50]):
        assert sealing.unseal(token, "test") == KEY
        with pytest.raises(sealing.Unsealable):
            sealing.unseal(token, "another purpose")
    with override_settings(SECRET_KEY="n" * 50), pytest.raises(sealing.Unsealable, match="SECRET_KEY_FALLBACKS"):
        sealing.unseal(token, "test")
