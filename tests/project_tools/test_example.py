"""The example of docs/project-tools.md, word for word, on a real server."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ROOT, STEADY, Person, Servers
from tests.waiting import until

pytestmark = pytest.mark.embedded

DOCUMENT = ROOT / "docs" / "project-tools.md"


def example() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), flags=re.DOTALL)
    return str(code)


def write_app(folder: Path, code: str) -> dict[str, str]:
    """An app of the operator's, and what makes the server find it."""
    (folder / "shop").mkdir(exist_ok=True)
    (folder / "shop" / "__init__.py").touch()
    (folder / "shop" / "tools.py").write_text(code, encoding="utf-8")
    # No compiled copies: a change within one second of the first text would go unnoticed by Python.
    return {"PROJECT_APPS": "shop", "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.slow("starts processes")
def test_the_example_works_as_the_page_says_and_a_restart_with_other_code_voids_what_waits(
    servers: Servers, tmp_path: Path
) -> None:
    server = servers.start(**STEADY, **write_app(tmp_path, example()))
    alice = server.sign_in("alice")
    price = alice.post("/api/tools/price_of/test", {"arguments": {"order": "A-1001"}})
    assert (price.status_code, price.json()["result"]) == (200, "120.00")
    asked = alice.post("/api/tools/refund/test", {"arguments": {"order": "A-1001", "amount": 20}})
    assert asked.status_code == 202
    (approval,) = alice.pending()
    assert approval["prompt"] == "Give 20 back for order A-1001?"
    alice.post(f"/api/approvals/{approval['id']}/approve")
    receipt = settled(alice)["result"]
    assert (receipt["order"], receipt["amount"], receipt["by"]) == ("A-1001", "20", "alice")
    failed = alice.post("/api/tools/price_of/test", {"arguments": {"order": "B"}})
    assert "There is no order B." in failed.text

    alice.post("/api/tools/refund/test", {"arguments": {"order": "A-1001", "amount": 20}})
    server.stop()
    write_app(tmp_path, example().replace("amount > left", "amount >= left"))
    server.start()
    assert alice.pending() == []
    assert settled(alice)["status"] == "withdrawn"


def settled(person: Person) -> dict[str, Any]:
    """The last call, once it is settled."""

    def look() -> dict[str, Any] | None:
        call: dict[str, Any] = person.get("/api/calls").json()[0]
        return None if call["status"] in {"waiting", "approved", "allowed", "executing"} else call

    found = until(look, "the call is settled")
    assert found is not None
    return found
