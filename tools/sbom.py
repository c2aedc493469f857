"""Print a software bill of materials (CycloneDX 1.6, JSON) of what `make setup` installs, by requirements.lock.

It needs no network, and the same lock file always gives the same bill.
"""

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)==([^ ;]+)(?: ; (.+))?")
HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def bill(lock: str, project: dict[str, Any]) -> dict[str, Any]:
    """Return the bill of a lock file and of the table `project` of pyproject.toml. Raises: ValueError."""
    name, version = project["name"], project["version"]
    application = {"type": "application", "bom-ref": name, "name": name, "version": version}
    components = [_component(each) for each in lock.replace("\\\n", " ").splitlines() if each.strip()]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": application | {"licenses": [{"license": {"id": project["license"]}}]}},
        "components": components,
    }


def _component(line: str) -> dict[str, Any]:
    """Return one package; `hashes` are those of all files that the lock file takes for it."""
    requirement, *_ = line.partition("--hash=")
    found = REQUIREMENT.fullmatch(requirement.strip())
    if found is None:
        raise ValueError(f"requirements.lock has a line that is no pinned package: {requirement.strip()!r}")
    name, version, marker = found.groups()
    purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
    component: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    component["hashes"] = [{"alg": "SHA-256", "content": each} for each in HASH.findall(line)]
    if marker:
        # Installed there alone.
        component["properties"] = [{"name": "hitlchat:marker", "value": marker}]
    return component


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    sys.stdout.write(json.dumps(bill(lock, project), indent=2) + "\n")
