"""Any value in any column of a stored grant: either it says the same as before, or it covers nothing any more."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import DatabaseError
from django.test import override_settings
from django.utils import timezone
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hitlchat.gate.models import Decision, Grant
from tests.gate.asking import approval_of, ask
from tests.gate.granting import conditional, granted, runs
from tests.tables import each_row

# Of how it ended only `end` decides anything.
TOLD = ("why", "ended_at", "ended_by_id")
COLUMNS = [each.attname for each in Grant._meta.concrete_fields if not each.primary_key and each.attname not in TOLD]
VALUES = st.one_of(
    st.none(),
    st.integers(-3, 200),
    st.sampled_from(["", "chat", "mcp", "revoked", "voided", "d" * 64, "e" * 64, "True", "False"]),
    st.timedeltas(timedelta(days=-2), timedelta(days=400)).map(lambda shift: timezone.now() + shift),
    st.uuids(),
)


@pytest.mark.guarantee("gate:fail-closed", "gate:no-yes-no-run", "SR-43")
@pytest.mark.django_db(transaction=True)
def test_a_grant_covers_nothing_any_more_once_any_column_says_something_else(bob: User, charlie: User) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=100, this_conversation=True, minutes=60, condition="True")
    rows = Grant.objects.filter(pk=grant.pk)
    before = rows.values().get()

    @settings(max_examples=30, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.sampled_from(COLUMNS), VALUES)
    @example("condition", "")
    @example("person_id", charlie.pk)
    @example("conversation_id", None)
    @example("calls", None)
    @example("until", None)
    @example("until", timezone.now() + timedelta(hours=5))
    @example("used", 1)
    @example("risk_level", 1)
    def covers_nothing(column: str, value: Any) -> None:
        try:
            rows.update(**{column: value})
        except (DatabaseError, OverflowError, TypeError, ValueError, ValidationError):
            # No such value can stand there.
            return
        if rows.values().get() != before:
            assert not runs(bob, tool)
            assert not runs(charlie, tool)
            rows.update(**before)

    # Whatever is not covered waits, and all of it in one conversation.
    with override_settings(HITL_MAX_WAITING_PER_CONVERSATION=1000, HITL_MAX_WAITING_PER_CALLER=1000):
        covers_nothing()
    assert runs(bob, tool)


@pytest.mark.django_db
def test_a_grant_with_another_number_of_uses_than_there_are_calls_covers_nothing(bob: User) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=3)
    assert runs(bob, tool)
    Grant.objects.filter(pk=grant.pk).update(used=0)
    assert not runs(bob, tool)
    assert Grant.objects.get().why == "the record of the grant was changed"


@pytest.mark.django_db
def test_a_grant_of_someone_who_never_said_yes_covers_nothing(bob: User) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=3)
    assert grant.approval is not None
    grant.approval.decisions.update(verdict="decline")
    assert not runs(bob, tool)


@pytest.mark.guarantee("gate:fail-closed", "SR-43")
@pytest.mark.django_db
@each_row("column", ["verdict", "means", "person", "approval"])
def test_a_grant_covers_nothing_without_the_yes_that_it_was_given_with(column: str, bob: User, charlie: User) -> None:
    tool = conditional()
    grant = granted(bob, tool, calls=9)
    assert runs(bob, tool)
    other = ask(charlie, tool)
    forged = {"verdict": "decline", "means": "elicitation", "person": charlie, "approval": approval_of(other)}
    yes = Decision.objects.filter(approval=grant.approval)
    yes.update(**{column: forged[column]})
    assert not runs(bob, tool)
