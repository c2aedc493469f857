"""Which tests belong to which run of pytest. TEST_PASS names it; without one, everything that was asked for runs.

| pass | what runs |
|---|---|
| `embedded` | everything once, on SQLite, without a browser |
| `browser` | what drives a browser, on SQLite |
| `servers` | what depends on PostgreSQL or Redis, on these: the table below, each with its reason |
| `every` | all that touches a database, on PostgreSQL and Redis: the rest of the cross product of `make test-all` |
| `quick` | rules, gate and agent without processes of their own, and the stories below |

A pytest plugin, loaded by conftest.py.
"""

import os
from pathlib import Path
from typing import Final

import pytest

from tests.services import postgres_url, redis_url

# The passes of `make test`, which have every test between them.
TOGETHER: Final = ("embedded", "browser", "servers")
PASS: Final = os.environ.get("TEST_PASS", "")

IN_BROWSER: Final = "tests/browser"

LOCKS: Final = "two at the same time, told apart by row locks"
SQL: Final = "SQL by hand, or that differs between the databases"
LASTS: Final = "resumes, or is killed: what is kept is what was committed"
ANNOUNCES: Final = "announced through Redis, after the commit"
TRIGGERS: Final = "triggers of the database, which are written twice"
TEXT: Final = "text that PostgreSQL does not take, or sorts and compares in another way"
POOL: Final = "connections, which a pool keeps there"
NUMBERS: Final = "limits of columns and of numbers, which SQLite does not enforce"

