"""Putting the library into the catalog, keeping it up to date, and revoking what is not what was recorded."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.settling import settled
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tests.conftest import MakeTool, caller, signed_in
from tests.tools_studio.calling import call, preview
from tools_studio import authoring
from tools_studio.library import catalogue
from tools_studio.library.catalogue import TOOLS, ShippedTool
from tools_studio.library.install import install
from tools_studio.models import Script, Shipment, StoreEntry
from tools_studio.spec import AuthoringError, draft_of

pytestmark = pytest.mark.django_db(transaction=True)
Ship = Callable[..., int]
CODE = 'def run(text: str = "hi") -> str:\n    """Say it back, as it is."""\n    return text\n'


@pytest.fixture
def ship(tmp_path: Path) -> Ship:
    """Install other tools, from files of the test's own; `as_recorded` False leaves the record as it was."""
    recorded: dict[str, str] = {}

    def install_these(*tools: ShippedTool, code: str = CODE, as_recorded: bool = True) -> int:
        for tool in tools:
            (tmp_path / tool.group).mkdir(exist_ok=True)
            (tmp_path / tool.group / f"{tool.name}.py").write_text(code, encoding="utf-8")
        ours = [replace(tool, folder=tmp_path) for tool in tools]
        if as_recorded:
            recorded.update({tool.name: catalogue.of_file(tool) for tool in ours})
        return install(ours, recorded)

    return install_these


def shipped(name: str = "say", **more: Any) -> ShippedTool:
    said = {"title": "Say", "group": "text", "category": "Text", "prompt_template": "Say {args.text}", "example": {}}
    return ShippedTool(name=name, **{**said, **more})


def script_of(name: str = "say") -> Script:
    return Script.objects.select_related("tool").get(tool__name=name)


def ask(user: User, name: str = "say") -> ToolCall:
    return async_to_sync(submit)(CallRequest(name, {}, caller(user)))


def test_everything_is_installed_once_and_checked_like_any_other_tool() -> None:
    assert install() == len(TOOLS)
    assert install() == 0
    assert Shipment.objects.count() == Tool.objects.count() == len(TOOLS)
    drafts = set(Tool.objects.filter(published=False).values_list("name", flat=True))
    assert drafts == {tool.name for tool in TOOLS if tool.set_up}
    recorded = catalogue.recorded()
    for tool in TOOLS:
        script = script_of(tool.name)
        assert script.shipped == recorded[tool.name]
        assert (script.category, tuple(script.tags), script.tool.hitl_mode) == (
            tool.category, tool.tags, tool.hitl_mode,
        )  # fmt: skip


