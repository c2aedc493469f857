"""docs/operating.md says what there is: its commands parse, its numbers and names exist."""

import re
import shlex
from pathlib import Path

from hitlchat.gate.transition import NAMES
from hitlchat.management.commands.approvals import Command
from hitlchat.telemetry.metrics import COUNTERS, SECONDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operating.md").read_text(encoding="utf-8")


def test_every_command_on_the_page_is_one() -> None:
    lines = re.findall(r"^manage\.py approvals (.*)$", PAGE, re.MULTILINE)
    parser = Command().create_parser("manage.py", "approvals")
    kinds = {parser.parse_args(shlex.split(line, comments=True)).what for line in lines}
    assert kinds == {"list", "show", "approve", "decline", "watch", "extend"}


def test_every_number_and_event_is_on_the_page_with_its_labels() -> None:
    for name, (_, labels) in COUNTERS.items():
        assert f"`{name}{{{','.join(labels)}}}`" in PAGE
    for name in (SECONDS, "hitlchat_approvals_waiting", "hitlchat_approvals_oldest_seconds", *NAMES.values()):
        assert f"`{name}" in PAGE


def test_every_variable_that_the_settings_read_is_documented_once() -> None:
    tables = re.findall(r"^\| (`[A-Z_]+`.*?) \|", (ROOT / "README.md").read_text(encoding="utf-8") + PAGE, re.MULTILINE)
    documented = [*re.findall(r"`([A-Z_]+)`", " ".join(tables)), "SECRET_KEY_FALLBACKS"]
    source = (ROOT / "hitlchat/settings.py").read_text(encoding="utf-8")
    read = [*re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', source), "HITLCHAT_DATA", "SECRET_KEY", "HOST", "PORT"]
    assert sorted(documented) == sorted(set(read))
