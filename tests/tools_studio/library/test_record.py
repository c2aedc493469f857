"""The recorded hashes."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tools_studio.library import catalogue
from tools_studio.library.catalogue import TOOLS


def test_every_file_is_as_it_was_recorded() -> None:
    assert catalogue.recorded() == {tool.name: catalogue.of_file(tool) for tool in TOOLS}, (
        "renew it: python -m tools_studio.library.catalogue"
    )
    assert all(catalogue.is_genuine(tool, catalogue.recorded()) for tool in TOOLS)


def test_code_and_capabilities_both_count_and_the_order_of_keys_does_not() -> None:
    capabilities = {"store": True, "fetch": {"mode": "public", "methods": ["GET"]}}
    turned = {"fetch": {"methods": ["GET"], "mode": "public"}, "store": True}
    known = catalogue.fingerprint("code", capabilities)
    assert known == catalogue.fingerprint("code", turned)
    assert known != catalogue.fingerprint("code ", capabilities)
    assert known != catalogue.fingerprint("code", {"store": True})


def test_a_file_that_is_not_there_is_not_genuine() -> None:
    lost = replace(TOOLS[0], group="nowhere")
    assert not catalogue.is_genuine(lost, {lost.name: "x"})
    assert not catalogue.is_genuine(TOOLS[0], {})


@pytest.mark.parametrize("text", [None, "", "{", "[]", "\x00"])
def test_a_record_that_cannot_be_read_vouches_for_nothing(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "recorded.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert catalogue.recorded(path) == {}
    assert catalogue.renew(path) == len(TOOLS)
    assert (catalogue.renew(path), len(catalogue.recorded(path))) == (0, len(TOOLS))


def test_it_can_be_renewed_without_a_server(tmp_path: Path) -> None:
    before = json.loads(catalogue.RECORDED.read_text(encoding="utf-8"))
    command = [sys.executable, "-m", "tools_studio.library.catalogue"]
    done = subprocess.run(
        command, cwd=catalogue.RECORDED.parents[2], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == f"{len(TOOLS)} tools recorded, 0 of them anew\n"
    assert json.loads(catalogue.RECORDED.read_text(encoding="utf-8")) == before
