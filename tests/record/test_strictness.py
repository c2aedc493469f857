"""The record of calls that were let run and asked about after all, since their conversation was made stricter."""

import pytest
from django.contrib.auth.models import User

from hitlchat.gate import ruling
from hitlchat.gate.models import ToolCall
from hitlchat.record.sealing import seal
from tests.conftest import signed_in
from tests.gate.asking import ask, recording, run, say_yes
from tests.gate.granting import HERE, conditional, covered, granted
from tests.record.conftest import Sql, found

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.guarantee("record:proves")
def test_what_is_asked_about_after_all_is_proved_like_any_other_question(bob: User, entered: list[ToolCall]) -> None:
    tool = conditional(name="granted")
    granted(bob, tool, calls=1)
    calls = [covered(bob, tool), ask(bob, recording(mode="DISABLED"), conversation_id=HERE)]
    ruling.change_strictness(HERE, "every", signed_in(bob))
    for call in calls:
        assert not run(call)
        say_yes(bob, call)
        assert run(call)
    assert len(entered) == 2
    seal()
    assert found() == []


@pytest.mark.guarantee("record:proves")
def test_a_start_of_one_that_nobody_approved_is_named(bob: User, tamper: Sql) -> None:
    call = ask(bob, recording(mode="DISABLED"), conversation_id=HERE)
    ruling.change_strictness(HERE, "every", signed_in(bob))
    assert not run(call)
    tamper("UPDATE gate_toolcall SET status = 'approved' WHERE status = 'waiting'")
    ToolCall.objects.filter(pk=call.pk).update(status="executing")
    seal()
    assert "not what happened" in {kind for kind, _, _ in found()}