def test_what_was_deleted_stays_deleted_and_a_taken_name_is_left_alone(
    ship: Ship, make_tool: MakeTool, alice: User, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = make_tool("taken")
    assert ship(shipped(), shipped("taken")) == 1
    assert "its name, or one like it, is taken" in caplog.text
    authoring.delete(Tool.objects.get(name="say"), signed_in(alice))
    assert ship(shipped(), shipped("taken")) == 0
    assert list(Tool.objects.values_list("pk", flat=True)) == [theirs.pk]
    assert script_of("taken").shipped == ""


def test_a_new_tool_comes_with_a_new_version(ship: Ship) -> None:
    assert ship(shipped()) == 1
    assert ship(shipped(), shipped("more")) == 1
    assert set(Tool.objects.values_list("name", flat=True)) == {"say", "more"}


def test_a_tool_that_nobody_edited_is_updated_and_what_waits_for_the_old_one_is_withdrawn(
    ship: Ship, alice: User
) -> None:
    ship(shipped())
    waiting = ask(alice)
    assert waiting.status == Status.WAITING
    newer = CODE.replace("return text", "return text.upper()")
    assert ship(shipped(title="Say it", tags=("echo",)), code=newer) == 0
    script = script_of()
    assert (script.version, script.tool.title, script.tags, script.author_id) == (2, "Say it", ["echo"], None)
    assert "upper" in script.code
    assert script.shipped == catalogue.fingerprint(newer, {})
    assert script.tool.published
    assert ToolCall.objects.get(pk=waiting.pk).status == Status.WITHDRAWN
    ship(shipped(title="Say it", tags=("echo",)), code=newer)
    assert script_of().version == 2


def test_only_new_words_are_taken_over_too_and_that_a_signed_in_person_decides_stays(ship: Ship) -> None:
    ship(shipped())
    Tool.objects.update(signed_in_only=True)
    ship(shipped(category="Data"))
    assert (script_of().category, script_of().tool.signed_in_only) == ("Data", True)


def test_an_update_keeps_the_stricter_mode_and_the_words_of_a_person(ship: Ship, alice: User) -> None:
    ship(shipped(hitl_mode="DISABLED"), shipped("other", hitl_mode="REQUIRED"))
    people = signed_in(alice)
    authoring.amend(Tool.objects.get(name="say"), {"hitl_mode": "REQUIRED", "title": "Mine"}, people, confirmed=True)
    authoring.amend(Tool.objects.get(name="other"), {"hitl_mode": "DISABLED"}, people, confirmed=True)
    newer = CODE.replace("as it is", "as it was")
    ship(shipped(hitl_mode="DISABLED", title="Theirs"), shipped("other", hitl_mode="REQUIRED"), code=newer)
    assert "as it was" in script_of().code
    assert (script_of().tool.hitl_mode, script_of().tool.title) == ("REQUIRED", "Mine")
    assert script_of("other").tool.hitl_mode == "REQUIRED"


def test_what_a_person_edited_is_their_own(ship: Ship, alice: User) -> None:
    ship(shipped())
    mine = CODE.replace("return text", "return text * 2")
    authoring.amend(Tool.objects.get(name="say"), {"code": mine}, signed_in(alice))
    ship(shipped(), code=CODE.replace("return text", "return text.upper()"))
    ship(shipped(), code="changed", as_recorded=False)
    script = script_of()
    assert (script.code, script.shipped, script.revoked) == (mine, "", "")


def test_an_update_that_cannot_be_is_logged_and_the_old_tool_stays(
    ship: Ship, alice: User, caplog: pytest.LogCaptureFixture
) -> None:
    ship(shipped())
    authoring.amend(
        Tool.objects.get(name="say"), {"prompt_template": "Do {args.text}"}, signed_in(alice), confirmed=True
    )
    ship(shipped(prompt_template="Say it"), code=CODE.replace("text", "words"))
    assert "could not be updated" in caplog.text
    assert (script_of().code, script_of().tool.published) == (CODE, True)


def test_an_update_keeps_the_values_that_were_given(ship: Ship, alice: User) -> None:
    ship(shipped(variables=(("PLACE", False, "here"),)))
    tool = Tool.objects.get(name="say")
    ship(shipped(variables=(("PLACE", False, "there"), ("MORE", False, "x"))), code=CODE.replace("as it", "how it"))
    kept = {each.name: each.value for each in draft_of(Tool.objects.get(pk=tool.pk)).variables}
    assert kept == {"PLACE": "here", "MORE": "x"}


def test_a_file_that_does_not_match_its_record_is_not_installed_until_it_does(
    ship: Ship, caplog: pytest.LogCaptureFixture
) -> None:
    assert ship(shipped(), code=CODE + "# tampered\n", as_recorded=False) == 0
    assert "say was not installed: its file in the library does not match" in caplog.text
    assert not Tool.objects.exists()
    assert not Shipment.objects.exists()
    assert ship(shipped()) == 1


def test_an_installed_tool_whose_file_does_not_match_is_revoked_and_what_waits_is_withdrawn(
    ship: Ship, alice: User, caplog: pytest.LogCaptureFixture
) -> None:
    ship(shipped())
    waiting = ask(alice)
    ship(shipped(), code=CODE + "# tampered\n", as_recorded=False)
    script = script_of()
    assert (script.tool.published, script.code) == (False, CODE)
    assert "does not match its recorded hash" in script.revoked
    found = ToolCall.objects.get(pk=waiting.pk)
    assert (found.status, found.reason) == (Status.WITHDRAWN, "Not run: the tool was revoked.")
    assert "The shipped tool say was revoked" in caplog.text
    with pytest.raises(AuthoringError, match="revoked"):
        authoring.publish(script.tool, SYSTEM)
    caplog.clear()
    ship(shipped(), code=CODE + "# tampered\n", as_recorded=False)
    assert "revoked" not in caplog.text


def test_a_tool_that_is_as_recorded_again_may_be_published_but_by_a_person(ship: Ship, alice: User) -> None:
    ship(shipped())
    ship(shipped(), code="tampered", as_recorded=False)
    ship(shipped())
    assert (script_of().revoked, script_of().tool.published) == ("", False)


def test_a_row_that_was_changed_from_outside_is_revoked_and_never_runs(ship: Ship, alice: User) -> None:
    ship(shipped(hitl_mode="DISABLED"))
    Script.objects.filter(tool__name="say").update(code=CODE.replace("return text", "return 'evil'"))
    install((), {})
    script = script_of()
    assert "changed from outside" in script.revoked
    assert ask(alice).status == Status.REJECTED
    Tool.objects.filter(name="say").update(published=True)
    done = async_to_sync(settled)(ask(alice).pk, 20)
    assert (done.status, "evil" in str(done.result)) == (Status.FAILED, False)
    install((), {})
    assert not script_of().tool.published


def test_capabilities_that_were_changed_from_outside_are_noticed_too(ship: Ship) -> None:
    ship(shipped())
    Script.objects.filter(tool__name="say").update(capabilities={"store": True})
    install((), {})
    assert script_of().revoked


def test_a_revoked_row_stays_revoked_also_when_a_new_version_ships(ship: Ship) -> None:
    ship(shipped())
    Script.objects.filter(tool__name="say").update(code="evil")
    ship(shipped(), code=CODE.replace("as it", "how it"))
    assert (script_of().code, bool(script_of().revoked)) == ("evil", True)


def test_editing_a_revoked_tool_in_the_studio_makes_it_ones_own(ship: Ship, alice: User) -> None:
    ship(shipped())
    Script.objects.filter(tool__name="say").update(code=CODE + "# evil\n")
    install((), {})
    authoring.amend(Tool.objects.get(name="say"), {"code": CODE + "# mine\n"}, signed_in(alice))
    install((), {})
    assert (script_of().shipped, script_of().revoked) == ("", "")


def test_one_that_needs_to_be_set_up_stays_a_draft_without_a_word_in_the_log(
    ship: Ship, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    ship(replace(shipped(), set_up="say where to"))
    assert not script_of().tool.published
    assert caplog.text == ""


def test_the_order_desk_looks_freely_asks_before_it_changes_anything_and_shows_what_it_comes_to(alice: User) -> None:
    install([tool for tool in TOOLS if tool.name in ("get_order", "refund_order")])
    assert call(alice, "get_order", order_id="4711").status == Status.SUCCEEDED
    refund = {"order_id": "4711", "amount": "129.00"}
    waiting = async_to_sync(submit)(CallRequest("refund_order", refund, caller(alice)))
    assert waiting.status == Status.WAITING
    shown = preview(Tool.objects.get(name="refund_order"), alice, **refund)
    assert shown is not None
    assert shown.text == "Order 4711 of Ann Berg: paid 143.00 EUR, refunded so far 0.00, after this 129.00."
    assert StoreEntry.objects.count() == 0
