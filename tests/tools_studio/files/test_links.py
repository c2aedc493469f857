"""The capability `files`: no link leads out of a tool's folder, at whatever moment it appears."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.tools_studio.files.conftest import OUTSIDE, Function, plainly
from tools_studio.capabilities import Files
from tools_studio.capabilities.files import FOLDER, below, content, grants, resolved


@pytest.mark.parametrize("target", ["../../outside", "{outside}", "/", "../..", "inner/../../../outside", "."])
def test_a_link_leads_nowhere_else(files: dict[str, Function], base: Path, target: str) -> None:
    (base / "notes" / "link").symlink_to(target.format(outside=base.parent / "outside"))
    for name in ("read", "info", "list", "write", "append", "delete"):
        path = "link" if name in ("list", "delete") else "link/key.txt"
        try:
            found = files[name](path, *(["x"] if name in ("write", "append") else []))
        except (ValueError, PermissionError):
            continue
        assert found in (None, False, ["link/link/"]), name
    assert (base.parent / "outside" / "key.txt").read_text() == OUTSIDE
    assert (base / "notes" / "link").is_symlink()
    assert files["list"]() == (["link/"] if target == "." else [])


def test_a_link_to_a_file_outside_is_refused_in_words(files: dict[str, Function], base: Path) -> None:
    (base / "notes" / "link.txt").symlink_to("../../outside/key.txt")
    with pytest.raises(PermissionError, match="a link that leads out of the tool's folder"):
        files["read"]("link.txt")
    with pytest.raises(PermissionError, match="a link, and that is not followed"):
        files["write"]("link.txt", "x")


def test_a_link_within_the_folder_can_be_read_but_not_written_through(files: dict[str, Function], base: Path) -> None:
    files["write"]("a/real.txt", "here")
    (base / "notes" / "link.txt").symlink_to("b/../a/real.txt")
    (base / "notes" / "b").symlink_to("a")
    (base / "notes" / "b.txt").symlink_to("b/real.txt")
    assert files["read"]("b.txt") == files["read"]("b/real.txt") == "here"
    assert files["list"]() == ["a/", "b.txt", "b/", "link.txt"]
    for path in ("b.txt", "b/real.txt", "b/new.txt"):
        with pytest.raises((PermissionError, ValueError), match="link"):
            files["write"](path, "there")
    assert files["read"]("a/real.txt") == "here"


def test_links_in_a_circle_end(files: dict[str, Function], base: Path) -> None:
    (base / "notes" / "one").symlink_to("two")
    (base / "notes" / "two").symlink_to("one")
    with pytest.raises(PermissionError, match="too many others"):
        files["read"]("one")


def test_a_tools_folder_that_is_a_link_is_not_followed(base: Path) -> None:
    (base / "linked").symlink_to("../outside")
    linked = plainly(grants(Files("write", "linked")))
    for name, arguments in (
        ("read", ["key.txt"]),
        ("write", ["key.txt", "x"]),
        ("list", ["x"]),
        ("delete", ["key.txt"]),
    ):
        with pytest.raises(ValueError, match=r"no folder, or a link"):
            linked[name](*arguments)
    assert (base.parent / "outside" / "key.txt").read_text() == OUTSIDE


@contextmanager
def swapping(folder: Path, outside: Path) -> Iterator[None]:
    """Meanwhile `folder` is, again and again, a link that leads outside."""
    over = threading.Event()
    aside = folder.with_name("aside")

    def swap() -> None:
        while not over.is_set():
            with suppress(OSError):  # a write made the folder anew
                folder.rename(aside)
                folder.symlink_to(outside)
                folder.unlink()
                aside.rename(folder)
            shutil.rmtree(aside, ignore_errors=True)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(40)


@pytest.mark.slow("swaps a folder many times")
def test_a_folder_swapped_for_a_link_at_any_moment_leads_nowhere(files: dict[str, Function], base: Path) -> None:
    files["write"]("a/key.txt", "mine")
    seen = set()
    with swapping(base / "notes" / "a", base.parent / "outside"):
        for number in range(100):
            for name, arguments in (("read", ["a/key.txt"]), ("append", ["a/new.txt", str(number)])):
                try:
                    seen.add(files[name](*arguments))
                except (ValueError, PermissionError) as error:
                    seen.add(type(error).__name__)
    assert OUTSIDE not in seen
    assert [path.name for path in (base.parent / "outside").iterdir()] == ["key.txt"]
    assert (base.parent / "outside" / "key.txt").read_text() == OUTSIDE


def test_a_folder_swapped_for_a_link_between_look_and_use_is_not_entered(
    files: dict[str, Function], base: Path
) -> None:
    files["write"]("a/key.txt", "mine")
    top = os.open(base / "notes", FOLDER)
    try:
        way = resolved(top, ("a", "key.txt"))
        with below(top, way[:-1]) as entered:
            (base / "notes" / "a").rename(base / "notes" / "aside")
            (base / "notes" / "a").symlink_to(base.parent / "outside")
            assert content(entered, "key.txt", 100) == b"mine"
        with pytest.raises(NotADirectoryError), below(top, way[:-1]):
            pass
    finally:
        os.close(top)
