"""The capability `files`: what a tool keeps below its folder, and that no path leads out of it."""

import os
import stat
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.tables import each_row
from tests.tools_studio.files.conftest import Function, plainly
from tools_studio.capabilities import Files
from tools_studio.capabilities.files import grants


def test_what_was_written_is_read_again(files: dict[str, Function], base: Path) -> None:
    files["write"]("lists/food.txt", "bread\r\nmilk\n")
    files["append"]("lists/food.txt", "crème\n")
    assert files["read"]("lists/food.txt") == "bread\r\nmilk\ncrème\n"
    assert (base / "notes" / "lists" / "food.txt").read_bytes() == "bread\r\nmilk\ncrème\n".encode()


def test_files_and_folders_are_listed_in_order(files: dict[str, Function]) -> None:
    for path in ("b.txt", "a/two.txt", "a/one.txt"):
        files["write"](path, "x")
    assert files["list"]() == ["a/", "b.txt"]
    assert files["list"]("a") == files["list"]("a/") == ["a/one.txt", "a/two.txt"]


def test_nothing_is_listed_before_anything_was_written(base: Path) -> None:
    fresh = plainly(grants(Files("write", "other")))
    assert (fresh["list"](), fresh["delete"]("x"), fresh["info"]("x")) == ([], False, None)
    assert not (base / "other").exists()


def test_a_file_can_be_looked_at_without_being_read(files: dict[str, Function], base: Path) -> None:
    files["write"]("a/b.txt", "four")
    os.utime(base / "notes" / "a" / "b.txt", (1_700_000_000, 1_700_000_000))
    when = datetime.fromtimestamp(1_700_000_000, UTC)
    assert files["info"]("a/b.txt") == {"size": 4, "modified": when, "is_folder": False}
    assert files["info"]("a")["is_folder"] is True
    assert files["info"]("a/c.txt") is files["info"]("a/b.txt/c") is files["info"]("none/at/all") is None


def test_files_and_empty_folders_can_be_deleted(files: dict[str, Function]) -> None:
    files["write"]("a/b.txt", "x")
    with pytest.raises(ValueError, match="not empty"):
        files["delete"]("a")
    assert [files["delete"](path) for path in ("a/b.txt", "a/b.txt", "a", "a")] == [True, False, True, False]
    assert files["list"]() == []


def test_with_the_mode_read_nothing_can_be_written(base: Path) -> None:
    assert base.is_dir()
    assert set(grants(Files("read", "notes"))) == {"files.read", "files.list", "files.info"}
    assert grants(None) == {}


def test_what_is_kept_is_for_the_servers_own_user_alone(files: dict[str, Function], base: Path) -> None:
    files["write"]("a/b.txt", "x")
    kept = base / "notes" / "a"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (kept, kept / "b.txt")] == [0o700, 0o600]


BAD_PATHS = [
    "/etc/passwd", "..", "../outside/key.txt", "a/../../outside/key.txt", "a/..", "./a", ".", "a//b", "a//", "",
    "a\x00b", "a\nb", "a\x1b[0m", "a\u202eb", "a\u200bb", "a\ud800", "..\\outside", "a\\b", "C:\\x", "/".join("a" * 17),
    "x" * 256, "é" * 128, ".unfinished-00", "a/.unfinished-x/b",
]  # fmt: skip


@each_row("path", BAD_PATHS, ids=ascii)
@each_row("name", ["read", "list", "info", "write", "append", "delete"])
def test_a_path_with_tricks_is_refused(files: dict[str, Function], base: Path, name: str, path: str) -> None:
    if name == "list" and not path:
        return  # the folder itself
    before = sorted(base.parent.rglob("*"))
    with pytest.raises(ValueError, match=r"path|name|slashes|levels"):
        files[name](path, *(["x"] if name in ("write", "append") else []))
    assert sorted(base.parent.rglob("*")) == before


