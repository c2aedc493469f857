"""Commands change nothing while a server with another configuration runs on the same database."""

import io
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from hitlchat import running
from hitlchat.base import environment
from hitlchat.models import ServerProcess
from tests import forks
from tests.processes import Installation, Servers, installation, migrated, servers
from tests.tables import each_row

__all__ = ["installation", "migrated", "servers"]

LATER = timedelta(seconds=15)
OTHER_RULES = [{"policy": "always_ask", "tools": ["pay_out"]}]


@pytest.fixture
def another(db: None) -> ServerProcess:
    """A server in another process, with the configuration of this one."""
    until = timezone.now() + LATER
    return ServerProcess.objects.create(
        pk="another", host="web1", pid=4711, lease_until=until, configuration=running.digests()
    )


def test_a_command_with_the_servers_configuration_runs(another: ServerProcess) -> None:
    call_command("grants", "list", stdout=io.StringIO())


def test_a_command_with_other_project_apps_refuses(another: ServerProcess) -> None:
    ServerProcess.objects.update(configuration=another.configuration | {"PROJECT_APPS": "another"})
    with pytest.raises(CommandError, match="PROJECT_APPS differs from that of process 4711 on web1"):
        call_command("migrate")


def test_a_command_with_other_rules_refuses_without_naming_them(another: ServerProcess, settings: Settings) -> None:
    settings.HITL_POLICIES = OTHER_RULES
    with pytest.raises(CommandError, match="HITL_POLICIES differs from that of process 4711 on web1") as refused:
        call_command("grants", "list")
    assert "pay_out" not in str(refused.value)


def test_another_data_folder_is_another_configuration(
    another: ServerProcess, settings: Settings, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path
    assert [*running.differences()] == [
        "HITLCHAT_DATA differs from that of process 4711 on web1."
        " Other keys, files and marks of the record would be used."
    ]


def test_a_command_runs_under_another_configuration_when_it_is_told_to(
    another: ServerProcess, settings: Settings
) -> None:
    settings.HITL_POLICIES = OTHER_RULES
    call_command("grants", "--anyway", "list", stdout=io.StringIO())


def test_checking_a_file_of_the_record_asks_no_server(tmp_path: Path) -> None:
    # This test has no database, which would fail it.
    with pytest.raises(CommandError, match="No such file"):
        call_command("audit", "check", str(tmp_path / "missing"))


@pytest.mark.parametrize("until", [-timedelta(seconds=1), timedelta(days=1)])
def test_a_server_that_was_killed_stops_counting(another: ServerProcess, settings: Settings, until: timedelta) -> None:
    settings.HITL_POLICIES = OTHER_RULES
    ServerProcess.objects.update(lease_until=timezone.now() + until)
    assert [*running.differences()] == []


def test_a_server_is_on_the_list_from_its_start_to_its_end_and_no_secret_is(db: None, settings: Settings) -> None:
    settings.HITL_POLICIES = OTHER_RULES
    running.renew()
    running.renew()
    row = ServerProcess.objects.get()
    assert "pay_out" not in str(row.configuration)
    # It is no other server to itself.
    assert not running.others().exists()
    running.end()
    assert not ServerProcess.objects.exists()


def test_a_server_that_is_up_never_looks_for_garbage_in_what_it_imported(migrated: Installation) -> None:
    look = """
import gc
from hitlchat.management.commands import serve
before = len(gc.get_objects())
serve.Command()._welcome()
print("objects", before, len(gc.get_objects()))
"""
    printed = migrated.manage("shell", "-v", "0", "-c", look)
    before, after = map(int, printed.rpartition("objects ")[2].split())
    assert before > 10 * after


@each_row("app", ["nosuchapp", "nosuchapp.apps.Config", "shop-app", "./shop", ".shop"])
def test_an_app_that_python_does_not_find_stops_the_start_in_one_sentence(
    app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROJECT_APPS", f"json, {app}")
    with pytest.raises(ImproperlyConfigured) as refused:
        environment.apps("PROJECT_APPS")
    assert str(refused.value).startswith(f"PROJECT_APPS names {app!r}; expected packages that Python finds")


@pytest.mark.slow("starts a server")
@pytest.mark.embedded
def test_migrate_without_the_servers_project_apps_leaves_its_tools_alone(servers: Servers, tmp_path: Path) -> None:
    (tmp_path / "apps" / "shop").mkdir(parents=True)
    (tmp_path / "apps" / "shop" / "__init__.py").touch()
    tool = "from hitlchat.project_tools import tool\n\n\n@tool\ndef ship(order: str) -> str:\n    return order\n"
    (tmp_path / "apps" / "shop" / "tools.py").write_text(tool)
    apps = {"PROJECT_APPS": "shop", "PYTHONPATH": str(tmp_path / "apps")}
    server = servers.start(**apps)
    code, _, errors = forks.run(("manage.py", "migrate"), servers.home.variables(), timeout=120)
    assert code == 1
    assert "PROJECT_APPS differs from that of process" in errors
    assert server.sign_in("alice").get("/api/tools/ship").status_code == 200
    servers.home.manage("migrate", **apps)
    # The server has gone from the list, so that the operator may change what it had.
    assert server.stop() == 0
    servers.home.manage("migrate")
