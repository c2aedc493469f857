"""The workspace: real files in a folder of the test's own."""

import pytest

from tests.tools_studio.library.world import World, fault, result

FILES = ("list_files", "read_file", "search_files", "write_file", "append_to_file", "delete_file")


@pytest.fixture
def desk(world: World) -> World:
    """With two files in it."""
    result(world.call("write_file", path="notes/today.txt", text="Buy tea.\nCall Ann.\nWater the plants."))
    result(world.call("write_file", path="list.txt", text="TEA"))
    return world


def test_the_workspace_is_listed_folder_by_folder(desk: World) -> None:
    assert result(desk.call("list_files")) == [
        {"path": "list.txt", "kind": "file", "bytes": 3},
        {"path": "notes/", "kind": "folder", "bytes": 0},
    ]
    assert result(desk.call("list_files", folder="notes")) == [{"path": "notes/today.txt", "kind": "file", "bytes": 36}]


def test_an_empty_workspace_has_nothing_and_a_folder_that_is_not_there_is_an_error(world: World) -> None:
    assert result(world.call("list_files")) == []
    assert fault(world.call("list_files", folder="nowhere"))


@pytest.mark.slow("writes many folders")
def test_long_folders_are_cut_with_the_cut_stated(world: World) -> None:
    for number in range(105):
        result(world.call("write_file", path=f"{number:03d}.txt", text=""))
    listed = result(world.call("list_files"))
    assert (len(listed), listed[-1]["path"]) == (101, "and 5 more")


def test_a_file_is_read_whole_or_in_part(desk: World) -> None:
    assert result(desk.call("read_file", path="notes/today.txt"))["lines"] == 3
    assert result(desk.call("read_file", path="notes/today.txt", first_line=2, lines=1)) == {
        "path": "notes/today.txt", "text": "Call Ann.", "lines": 3, "more": True,
    }  # fmt: skip
    assert result(desk.call("read_file", path="list.txt", first_line=5))["text"] == ""


@pytest.mark.parametrize("name", ["read_file", "delete_file", "write_file", "append_to_file"])
@pytest.mark.parametrize("path", ["../secret.txt", "/etc/passwd", "a/../../b", ""])
def test_no_path_leads_out_of_the_workspace(desk: World, name: str, path: str) -> None:
    more = {"text": "x"} if name in ("write_file", "append_to_file") else {}
    assert fault(desk.call(name, path=path, **more))


def test_a_file_that_is_not_there_cannot_be_read_or_deleted(desk: World) -> None:
    assert fault(desk.call("read_file", path="nothing.txt"))
    assert fault(desk.call("delete_file", path="nothing.txt")) == "ValueError: there is no nothing.txt"


def test_words_are_found_in_every_folder_whatever_their_case(desk: World) -> None:
    found = result(desk.call("search_files", words=" tea"))
    assert [(line["path"], line["line"]) for line in found["lines"]] == [("list.txt", 1), ("notes/today.txt", 1)]
    assert (found["count"], found["files"], found["all_files"]) == (2, 2, True)
    assert result(desk.call("search_files", words="tea", folder="notes", limit=1))["count"] == 1


@pytest.mark.parametrize("words, count", [("nothing like it", 0), ("call ann", 1)])
def test_what_is_not_there_is_not_found(desk: World, words: str, count: int) -> None:
    assert result(desk.call("search_files", words=words))["count"] == count
    assert "something to look for" in fault(desk.call("search_files", words=" "))


def test_a_file_is_replaced_only_if_that_is_asked_for(desk: World) -> None:
    assert "exists already" in fault(desk.call("write_file", path="list.txt", text="coffee"))
    assert result(desk.call("read_file", path="list.txt"))["text"] == "TEA"
    written = result(desk.call("write_file", path="list.txt", text="Kaffee ☕", replace=True))
    assert written == {"path": "list.txt", "bytes": 10, "replaced": True}
    assert result(desk.call("read_file", path="list.txt"))["text"] == "Kaffee ☕"


def test_the_preview_of_writing_says_what_is_there_and_writes_nothing(desk: World) -> None:
    assert result(desk.look("write_file", path="new.txt", text="a\nb")) == {
        "File": "new.txt", "Now": "does not exist", "Then": "3 bytes, 2 lines",
    }  # fmt: skip
    shown = result(desk.look("write_file", path="list.txt", text="x"))
    assert shown["Now"].startswith("3 bytes, changed 2")
    assert "replace is off" in shown["Then"]
    assert result(desk.look("write_file", path="list.txt", text="x", replace=True))["Then"] == "1 bytes, 1 lines"
    assert [entry["path"] for entry in result(desk.call("list_files"))] == ["list.txt", "notes/"]


def test_lines_are_added_at_the_end(desk: World) -> None:
    assert result(desk.look("append_to_file", path="log.txt", text="one")) == {
        "File": "log.txt", "Now": "does not exist", "Then": "1 more line at the end",
    }  # fmt: skip
    assert result(desk.call("append_to_file", path="log.txt", text="one"))["bytes"] == 4
    assert result(desk.call("append_to_file", path="log.txt", text="two\n"))["bytes"] == 8
    assert result(desk.look("append_to_file", path="log.txt", text="three"))["Now"] == "8 bytes"
    assert result(desk.call("read_file", path="log.txt"))["text"] == "one\ntwo"


def test_a_file_is_deleted_for_good_and_the_preview_shows_how_it_begins(desk: World) -> None:
    shown = result(desk.look("delete_file", path="notes/today.txt"))
    assert (shown["Begins"][:8], shown["Then"]) == ("Buy tea.", "gone")
    assert "gone for good if it is empty" in result(desk.look("delete_file", path="notes"))["Then"]
    assert result(desk.call("delete_file", path="notes/today.txt"))["deleted"] == "notes/today.txt"
    assert result(desk.call("delete_file", path="notes"))["deleted"] == "notes"
    assert "there is no notes" in fault(desk.look("delete_file", path="notes"))


def test_a_folder_with_something_in_it_stays(desk: World) -> None:
    assert fault(desk.call("delete_file", path="notes"))
    assert len(result(desk.call("list_files"))) == 2
