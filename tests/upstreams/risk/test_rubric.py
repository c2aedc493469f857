"""Risk by the rubric for upstream tools: every point and floor, and that an upstream can only raise it (SR-31)."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitlchat.upstreams.risk import rubric
from hitlchat.upstreams.risk.fingerprint import Offered
from hitlchat.upstreams.risk.rubric import (
    HINTS,
    Assessment,
    Floor,
    ServerFacts,
    Signal,
    assess_server,
    assess_tool,
    compose,
    says_it_writes,
)
from tests.upstreams.risk.catalogues import REAL, name

SAFE = ServerFacts("stdio", trust="vendor", writes=False, documented=True)
REMOTE = ServerFacts("http", "https://api.example.com/mcp", "oauth", "vendor", writes=False, documented=True)

SERVERS: dict[str, tuple[ServerFacts, int, int, str | None]] = {
    "a local one from the gallery, by the vendor": (SAFE, 0, 1, None),
    "loopback counts as local": (replace(REMOTE, url="http://127.0.0.1:8000/mcp", auth="none"), 0, 1, None),
    "by a community": (replace(SAFE, trust="community"), 1, 2, None),
    "a local one that nobody vouches for": (replace(SAFE, trust="unknown"), 2, 3, None),
    "nobody vouches for it, no documentation": (ServerFacts("stdio"), 3, 4, None),
    "not used for 90 days": (replace(SAFE, idle_days=90), 1, 2, None),
    "used 89 days ago": (replace(SAFE, idle_days=89), 0, 1, None),
    "documentation costs at most two points": (
        replace(SAFE, documented=False, adequate=False, idle_days=400),
        2,
        3,
        None,
    ),
    "a remote one is never safe": (REMOTE, 0, 2, None),
    "a key": (replace(REMOTE, auth="key"), 1, 2, None),
    "OAuth of its own kind": (replace(REMOTE, auth="own-oauth"), 2, 3, None),
    "no sign-in costs as much as the worst": (replace(REMOTE, auth="none"), 2, 3, None),
    "a private network": (replace(REMOTE, url="https://10.1.2.3/mcp"), 1, 2, None),
    "a private network without encryption": (replace(REMOTE, url="http://intranet/mcp"), 2, 3, None),
    "a host of the gallery, typed in": (replace(REMOTE, trust="known-host"), 1, 2, None),
    "no sign-in and it writes": (replace(REMOTE, auth="none", writes=True), 2, 5, "no-auth-write"),
    "no sign-in and unknown": (replace(REMOTE, auth="none", trust="unknown"), 4, 5, "no-auth-unknown"),
    "a right to administer": (replace(REMOTE, scopes=("read", "repo:admin")), 0, 5, "privileged-scope"),
    "a right to delete": (replace(REMOTE, scopes=("delete_repo",)), 0, 5, "privileged-scope"),
    "a right to everything": (replace(REMOTE, scopes=("mail.all",)), 0, 5, "privileged-scope"),
    "small rights": (replace(REMOTE, scopes=("read:user", "calendar.events")), 0, 2, None),
    "nothing is known": (ServerFacts("http", ""), 6, 5, "no-auth-write"),
    "an address that is none": (replace(REMOTE, url="https://[::1"), 0, 2, None),
}


def test_a_server_is_judged(subtests: pytest.Subtests) -> None:
    for label, (facts, score, level, floor) in SERVERS.items():
        with subtests.test(label):
            found = assess_server(facts)
            assert (found.score, found.level, found.floor and found.floor.id) == (score, level, floor)
            assert all(reason.endswith(".") for reason in found.reasons)


DESCRIBED = "Does what it says, in a few words."
TOOL = Offered("convert", None, DESCRIBED)
TOOLS: dict[str, tuple[Offered, ServerFacts, int, int, str | None]] = {
    "no hints": (TOOL, SAFE, 1, 2, None),
    "it says that it only reads": (replace(TOOL, annotations={"readOnlyHint": True}), SAFE, 1, 2, None),
    "destructive": (replace(TOOL, annotations={"destructiveHint": True}), SAFE, 3, 5, "destructive"),
    "destructive and idempotent": (
        replace(TOOL, annotations={"destructiveHint": True, "idempotentHint": True}), SAFE, 3, 5, "destructive"
    ),
    "the outside world": (replace(TOOL, annotations={"openWorldHint": True}), SAFE, 2, 3, None),
    "writes here": (replace(TOOL, name="create_file"), SAFE, 1, 2, None),
    "writes elsewhere": (replace(TOOL, name="create_file"), REMOTE, 2, 3, None),
    "says that it writes elsewhere": (replace(TOOL, annotations={"readOnlyHint": False}), REMOTE, 2, 3, None),
    "administers elsewhere": (replace(TOOL, name="grantRole"), REMOTE, 3, 4, None),
    "sends": (replace(TOOL, name="sendMessage"), SAFE, 2, 3, None),
    "deletes": (replace(TOOL, name="delete_file"), SAFE, 1, 5, "irreversible-name"),
    "deletes, by its title": (replace(TOOL, title="Delete file"), SAFE, 1, 5, "irreversible-name"),
    "for good": (replace(TOOL, description="Archives a file. Cannot be undone!"), SAFE, 1, 5, "says-irreversible"),
    "runs commands": (replace(TOOL, name="run_command"), SAFE, 1, 4, "executes"),
    "no description": (replace(TOOL, description=" "), SAFE, 1, 4, "undocumented"),
    "no description, but hints": (
        replace(TOOL, description=None, annotations={"readOnlyHint": True}), SAFE, 1, 4, "undocumented"
    ),
    "no description and nobody vouches": (
        replace(TOOL, description=None), replace(SAFE, trust="unknown"), 3, 4, "undocumented"
    ),
    "a short description": (replace(TOOL, description="Does it."), replace(SAFE, trust="unknown"), 2, 3, None),
    "arguments without descriptions": (
        replace(TOOL, input_schema={"properties": {"a": {}, "b": True, "c": {"description": "x"}}}),
        replace(SAFE, trust="unknown"), 2, 3, None,
    ),
    "it contradicts itself": (
        replace(TOOL, name="update_file", annotations={"readOnlyHint": True}), SAFE, 2, 3, None
    ),
    "a hint that is none": (replace(TOOL, annotations={"idempotentHint": "yes"}), SAFE, 2, 3, None),
    "destructive, in other words": (replace(TOOL, annotations={"destructiveHint": "no"}), SAFE, 4, 5, "destructive"),
}  # fmt: skip


def test_a_tool_is_judged(subtests: pytest.Subtests) -> None:
    for label, (tool, server, score, level, floor) in TOOLS.items():
        with subtests.test(label):
            found = assess_tool(tool, server)
            assert (found.score, found.level, found.floor and found.floor.id) == (score, level, floor)
            assert all(reason.endswith((".", ").")) for reason in found.reasons)


FACTS = st.builds(
    ServerFacts,
    st.sampled_from(["http", "sse", "stdio"]),
    st.sampled_from(["", "https://example.com", "http://10.0.0.1", "http://localhost"]),
    st.sampled_from(["none", "key", "oauth", "own-oauth"]),
    st.sampled_from(["vendor", "community", "known-host", "unknown"]),
    writes=st.booleans(),
    documented=st.booleans(),
)
HINT_VALUES: st.SearchStrategy[Any] = st.booleans() | st.sampled_from([None, 0, 1, "true", "", []])
HINT_SETS = st.dictionaries(st.sampled_from(HINTS), HINT_VALUES)
TOOL_NAMES = st.sampled_from(["convert", "delete_file", "sendMail", "run_sql", "update", "get_post", "grantRole"])
DESCRIPTIONS = st.sampled_from([None, "", "Short.", DESCRIBED])


@settings(max_examples=40)
@given(FACTS, TOOL_NAMES, DESCRIPTIONS, HINT_SETS)
@pytest.mark.guarantee("SR-31")
def test_no_hint_ever_lowers_the_level(
    server: ServerFacts, named: str, description: str | None, hints: dict[str, Any]
) -> None:
    plain = Offered(named, None, description)
    whole = assess_tool(plain, server)
    for key in [*hints, None]:
        fewer = assess_tool(replace(plain, annotations={k: v for k, v in hints.items() if k != key}), server)
        assert whole.level <= fewer.level
        assert fewer.level <= assess_tool(replace(plain, annotations=hints), server).level
    assert says_it_writes(plain) <= says_it_writes(replace(plain, annotations=hints))


IRREVERSIBLE = ["delete_file", "deleteFile", "DeleteFile", "files.delete", "bulk-delete", "deletefile", "DELETE_ALL",
                "dropTable", "purge_queue", "wipeDisk", "remove_user", "removeuser", "git_force_push", "forcePush",
                "rm", "factoryReset", "getAndDelete", "db_truncate"]  # fmt: skip
REVERSIBLE = ["list_deleted_files", "undelete", "removed_items", "dropbox_list", "drag_and_drop",
              "git_reset", "reset_filters", "airdrop", "get_dropdown", "format"]  # fmt: skip


def test_a_verb_that_cannot_be_undone_is_found_in_any_spelling(subtests: pytest.Subtests) -> None:
    for named in IRREVERSIBLE:
        with subtests.test(named=named):
            assert rubric.irreversible(named)


def test_a_name_that_only_contains_such_letters_is_not_taken_for_one(subtests: pytest.Subtests) -> None:
    for named in REVERSIBLE:
        with subtests.test(named=named):
            assert rubric.irreversible(named) is None


def test_a_name_that_runs_code_is_found(subtests: pytest.Subtests) -> None:
    for named in ["exec", "executeQuery", "run_command", "runSQL", "bash", "python_eval", "sudo-do"]:
        with subtests.test(named=named):
            assert rubric.executes(named)


def test_a_name_that_begins_with_a_verb_of_reading_writes_nothing(subtests: pytest.Subtests) -> None:
    for named in ["get_post", "slack_list_messages", "read_email", "search_orders", "convert"]:
        with subtests.test(named=named):
            assert not rubric.writes(named)
            assert not rubric.executes(named)


# -- Both together ----------------------------------------------------------------------------------------------------


def scored(points: int, floor: Floor | None = None, least: int = 1) -> Assessment:
    return Assessment((Signal(points, "A reason."),), floor, least)


FLOOR4, FLOOR5 = Floor("executes", 4, "Runs."), Floor("no-auth-write", 5, "Open.")
COMPOSED = {
    "nothing": (scored(0), scored(0), 1, None),
    "points are added": (scored(1), scored(2), 4, None),
    "never above L5": (scored(9), scored(9), 5, None),
    "the server's least": (scored(0, least=2), scored(0), 2, None),
    "the server's floor": (scored(0, FLOOR5), scored(0), 5, "no-auth-write"),
    "the tool's floor": (scored(0), scored(0, FLOOR4), 4, "executes"),
    "the server's floor comes first": (scored(0, FLOOR4), scored(0, FLOOR5), 5, "executes"),
    "a floor never lowers": (scored(3), scored(3, FLOOR4), 5, "executes"),
}


def test_server_and_tool_are_composed(subtests: pytest.Subtests) -> None:
    for label, (server, tool, level, floor) in COMPOSED.items():
        with subtests.test(label):
            found = compose(server, tool, gated=False, poisoned=False)
            assert (found.inherent, found.effective, found.floor and found.floor.id) == (level, level, floor)


def test_approval_takes_a_level_off_but_never_below_the_first(subtests: pytest.Subtests) -> None:
    for points, effective in [(0, 1), (1, 1), (2, 2), (3, 3), (4, 4)]:
        with subtests.test(points=points):
            found = compose(scored(points), scored(0), gated=True, poisoned=False)
            assert found.effective == effective
            assert found.inherent == points + 1


def test_approval_takes_nothing_off_where_the_scan_trips() -> None:
    found = compose(scored(3), scored(0), gated=True, poisoned=True)
    assert (found.inherent, found.effective) == (4, 4)
    assert "suspicious" in found.reasons[-1]


def test_the_reasons_say_whose_they_are() -> None:
    found = compose(assess_server(SAFE), assess_tool(TOOL, SAFE), gated=True, poisoned=False)
    assert {reason.partition(":")[0] for reason in found.reasons} == {"Server", "Tool", "Every call needs approval"}


def test_real_tools_of_a_gallery_are_moderate_unless_they_say_that_they_destroy(subtests: pytest.Subtests) -> None:
    for _server, tool in REAL:
        with subtests.test(name(tool)):
            facts = replace(SAFE, trust="community")
            found = compose(assess_server(facts), assess_tool(tool, facts), gated=True, poisoned=False)
            destroys = (tool.annotations or {}).get("destructiveHint") is True
            assert found.inherent == 5 if destroys else found.inherent <= 4
            assert found.effective == found.inherent - (found.floor is None)


def test_a_reason_that_gives_a_point_and_sets_the_level_is_told_once() -> None:
    tool = Offered("shop_item", description="Says what is in the shop.", annotations={"destructiveHint": True})
    reasons = assess_tool(tool, SAFE).reasons
    assert len(reasons) == len(set(reasons))
    assert reasons[0] == "The server says that it can destroy data."
