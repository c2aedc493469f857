"""One file of settings for server and console: what it may say, what stops the start, and who wins."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from hitlchat.base import configuration, environment
from hitlchat.management.commands.serve import TABLES
from tests import forks
from tests.processes import Installation, Servers, installation, migrated, servers
from tests.tables import each_row

__all__ = ["installation", "migrated", "servers"]

RULE = '[{"policy": "always_ask", "tools": ["refund # *"]}]'


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """The file of settings of a data folder of its own."""
    before, places = {**os.environ}, {**environment.PLACES}
    os.environ["HITLCHAT_DATA"] = str(tmp_path)
    for name in ("HITLCHAT_ENV", "HITL_POLICIES", "HITL_LANGUAGE", "LEASE_SECONDS"):
        os.environ.pop(name, None)
    yield tmp_path / configuration.NAME
    os.environ.clear()
    os.environ.update(before)
    environment.PLACES.clear()
    environment.PLACES.update(places)


def loaded(file: Path, text: str) -> configuration.Configuration:
    file.write_text(text, encoding="utf-8")
    return configuration.load(file.parent)


def test_values_of_the_file_are_read_with_or_without_quotes(file: Path) -> None:
    loaded(
        file, f"# a comment\n\nHITL_POLICIES={RULE}\n  LEASE_SECONDS = \n".replace(" = ", "=") + 'HITL_LANGUAGE="de"\n'
    )
    assert (environment.text("HITL_POLICIES"), environment.text("HITL_LANGUAGE")) == (RULE, "de")
    assert environment.integer("LEASE_SECONDS", 15) == 15


def test_the_environment_wins_over_the_file_even_with_nothing(file: Path) -> None:
    os.environ.update(LEASE_SECONDS="30", HITL_LANGUAGE="")
    loaded(file, "LEASE_SECONDS=7\nHITL_LANGUAGE=de\n")
    assert (environment.integer("LEASE_SECONDS", 15), environment.text("HITL_LANGUAGE")) == (30, "")


@each_row(
    "text, number, words",
    [
        ("LEASE_SECONDS=7\nHITL_ENABELD=0", 2, "there is no setting HITL_ENABELD. Did you mean HITL_ENABLED?"),
        ("\nhello there", 2, "expected NAME=value"),
        ("LEASE_SECONDS=7\nLEASE_SECONDS=8", 2, "LEASE_SECONDS is already set"),
        ("HITLCHAT_DATA=/elsewhere", 1, "HITLCHAT_DATA says where this file is"),
    ],
)
def test_a_wrong_line_is_refused_with_its_file_and_number(file: Path, text: str, number: int, words: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        loaded(file, text).refuse_unknown()
    assert str(refused.value).startswith(f"{file}, line {number}: ")
    assert words in str(refused.value)


def test_a_wrong_value_is_reported_with_its_line_also_when_it_is_read_again(file: Path) -> None:
    for _ in range(2):
        loaded(file, "\nLEASE_SECONDS=soon")
        with pytest.raises(ImproperlyConfigured, match="line 2\\) is 'soon'; expected a whole number"):
            environment.integer("LEASE_SECONDS", 15)


def test_a_named_file_must_exist_and_may_name_the_data_folder(file: Path, tmp_path: Path) -> None:
    os.environ["HITLCHAT_ENV"] = str(tmp_path / "named.env")
    with pytest.raises(ImproperlyConfigured, match="which does not exist"):
        configuration.load(tmp_path)
    del os.environ["HITLCHAT_DATA"]
    found = loaded(tmp_path / "named.env", "HITLCHAT_DATA=/srv/hitlchat")
    assert (found.file, os.environ["HITLCHAT_DATA"]) == (tmp_path / "named.env", "/srv/hitlchat")


def test_a_new_file_explains_every_setting_and_sets_none_but_the_defaults(file: Path) -> None:
    text = configuration.template(page.read_text(encoding="utf-8") for page in TABLES)
    assert loaded(file, text).places == {}
    lines = [line.removeprefix("#") for line in text.splitlines()]
    assert "# how soon another process takes over from one that died\n#LEASE_SECONDS=15\n" in text
    set_here = loaded(file, "\n".join(line for line in lines if configuration.LINE.fullmatch(line)))
    assert set_here.places.keys() == environment.ASKED.keys() - {*configuration.OUTSIDE}
    for name in set_here.places.keys() & environment.PLACES.keys():
        assert os.environ[name] == environment.ASKED[name]


@pytest.mark.embedded
def test_a_command_stops_with_one_sentence_at_a_wrong_line(tmp_path: Path) -> None:
    file = tmp_path / configuration.NAME
    file.write_text("HITL_ENABELD=0\n")
    variables = Installation(tmp_path).variables()
    code, _, errors = forks.run(("manage.py", "migrate"), variables, timeout=60)
    assert code == 1
    assert errors.strip() == (
        f"manage.py: {file}, line 1: there is no setting HITL_ENABELD. Did you mean HITL_ENABLED?"
    )


@pytest.mark.embedded
def test_a_command_says_in_words_what_it_cannot_read_and_that_it_cannot_use_its_database(tmp_path: Path) -> None:
    variables = Installation(tmp_path).variables() | {"HITLCHAT_DATA": "/proc/data"}
    code, _, errors = forks.run(("manage.py", "migrate"), variables, timeout=60)
    assert (code, errors.count("\n")) == (1, 1)
    assert errors.endswith("'/proc/data'. HITLCHAT_DATA must be a folder of the user that the server runs as\n")
    (key := tmp_path / "secret_key").mkdir()
    code, _, errors = forks.run(("manage.py", "migrate"), Installation(tmp_path).variables(), timeout=60)
    assert (code, errors.count("\n")) == (1, 1)
    assert errors.startswith("manage.py: ")
    assert f"{str(key)!r}. Run every command as the user that the server runs as" in errors
    key.rmdir()
    (tmp_path / "hitlchat.sqlite3").mkdir()
    variables = Installation(tmp_path).variables() | {"DATABASE_URL": ""}
    code, _, errors = forks.run(("manage.py", "migrate"), variables, timeout=60)
    assert code == 1
    assert errors.splitlines() == [
        "manage.py: The database cannot be used: unable to open database file",
        "`manage.py doctor` says what is wrong with it.",
    ]


@pytest.mark.slow("starts a server")
@pytest.mark.embedded
def test_the_first_start_writes_the_file_and_the_next_one_and_commands_take_what_it_says(servers: Servers) -> None:
    file = servers.home.folder / configuration.NAME
    server = servers.start()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "\n#HITL_POLICIES=\n" in file.read_text()
    server.stop()
    file.write_text(file.read_text().replace("#HITL_POLICIES=", f"HITL_POLICIES={RULE.replace(' # ', '_')}"))
    server.start()
    # No complaint about another configuration, since both read the file.
    assert "refund_*" in servers.home.manage("policy", "list")
    assert "refund_*" in server.sign_in("alice").get("/policies").text
