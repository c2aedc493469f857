"""What the documentation lists is what the code has: every name, and every default."""

import re
from typing import Final, get_type_hints

from hitlchat import doctor
from hitlchat.base import configuration, environment
from hitlchat.gate.history import changes
from hitlchat.gate.models.calls import End
from hitlchat.gate.policies.bundled import SIMPLE
from hitlchat.gate.status import Status
from hitlchat.project_tools import Options
from tests.access import table
from tests.architecture.source import program_files, read
from tests.documentation.blocks import PAGES, mentions
from tools import reference
from tools_studio import capabilities

# Events whose names are made of two parts.
MADE: Final = {
    *(f"call.{each}" for each in Status.values),
    *(f"grant.{each}" for each in End.values),
    *(f"{what}.{each}" for what in ("endpoint", "preset", "tool_set") for each in ("added", "changed", "removed")),
}
# Strings of that form that are something else: webhooks, members of stored data, files, channels, a key.
NO_EVENTS: Final = frozenset(
    (
        *("approval.waiting", "approval.decided", "conversation.delta", "record.jsonl", "notice.arguments_"),
        *("call.arguments", "call.decided_by", "call.quorum", "call.result", "call.status", "call.tool_name"),
    )
)
# Of the history of one upstream tool, which is not the record.
OF_UPSTREAM_TOOLS: Final = frozenset(
    f"tool.{each}"
    for each in ("exposed", "hidden", "returned", "withheld", "unfit", "gone", "configured", "pinned_anew")
)
# Folders, addresses of other servers, and the place of a value in arguments.
ELSEWHERE: Final = (
    "/etc/",
    "/opt/",
    "/var/",
    "/tmp",
    "/chat/completions",
    "/responses",
    "/v1/traces",
    "/accept",
    "/to/0",
)
# Names in capitals that are something else: of Python, Linux, Compose, Django, code and tests.
NO_SETTINGS: Final = frozenset(
    (
        *("ROUND_HALF_UP", "ROUND_DOWN", "NAMESPACE_DNS", "NAMESPACE_URL", "NAMESPACE_OID", "NAMESPACE_X500"),
        *("CONFIG_SECURITY_LANDLOCK", "PR_SET_SECCOMP", "HITLCHAT_SITE", "INSTALLED_APPS", "DJANGO_SETTINGS_MODULE"),
        *("TOOL_SOURCES", "TEST_DATABASE_URL", "TEST_REDIS_URL"),
    )
)
# Defaults that words say better.
IN_WORDS: Final = {
    "TOOL_WORKERS": "4 or more",
    "HITL_RECORD_DAYS": "for ever",
    "DRAIN_SECONDS": "TOOL_WALL_SECONDS` (30)",
}


def test_the_page_is_what_make_reference_writes() -> None:
    assert read("docs/reference.md") == reference.page(), "run `make reference`"


def test_every_event_that_the_code_puts_on_record_is_on_the_page() -> None:
    there = reference.events()
    areas = "|".join({name.partition(".")[0] for name in there})
    written = {name for path in program_files() for name in re.findall(rf'"((?:{areas})\.[a-z_]+)"', read(path))}
    assert (written | MADE) - NO_EVENTS - OF_UPSTREAM_TOOLS - there.keys() == set()


def test_every_event_on_the_page_is_one_of_the_code() -> None:
    # Where this table is not, which explains them.
    sources = [read(path) for path in program_files() if path != "hitlchat/gate/history/changes.py"]
    notices = read("hitlchat/notices/receivers.py")
    for name in reference.events().keys() - MADE:
        is_written = any(f'"{name}"' in source for source in sources)
        # Of notices the code has only the last part, or the two halves of that.
        last = name.removeprefix("notice.")
        first, _, end = last.rpartition("_")
        assert is_written or f'"{last}"' in notices or (first in notices and f"'{end}'" in notices), name


def test_every_change_that_people_can_look_up_has_a_sentence() -> None:
    beginnings = tuple(each for _, area in changes.AREAS.values() for each in area)
    assert [name for name in reference.SILENT if name.startswith(beginnings)] == []


def test_every_default_of_a_setting_is_documented_as_it_is() -> None:
    for names, defaults, _ in rows_of_settings():
        variables = re.findall(r"`([A-Z_]+)`", names)
        values = [each.strip(" `") for each in defaults.split("; " if ";" in defaults else ", ")]
        # One word for all of them is about what they mean together.
        for variable, value in zip(variables, values, strict=True) if len(values) > 1 or len(variables) == 1 else ():
            default = environment.ASKED[variable]
            is_documented = value == default if default else not re.fullmatch(r"[\d.]+", value)
            assert is_documented or value == IN_WORDS.get(variable), (variable, value, default)


