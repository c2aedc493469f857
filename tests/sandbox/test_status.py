"""What an administrator is told about the sandbox."""

from importlib.metadata import version

from pytest_django import Settings

from hitlchat.sandbox import Status, close, run, status, walls


async def test_the_status_says_which_walls_are_up_and_what_each_keeps_out() -> None:
    said = status()
    found = walls()
    assert {wall.name: wall.is_up for wall in said.walls} == {
        name: name not in found.missing for name in ("interpreter", "rlimits", "no_new_privs", "landlock", "seccomp")
    }
    assert all(wall.keeps_out.endswith(".") for wall in said.walls)
    assert (said.is_jailed, said.missing) == (found.jailed, found.reason)
    assert said.interpreter == f"pydantic-monty {version('pydantic-monty')}"


async def test_asking_for_the_status_starts_nothing() -> None:
    await close()
    assert (status().is_started, status().workers) == (False, 0)
    assert (await run("def run():\n    return 1\n", {})).ok
    assert (status().is_started, status().failure) == (True, "")
    assert 1 <= status().workers <= status().most_workers


def test_where_the_jail_is_required_and_missing_nothing_can_run(settings: Settings) -> None:
    settings.TOOLS_REQUIRE_JAIL = True
    assert status().can_run == walls().jailed
    said = status()
    unjailed = Status(**{**vars(said), "is_jailed": False})
    assert not unjailed.can_run
    assert Status(**{**vars(unjailed), "is_jail_required": False}).can_run
