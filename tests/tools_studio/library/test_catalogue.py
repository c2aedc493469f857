"""What holds for every tool that ships."""

import asyncio
import re
from typing import Any

import pytest
from jsonschema import validate

from hitlchat.gate import prompt
from tests.tables import each_row
from tests.tools_studio.library.answers import ANSWERS
from tests.tools_studio.library.world import World, result
from tools_studio import capabilities, inspection
from tools_studio.capabilities import parse
from tools_studio.language import signature
from tools_studio.language.signature import read
from tools_studio.library.catalogue import TOOLS, ShippedTool
from tools_studio.models import Category

every_tool = each_row("tool", TOOLS, ids=lambda tool: tool.name)
ONLY_READ_THEIR_STORE = {"list_orders", "get_order", "order_history", "find_notes"}


def furnished(tool: ShippedTool) -> World:
    """Return a new world with what the tool's examples speak of."""
    world = World(answers=dict(ANSWERS))
    if not tool.capabilities.keys() & {"files", "store"}:
        return world
    result(world.call("write_file", path="notes/today.txt", text="Buy tea.\nCall Ann.", replace=True))
    result(world.call("save_note", title="Tea", text="Assam"))
    return world


def test_there_are_more_than_forty_and_no_name_is_there_twice() -> None:
    names = [tool.name for tool in TOOLS]
    assert len(names) == len(set(names)) > 60


@pytest.mark.slow("runs every tool")
@every_tool
def test_its_example_runs_and_gives_what_it_says(tool: ShippedTool, world: World) -> None:
    example = {**tool.example, **({"replace": True} if tool.name == "write_file" else {})}
    schema = read(tool.source).output_schema
    assert schema is not None
    validate(result(furnished(tool).call(tool.name, **example)), schema)


@every_tool
def test_every_argument_is_described_and_the_first_line_says_what_it_does(tool: ShippedTool) -> None:
    signature = read(tool.source)
    assert re.fullmatch(r"[A-Z].{15,140}\.", signature.description)
    assert [name for name, part in signature.input_schema["properties"].items() if not part.get("description")] == []


@pytest.mark.slow("checks the types of every tool")
@every_tool
def test_it_declares_its_powers_in_their_one_spelling_and_the_editor_has_nothing_to_say(tool: ShippedTool) -> None:
    granted = parse(tool.capabilities)
    assert granted.as_json() == tool.capabilities
    assert asyncio.run(inspection.problems(tool.source, granted)) == []


@every_tool
def test_it_uses_every_power_that_it_declares(tool: ShippedTool) -> None:
    words = {"fetch": "fetch(", "store": "store.", "files": "files.", "secrets": "secret(", "now": "now(",
             "random": "random.getrandbits(", "email": "hitl.send_email(", "webhook": "hitl.webhook(",
             "destructive": ".delete("}  # fmt: skip
    assert [name for name in tool.capabilities if words[name] not in tool.source] == []


@every_tool
def test_it_never_asks_only_where_it_can_do_no_harm(tool: ShippedTool) -> None:
    is_pure = capabilities.parse(tool.capabilities).risk_level == 0
    never_asks = is_pure or tool.name in ONLY_READ_THEIR_STORE
    assert tool.hitl_mode == ("DISABLED" if never_asks else "REQUIRED")


@every_tool
def test_it_has_its_place(tool: ShippedTool) -> None:
    assert tool.category in Category.values
    assert tool.tags
    prompt.check(tool.prompt_template, read(tool.source).input_schema["properties"])
    assert tool.path.is_file()


@pytest.mark.slow("runs every preview")
@every_tool
def test_its_preview_takes_what_it_takes_and_shows_a_text_or_a_table(tool: ShippedTool, world: World) -> None:
    source = tool.source
    signature.check_preview(source, read(source))
    if signature.preview_of(source) is not None:
        shown: Any = result(furnished(tool).look(tool.name, **tool.example))
        assert shown
        assert isinstance(shown, str) or {type(value) for value in shown.values()} == {str}


def test_whatever_changes_something_outside_has_a_preview() -> None:
    read_only = {"list_files", "read_file", "search_files", "sign_text", *ONLY_READ_THEIR_STORE}
    changing = {tool.name for tool in TOOLS if tool.hitl_mode == "REQUIRED" and tool.group != "web"} - read_only
    assert changing == {tool.name for tool in TOOLS if signature.preview_of(tool.source)}


@each_row("tool", [tool for tool in TOOLS if "fetch" in tool.capabilities], ids=lambda tool: tool.name)
def test_what_goes_to_the_web_only_reads_from_hosts_that_it_names(tool: ShippedTool) -> None:
    fetch = parse(tool.capabilities).fetch
    assert fetch is not None
    assert (fetch.mode, fetch.methods) == ("allowlist", ("GET",))
    assert not any("*" in host for host in fetch.hosts)


def test_what_needs_to_be_set_up_says_so() -> None:
    assert {tool.name for tool in TOOLS if tool.set_up} == {"sign_text", "send_email", "post_to_webhook"}
    assert all(tool.set_up for tool in TOOLS for _, _, value in tool.variables if not value)
    assert all(f"# Before it is published: {tool.set_up}." in tool.source for tool in TOOLS if tool.set_up)


def test_no_file_is_left_over() -> None:
    folder = TOOLS[0].path.parent.parent
    found = {path for path in folder.rglob("*.py") if path.name != "__init__.py"}
    assert found == {tool.path for tool in TOOLS}
