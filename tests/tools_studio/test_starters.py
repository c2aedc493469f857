"""What a new tool can begin as is whole: it passes its check, and where nothing outside is needed, its test."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from hitlchat.gate.status import Status
from tests.conftest import MakeTool, tried
from tests.tables import each_row
from tools_studio import inspection, spec
from tools_studio.pages.editor import STARTERS, Starter

pytestmark = pytest.mark.django_db

BY_KEY = {starter.key: starter for starter in STARTERS}


@each_row("starter", STARTERS, ids=lambda starter: starter.key)
def test_a_template_is_sound_as_it_is(starter: Starter) -> None:
    spec.check(replace(starter.draft, name="begun"))
    found = inspection.inspect("begun", starter.draft.code, starter.draft.capabilities)
    assert found.findings == []
    assert starter.draft.example is not None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "key",
    [
        "function",
        *(
            pytest.param(key, marks=pytest.mark.slow("like the first"))
            for key in ("records", "store", "preview", "files")
        ),
    ],
)
def test_a_template_that_needs_nothing_from_outside_passes_its_test(key: str, make_tool: MakeTool, alice: User) -> None:
    draft = BY_KEY[key].draft
    fields = {name: getattr(draft, name) for name in ("code", "capabilities", "hitl_mode", "example")}
    tool = make_tool("begun", **fields | {"published": False})
    call = tried(tool, alice, **(draft.example or {}))
    assert (call.status, call.error) == (Status.SUCCEEDED, None)


@each_row("key", BY_KEY)
def test_the_editor_opens_with_the_template(key: str, alice: User, client: Client) -> None:
    client.force_login(alice)
    page = client.get(f"/studio/new?template={key}")
    assert page.context["form"]["code"].value() == BY_KEY[key].draft.code
    assert page.context["form"]["name"].value() == BY_KEY[key].draft.name
    assert page.context["inspection"].findings == []


def test_without_a_choice_the_templates_are_shown_around_the_plain_function(alice: User, client: Client) -> None:
    client.force_login(alice)
    page = client.get("/studio/new")
    assert page.context["form"]["code"].value() == BY_KEY["function"].draft.code
    shown = page.content.decode()
    assert all(f"template={key}" in shown for key in BY_KEY)


def test_a_template_suggests_a_name_that_is_free(make_tool: MakeTool, alice: User, client: Client) -> None:
    client.force_login(alice)
    name = BY_KEY["store"].draft.name
    make_tool(name)
    make_tool(f"{name}_2")
    assert client.get("/studio/new?template=store").context["form"]["name"].value() == f"{name}_3"


def test_a_template_says_what_it_needs_from_outside(alice: User, client: Client, settings: Settings) -> None:
    client.force_login(alice)
    assert client.get("/studio/new").content.decode().count(BY_KEY["secret"].needs) == 1
    assert client.get("/studio/new?template=secret").content.decode().count(BY_KEY["secret"].needs) == 2
    settings.EMAIL_HOST = ""
    assert "EMAIL_HOST is not set" in client.get("/studio/new?template=email").content.decode()
    settings.EMAIL_HOST = "mail.example.com"
    assert "EMAIL_HOST" not in client.get("/studio/new?template=email").content.decode()
