"""Attention checks over REST: announced by administrators, one's own results, and never among what waits."""

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.accounts.models import TokenKind
from hitlchat.gate import planted
from tests.api.conftest import ProgramOf
from tests.conftest import signed_in
from tests.gate import sources_for_tests
from tests.planted import TEXT, check_for

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def recording_source(settings: Settings) -> None:
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, **sources_for_tests.SOURCES}


def test_an_administrator_announces_them_and_turns_them_off(alice: User, bob: User, program_of: ProgramOf) -> None:
    path, body = "/attention-checks/announcement", {"text": TEXT, "everyDays": 7}
    assert program_of(alice).get(path).json()["isOn"] is False
    for refused in (program_of(bob).put(path, body), program_of(alice, TokenKind.API).put(path, body)):
        assert refused.status_code == 403
    wrong = program_of(alice).put(path, {"text": TEXT, "everyDays": 0})
    assert (wrong.status_code, list(wrong.json()["errors"])) == (422, ["everyDays"])
    found = program_of(alice).put(path, body).json()
    assert (found["isOn"], found["text"], found["everyDays"], found["readBy"]) == (True, TEXT, 7, 0)
    assert found["totals"] is None
    assert program_of(alice).delete(path).status_code == 204
    assert program_of(alice).get(path).json()["isOn"] is False


def test_programs_get_no_check_that_is_open_and_answer_none(alice: User, bob: User, program_of: ProgramOf) -> None:
    check = check_for(bob, alice)
    program = program_of(bob)
    assert program.get("/approvals").json() == program.get("/attention-checks").json() == []
    assert len(program.get("/calls").json()) == 1
    assert program.get(f"/approvals/{check.pk}").status_code == 404
    for word in ("approve", "reject", "take-back", "extend", "on-it", "why"):
        assert program.post(f"/approvals/{check.pk}/{word}", {}).status_code in (404, 422)
    assert planted.open_to(bob.pk) is not None
    planted.answer(check.pk, signed_in(bob), declined=True)
    (own,) = program.get("/attention-checks").json()
    assert (own["argument"], own["wanted"], own["planted"], own["seen"]) == ("amount", "40", "400", True)
    assert program_of(alice).get("/attention-checks").json() == []
