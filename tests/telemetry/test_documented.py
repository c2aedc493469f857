"""docs/operating.md says what there is: its commands parse, its numbers and names exist."""

import re
import shlex
from pathlib import Path

from django.conf import settings

from hitlchat.agent.attachments import keeping, pdf
from hitlchat.base import environment
from hitlchat.gate.transition import NAMES
from hitlchat.management.commands.approvals import Command
from hitlchat.telemetry.metrics import COUNTERS, SECONDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operating.md").read_text(encoding="utf-8")


def test_every_command_on_the_page_is_one() -> None:
    lines = re.findall(r"^manage\.py approvals (.*)$", PAGE.replace("\\\n", " "), re.MULTILINE)
    parser = Command().create_parser("manage.py", "approvals")
    kinds = {parser.parse_args(shlex.split(line, comments=True)).what for line in lines}
    assert kinds == {"list", "show", "approve", "decline", "watch", "extend"}


def test_every_number_and_event_is_on_the_page_with_its_labels() -> None:
    for name, (_, labels) in COUNTERS.items():
        assert f"`{name}{{{','.join(labels)}}}`" in PAGE
    for name in (SECONDS, "hitlchat_approvals_waiting", "hitlchat_approvals_oldest_seconds", *NAMES.values()):
        assert f"`{name}" in PAGE


def test_the_limits_of_attachments_are_those_of_the_settings() -> None:
    pattern = re.compile(r"^\| ((?:`(?:ATTACHMENT|MODEL_IMAGE)[A-Z_]+`(?:, )?)+) \| ([\d, ]+) \|", re.MULTILINE)
    rows = [(re.findall(r"[A-Z_]+", names), re.findall(r"\d+", values)) for names, values in pattern.findall(PAGE)]
    documented = {name: int(value) for names, values in rows for name, value in zip(names, values, strict=True)}
    assert len(documented) == 8
    assert documented == {name: getattr(settings, name) for name in documented}
    page = (ROOT / "docs/conversations.md").read_text(encoding="utf-8")
    for said in (
        f"up to {settings.ATTACHMENT_FILES} files of {settings.ATTACHMENT_MIB} MiB",
        f"first {settings.ATTACHMENT_CHARACTERS:,} characters",
        f"{pdf.MEBIBYTES} MiB to read",
    ):
        assert said in page
    assert (pdf.SECONDS, keeping.KEPT.days) == (8, 3)


def test_every_variable_that_the_settings_read_is_documented_once() -> None:
    tables = re.findall(r"^\| (`[A-Z_]+`.*?) \|", (ROOT / "README.md").read_text(encoding="utf-8") + PAGE, re.MULTILINE)
    documented = re.findall(r"`([A-Z_]+)`", " ".join(tables))
    assert sorted(documented) == sorted(environment.ASKED)
