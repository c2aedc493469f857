"""Ids of calls and questions."""

import pytest
from django.contrib.auth.models import User

from hitlchat.gate.models import Tool, new_id
from tests.gate.asking import approval_of, ask

pytestmark = pytest.mark.servers("the SQL differs between the databases")

LAST_32_BITS = 0xFFFFFFFF


@pytest.mark.django_db
@pytest.mark.guarantee("SR-16")
def test_ids_of_questions_are_random_and_say_nothing_of_each_other(bob: User, tool: Tool) -> None:
    tails = {new_id().int & LAST_32_BITS for _ in range(1000)}
    assert len(tails) > 990
    assert len({(tail + 1) & LAST_32_BITS for tail in tails} & tails) < 10
    calls = [ask(bob, tool) for _ in range(2)]
    ids = [call.pk for call in calls] + [approval_of(call).pk for call in calls]
    assert len({each.int & LAST_32_BITS for each in ids}) == 4
