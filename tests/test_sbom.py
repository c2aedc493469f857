"""The bill of materials has each package of the lock file, once."""

import re
import tomllib
from typing import Any, Final

import pytest

from tests.architecture.source import ROOT, read
from tools.sbom import bill

PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_package_of_the_lock_file_is_there_with_what_it_is_checked_by() -> None:
    lock = read("requirements.lock")
    made = bill(lock, PROJECT)
    pinned = re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE)
    assert [(each["name"], each["version"]) for each in made["components"]] == pinned
    assert sum(len(each["hashes"]) for each in made["components"]) == lock.count("--hash=")
    assert (made["bomFormat"], made["metadata"]["component"]["name"]) == ("CycloneDX", "hitlchat")
    assert len({each["bom-ref"] for each in made["components"]}) == len(pinned)


def test_a_package_that_is_installed_only_somewhere_says_where() -> None:
    line = "tzdata==2026.1 ; sys_platform == 'win32' \\\n    --hash=sha256:" + "0" * 64
    (component,) = bill(line, PROJECT)["components"]
    assert component["properties"] == [{"name": "hitlchat:marker", "value": "sys_platform == 'win32'"}]
    assert component["purl"] == "pkg:pypi/tzdata@2026.1"


@pytest.mark.parametrize("line", ["django", "django>=5", "./here"])
def test_what_is_not_pinned_makes_no_bill(line: str) -> None:
    with pytest.raises(ValueError, match="no pinned package"):
        bill(line, PROJECT)