ON_SERVERS: Final = {
    "tests/agent/test_asking.py": LASTS,
    "tests/agent/test_asking_the_person.py": ANNOUNCES,
    "tests/agent/test_attachments.py": LOCKS,
    "tests/agent/test_branches.py": LOCKS,
    "tests/agent/test_claims.py": LOCKS,
    "tests/agent/test_clocks.py": LASTS,
    "tests/agent/test_conversations.py": SQL,
    "tests/agent/test_crashes.py": LASTS,
    "tests/agent/test_endpoints.py": LOCKS,
    "tests/agent/test_held.py": LASTS,
    "tests/agent/test_queued.py": LOCKS,
    "tests/agent/test_size.py": NUMBERS,
    "tests/agent/test_stopping.py": LOCKS,
    "tests/agent/test_turns.py": ANNOUNCES,
    "tests/agent/test_two_processes.py": LASTS,
    "tests/api/ai_sdk/test_following.py": ANNOUNCES,
    "tests/api/ai_sdk/test_processes.py": LASTS,
    "tests/api/test_audit.py": SQL,
    "tests/api/test_calls.py": SQL,
    "tests/api/test_conversations.py": TEXT,
    "tests/api/test_deciding.py": LOCKS,
    "tests/api/test_questions.py": LOCKS,
    "tests/approvals/inbox/test_page.py": SQL,
    "tests/approvals/inbox/test_socket.py": ANNOUNCES,
    "tests/browser/test_history.py": SQL,
    "tests/chat/test_connecting.py": ANNOUNCES,
    "tests/chat/test_deactivated.py": ANNOUNCES,
    "tests/chat/test_models.py": SQL,
    "tests/chat/test_signed_out.py": ANNOUNCES,
    "tests/chat/test_tabs.py": ANNOUNCES,
    "tests/chat/test_uvicorn.py": ANNOUNCES,
    "tests/gate/test_again_races.py": LOCKS,
    "tests/gate/test_again.py": LASTS,
    "tests/gate/test_attention.py": SQL,
    "tests/gate/test_audit.py": TRIGGERS,
    "tests/gate/test_batch.py": LOCKS,
    "tests/gate/test_canonical.py": TEXT,
    "tests/gate/test_compiled.py": SQL,
    "tests/gate/test_decide.py": LOCKS,
    "tests/gate/test_extending.py": LOCKS,
    "tests/gate/test_faults.py": LASTS,
    "tests/gate/test_grants.py": LOCKS,
    "tests/gate/test_grants_races.py": LOCKS,
    "tests/gate/test_history.py": SQL,
    "tests/gate/test_ids.py": SQL,
    "tests/gate/test_joining.py": LOCKS,
    "tests/gate/test_limits.py": LOCKS,
    "tests/gate/test_meeting.py": LOCKS,
    "tests/gate/test_policies_once.py": SQL,
    "tests/gate/test_power_cut.py": LASTS,
    "tests/gate/test_races.py": LOCKS,
    "tests/gate/test_races_everywhere.py": LOCKS,
    "tests/gate/test_same_call.py": TEXT,
    "tests/gate/test_sigkill.py": LASTS,
    "tests/gate/test_stopping.py": LOCKS,
    "tests/gate/test_submit.py": NUMBERS,
    "tests/gate/test_sweep.py": LOCKS,
    "tests/gate/test_taking_back.py": LOCKS,
    "tests/gate/test_texts.py": TEXT,
    "tests/gate/test_timeouts.py": LOCKS,
    "tests/insights/test_figures.py": SQL,
    "tests/mcp_server/test_asking.py": ANNOUNCES,
    "tests/mcp_server/test_ending.py": LOCKS,
    "tests/mcp_server/test_inbox.py": ANNOUNCES,
    "tests/mcp_server/test_killed.py": LASTS,
    "tests/mcp_server/test_listing.py": TEXT,
    "tests/mcp_server/test_notices.py": ANNOUNCES,
    "tests/mcp_server/test_processes.py": LASTS,
    "tests/mcp_server/test_progress.py": ANNOUNCES,
    "tests/mcp_server/test_revoking.py": LOCKS,
    "tests/mcp_server/test_state.py": LOCKS,
    "tests/notices/test_processes.py": LASTS,
    "tests/notices/test_delivery.py": LOCKS,
    "tests/notices/test_composing.py": LOCKS,
    "tests/people/test_membership.py": LOCKS,
    "tests/people/test_invitations.py": LOCKS,
    "tests/people/test_processes.py": LASTS,
    "tests/people/test_races.py": LOCKS,
    "tests/project_tools/test_rows.py": LOCKS,
    "tests/project_tools/test_through_the_gate.py": LOCKS,
    "tests/record/test_attacks.py": SQL,
    "tests/record/test_bolts.py": TRIGGERS,
    "tests/record/test_command.py": SQL,
    "tests/record/test_completeness.py": TRIGGERS,
    "tests/record/test_exporting.py": SQL,
    "tests/record/test_processes.py": LASTS,
    "tests/record/test_sealing.py": LOCKS,
    "tests/record/test_stated.py": SQL,
    "tests/record/test_verifying.py": SQL,
    "tests/telemetry/test_logs.py": LASTS,
    "tests/telemetry/test_metrics.py": LOCKS,
    "tests/telemetry/test_traces.py": LASTS,
    "tests/test_emptying.py": POOL,
    "tests/test_health.py": LASTS,
    "tests/test_threads.py": POOL,
    "tests/tools_studio/test_cases.py": LOCKS,
    "tests/tools_studio/test_list.py": SQL,
    "tests/tools_studio/test_versions.py": LOCKS,
    "tests/upstreams/test_cancelling.py": LASTS,
    "tests/upstreams/test_exposure.py": LOCKS,
    "tests/upstreams/test_discovery.py": LOCKS,
    "tests/upstreams/test_drawer.py": SQL,
    "tests/upstreams/test_faults.py": LASTS,
    "tests/upstreams/test_faults_processes.py": LASTS,
    "tests/upstreams/test_ledger.py": SQL,
    "tests/upstreams/test_questions.py": LOCKS,
    "tests/upgrades/test_upgrades.py": SQL,
    "tests/upstreams/test_servers.py": LOCKS,
}

# With the gate and the agent, of which it leaves out what starts programs of its own.
QUICK_FOLDERS: Final = ("tests/gate", "tests/agent")
STORIES: Final = (
    "tests/api/test_deciding.py",
    "tests/api/test_problems.py",
    "tests/approvals/inbox/test_page.py",
    "tests/chat/test_deciding.py",
    "tests/chat/test_who_decides.py",
    "tests/insights/test_page.py",
    "tests/mcp_server/test_ending.py",
    "tests/notices/test_composing.py",
    "tests/people/test_races.py",
    "tests/record/test_command.py",
    "tests/tools_studio/test_versions.py",
    "tests/upstreams/test_exposure.py",
)
# Beside what starts programs: pages, the demo model and the library, which few changes reach.
NOT_QUICK: Final = (
    "tests/agent/test_demo_model",
    "tests/architecture",
    "tests/browser",
    "tests/chat/test_markdown",
    "tests/gate/test_one_funnel.py",
    "tests/gate/test_power_cut.py",
    "tests/gate/test_races_everywhere.py",
    "tests/gate/test_sigkill.py",
    "tests/sandbox",
    "tests/test_data_folder.py",
    "tests/tools_studio/fetching",
    "tests/tools_studio/files",
    "tests/tools_studio/library",
    "tests/upgrades",
    "tests/upstreams/client",
)

