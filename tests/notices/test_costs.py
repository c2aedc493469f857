"""What looking for notices costs: little while nothing happens, and by index whatever else there is."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hitlchat.gate.models import AuditEvent
from hitlchat.notices.models import Installation, Item, Notice, State
from tests import clock
from tests.gate.asking import ask, recording
from tests.notices.noticing import look, webhook
from tests.notices.receivers import Inbound

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.embedded]

# The receivers; where reading went on, and whether anything is new of either kind; for the receiver, whether something
# of either kind is untold; and what is due.
IDLE = 7


def plan(rows: QuerySet[Any]) -> str:
    return rows.explain()


def test_what_is_read_every_few_seconds_is_found_by_index() -> None:
    now = timezone.now()
    events = AuditEvent.objects.filter(at__gt=now, name__in=["call.waiting"]).order_by("at", "pk")
    assert "audit_by_time" in plan(events)
    due = Notice.objects.filter(state=State.DUE, next_try_at__lte=now).order_by("next_try_at", "pk")
    assert "notice_due" in plan(due)
    untold = Item.objects.filter(receiver_id=Notice().pk, kind="waiting", notice=None).order_by("made_at")
    assert "item_untold" in plan(untold)


def test_a_look_at_which_nothing_happened_asks_few_questions_and_writes_nothing(
    alice: User, bob: User, inbound: Inbound
) -> None:
    with CaptureQueriesContext(connection) as without_receivers:
        look()
    assert len(without_receivers) <= 2
    webhook(alice, inbound)
    ask(bob, recording())
    look()
    with CaptureQueriesContext(connection) as queries:
        look()
    asked = [query["sql"] for query in queries if query["sql"].startswith(("SELECT", "INSERT", "UPDATE", "DELETE"))]
    assert len(asked) <= IDLE
    assert all(sql.startswith("SELECT") for sql in asked)


def test_what_was_read_is_not_read_again_where_nobody_is_ever_asked(alice: User, inbound: Inbound) -> None:
    webhook(alice, inbound)
    look()
    first = Installation.row().looked_at
    with clock.travel(timezone.now() + timedelta(hours=1)):
        look()
        assert Installation.row().looked_at == timezone.now()
    assert first is not None