@each_row("path", [None, 7, b"x", ["x"]], ids=repr)
def test_a_path_is_a_text(files: dict[str, Function], path: object) -> None:
    with pytest.raises(TypeError, match="a path is a text"):
        files["read"](path)


@pytest.mark.parametrize("path", ["...", "a b", "ünïcode", ".hidden", "~", "$HOME", "%2e%2e", "con", "x" * 255, "-rf"])
def test_an_unusual_name_is_only_a_name(files: dict[str, Function], base: Path, path: str) -> None:
    files["write"](path, "x")
    assert files["list"]() == [path]
    assert [each.name for each in (base / "notes").iterdir()] == [path]


def test_what_is_no_regular_file_is_refused_at_once(files: dict[str, Function], base: Path) -> None:
    os.mkfifo(base / "notes" / "pipe")
    for name in ("read", "write", "append", "delete"):
        with pytest.raises(ValueError, match="not a regular file"):
            files[name]("pipe", *(["x"] if name in ("write", "append") else []))
    assert (files["info"]("pipe"), files["list"]()) == (None, [])


def test_a_file_that_is_too_large_is_neither_read_nor_written(files: dict[str, Function], base: Path) -> None:
    with (base / "notes" / "large").open("wb") as large:
        large.truncate(1024 * 1024 + 1)
    with pytest.raises(ValueError, match="larger than 1,048,576 bytes"):
        files["read"]("large")
    with pytest.raises(ValueError, match="1,048,577 bytes"):
        files["write"]("x", "x" * (1024 * 1024 + 1))
    files["write"]("x", "x" * 1024 * 1024)
    with pytest.raises(ValueError, match="1,048,577 bytes"):
        files["append"]("x", "x")
    assert files["info"]("x")["size"] == 1024 * 1024


def test_what_is_no_utf_8_is_said_to_be_no_text(files: dict[str, Function], base: Path) -> None:
    (base / "notes" / "picture").write_bytes(b"abc\xff")
    with pytest.raises(ValueError, match="not UTF-8 text: the byte at 3"):
        files["read"]("picture")


def test_a_full_folder_takes_no_more_files(files: dict[str, Function], base: Path) -> None:
    for number in range(998):
        (base / "notes" / f"{number}").touch()
    with pytest.raises(ValueError, match="1,000 files and folders"):
        files["write"]("a/b/c", "x")
    files["write"]("a/b", "x")
    files["write"]("a/b", "y")
    with pytest.raises(ValueError, match="1,000 files and folders"):
        files["write"]("c", "x")
    assert files["delete"]("0")
    files["write"]("c", "x")


def test_a_folder_takes_no_more_bytes_than_its_quota(files: dict[str, Function], base: Path) -> None:
    with (base / "notes" / "large").open("wb") as large:
        large.truncate(64 * 1024 * 1024 - 3)
    files["write"]("x", "abc")
    with pytest.raises(ValueError, match="67,108,864 bytes"):
        files["append"]("x", "d")
    files["write"]("x", "ab")


def test_what_another_process_left_unfinished_is_neither_seen_nor_kept(files: dict[str, Function], base: Path) -> None:
    left = base / "notes" / "a" / ".unfinished-0123"
    left.parent.mkdir()
    left.write_text("half")
    assert files["list"]("a") == []
    files["write"]("b", "x")
    assert not left.exists()


def test_writers_at_once_lose_nothing(files: dict[str, Function]) -> None:
    start = threading.Barrier(4)

    def append(letter: str) -> None:
        start.wait(40)
        for _ in range(20):
            files["append"]("log", letter)

    threads = [threading.Thread(target=append, args=[letter]) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    assert sorted(files["read"]("log")) == sorted("abcd" * 20)


def test_what_the_disk_refuses_is_said_without_a_place(files: dict[str, Function], base: Path) -> None:
    files["write"]("a", "x")
    with pytest.raises(ValueError, match="no folder, or a link") as caught:
        files["write"]("a/b", "x")
    assert str(base) not in str(caught.value)
    with pytest.raises(ValueError, match="there is no 'b'"):
        files["read"]("b")