TOUCHES_DATABASE: Final = frozenset({"db", "transactional_db", "installation", "servers", "unmigrated"})
STARTS_PROGRAMS: Final = frozenset({"installation", "servers", "unmigrated", "migrated", "house", "share_server"})


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    path = collection_path.relative_to(config.rootpath).as_posix() if config.rootpath in collection_path.parents else ""
    if PASS == "quick":
        return True if path.startswith(NOT_QUICK) else None
    # Reading the others takes as long as fifty tests. Modules that are no tests are not collected anyway.
    return True if PASS == "servers" and _is_test(path) and path not in ON_SERVERS else None


def _is_test(path: str) -> bool:
    return path.rpartition("/")[2].startswith("test_")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if reason := ON_SERVERS.get(_path(item)):
            item.add_marker(pytest.mark.servers(reason))
    if lost := [item.nodeid for item in items if not any(belongs(item, each) for each in TOGETHER)]:
        raise pytest.UsageError(f"in no pass of `make test`: {lost}")
    if lost := [item.nodeid for item in items if _marked(item, "browser") and not _path(item).startswith(IN_BROWSER)]:
        raise pytest.UsageError(f"in a browser, but not below {IN_BROWSER}: {lost}")
    left_out = [item for item in items if not belongs(item, PASS)]
    if left_out:
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=left_out)


def belongs(item: pytest.Item, run: str) -> bool:
    """Return whether `item` runs in this pass."""
    in_browser, on_postgres = _marked(item, "browser"), _marked(item, "postgres")
    only_there = on_postgres or (_marked(item, "processes") and not in_browser)
    match run:
        case "embedded":
            return not in_browser and not (only_there and has_servers())
        case "browser":
            return in_browser and not (on_postgres and has_servers())
        case "servers":
            return only_there or (_marked(item, "servers") and _touches_database(item))
        case "every":
            return only_there or _touches_database(item)
        case "quick":
            return not in_browser and not on_postgres and _quick(item)
        case _:
            return True


def has_servers() -> bool:
    """Return whether there is a PostgreSQL and a Redis, and so a pass that runs on them."""
    return postgres_url() is not None and redis_url() is not None


def _touches_database(item: pytest.Item) -> bool:
    if _marked(item, "browser") or _marked(item, "embedded"):
        return False
    return bool(TOUCHES_DATABASE.intersection(_fixtures(item))) or _marked(item, "django_db")


def _quick(item: pytest.Item) -> bool:
    path = _path(item)
    if path.startswith(NOT_QUICK) or _marked(item, "embedded") or STARTS_PROGRAMS.intersection(_fixtures(item)):
        return False
    pure = not _touches_database(item) and not _marked(item, "asyncio")
    return path in STORIES or path.startswith(QUICK_FOLDERS) or pure


def _marked(item: pytest.Item, name: str) -> bool:
    return item.get_closest_marker(name) is not None


def _fixtures(item: pytest.Item) -> list[str]:
    return list(getattr(item, "fixturenames", ()))


def _path(item: pytest.Item) -> str:
    return item.path.relative_to(item.config.rootpath).as_posix()


def touched(paths: list[Path], root: Path) -> set[str]:
    """Return the passes of `make test` that may have a test in one of these files or folders."""
    places = {"browser": (IN_BROWSER,), "servers": tuple(ON_SERVERS)}
    below = [os.path.relpath(path.resolve(), root).removeprefix(".") for path in paths]
    passes = {
        name
        for name, known in places.items()
        if any(path.startswith(one) or one.startswith(path) for path in below for one in known)
    }
    return passes if all(path.startswith(IN_BROWSER) for path in below) else passes | {"embedded"}