def test_every_option_of_a_tool_decorator_is_documented() -> None:
    table = names_in(section("docs/project-tools.md", "What `@tool` takes"))
    assert table == get_type_hints(Options).keys()


def test_every_policy_that_ships_is_documented_with_its_fields() -> None:
    body = section("docs/policies.md", "The policies that ship")
    documented = {row[0].strip("`"): {*re.findall(r"`([a-z]+)`", row[1])} for row in cells(body)}
    for word, kind in SIMPLE.items():
        fields = {info.alias or name for name, info in kind.model_fields.items()}
        # Beside the fields there are values of them.
        assert fields - documented[word] == set(), word
    assert documented.keys() - {'"policy"'} == {*SIMPLE, "any_of", "all_of"}


def test_every_capability_and_each_of_its_functions_is_documented() -> None:
    page = section("docs/tool-python.md", "Capabilities")
    assert {name for name in capabilities.ALL_NAMES if f"`{name}(" not in page} == set()
    # What a tool declares of itself opens nothing.
    assert {name for name in capabilities._READERS if f"| `{name}` |" not in page} == {"destructive"}


def test_every_check_of_the_doctor_is_documented() -> None:
    named = names_in(section("docs/operating.md", "The doctor"))
    assert named == {*doctor.CHECKS, "disk write", "connections"}


def test_every_setting_that_a_sentence_names_exists_with_the_default_beside_it() -> None:
    for page in PAGES:
        for name in re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?:=[^`]*)?`", read(page)):
            assert name in environment.ASKED.keys() | NO_SETTINGS, (page, name)
        for name, value in re.findall(r"`([A-Z_]+)` \((\d[\d,]*)\)", read(page)):
            assert environment.ASKED[name] == value.replace(",", ""), (page, name)


def test_every_address_that_a_sentence_names_is_one_with_its_method() -> None:
    # docs/access.md, which is compared with the program, has them all.
    methods: dict[str, set[str]] = {}
    for row in table.rows():
        methods.setdefault(address(row.route), set()).update(row.methods)
    for page, code in mentions():
        found = re.fullmatch(r"(?:([A-Z]+) )?(/[\w{}/.<>-]*)(\?.*)?", code)
        if found and page != "docs/access.md" and not found[2].startswith(ELSEWHERE):
            assert address(found[2]) in methods, (page, code)
            assert not found[1] or found[1] in methods[address(found[2])], (page, code)


def address(path: str) -> str:
    """Return an address with its parts without their names."""
    return re.sub(r"\{[^}]*\}|<[^>]*>", "{}", path).rstrip("/")


def test_every_number_of_the_program_is_documented() -> None:
    body = section("docs/operating.md", "Numbers")
    documented = {name.partition("{")[0] for name in names_in(body)}
    metrics = read("hitlchat/telemetry/metrics.py")
    assert documented == {*re.findall(r'"((?:hitlchat|mcp_hitl)_[a-z_]+)"', metrics)}


def test_every_field_of_a_logged_event_is_documented() -> None:
    source = read("hitlchat/gate/transition.py").partition("def _logged(")[2].partition("\n\n\n")[0]
    fields = {*re.findall(r'^        "(\w+)": ', source, re.MULTILINE)}
    words = section("docs/operating.md", "Logs")
    assert {field for field in fields if f"`{field}`" not in words} == set()


def test_every_kind_of_a_webhooks_message_is_documented() -> None:
    kinds = re.findall(r'_event\(notice, "([a-z.]+)"', read("hitlchat/notices/wording.py"))
    words = section("docs/notices.md", "Webhooks")
    assert len(kinds) == 3
    assert [kind for kind in kinds if f'"{kind}"' not in words and f"`{kind}`" not in words] == []


def rows_of_settings() -> list[tuple[str, str, str]]:
    return [row for page in ("README.md", "docs/operating.md") for row in configuration.ROW.findall(read(page))]


def section(page: str, heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", read(page), re.DOTALL | re.MULTILINE)
    assert found is not None, heading
    return found[1]


def cells(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def names_in(text: str) -> set[str]:
    """Return what is set as code in the first column of a table."""
    return {name for row in cells(text) for name in re.findall(r"`([^`]+)`", row[0])}
