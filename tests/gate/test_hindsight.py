"""Looking back: which calls come to whom, and what is said of them once."""

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.base.problems import NotFound
from hitlchat.gate import hindsight
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import AuditEvent, CallerKind, Hindsight, ToolCall
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.insights.rows import asked, ran

pytestmark = pytest.mark.django_db

FINE, SHOULD_ASK = Hindsight.Verdict.FINE, Hindsight.Verdict.SHOULD_ASK


@pytest.fixture
def everything(settings: LazySettings) -> None:
    settings.HITL_LOOK_BACK_PERCENT = 100


@pytest.mark.usefixtures("everything")
def test_what_ran_unasked_comes_to_its_person_the_newest_first(bob: User, alice: User) -> None:
    now = timezone.now()
    older, newer = (ran(bob, "send", now - timedelta(hours=ago)) for ago in (2, 1))
    ran(alice, "send")
    asked(bob, "send")
    ran(bob, "look", risk_level=0)
    ran(bob, "send", caller_kind=CallerKind.STUDIO)
    ran(bob, "send", status=Status.REFUSED)
    ran(bob, "send", status=Status.EXECUTING, settled_at=None)
    ran(bob, "send", now - hindsight.PERIOD - timedelta(minutes=1))
    assert hindsight.due(bob.pk) == [newer.pk, older.pk]


def test_a_share_of_the_calls_comes_always_the_same_ones(bob: User, settings: LazySettings) -> None:
    for _ in range(300):
        ran(bob, "send")
    found = {}
    for percent in (0, 5, 100):
        settings.HITL_LOOK_BACK_PERCENT = percent
        found[percent] = hindsight.due(bob.pk)
        assert hindsight.due(bob.pk) == found[percent]
    assert (found[0], len(found[100])) == ([], hindsight.MOST)
    settings.HITL_LOOK_BACK_PERCENT = 5
    chosen = [pk for pk in ToolCall.objects.values_list("pk", flat=True) if pk.int % 100 < 5]
    assert sorted(found[5]) == sorted(sorted(chosen, reverse=True)[: hindsight.MOST])


@pytest.mark.usefixtures("everything")
def test_what_a_person_says_is_on_record_once_and_counted_by_tool(bob: User, alice: User) -> None:
    first, second, third = (ran(bob, name) for name in ("send", "send", "look"))
    since = timezone.now() - timedelta(minutes=1)
    for call, verdict in ((first, FINE), (second, SHOULD_ASK), (third, FINE)):
        hindsight.look_back(call.pk, signed_in(bob), verdict)
    with pytest.raises(hindsight.SaidBefore):
        hindsight.look_back(first.pk, signed_in(bob), SHOULD_ASK)
    assert hindsight.due(bob.pk) == []
    assert hindsight.counted(since) == hindsight.counted(since, bob) == {"send": (1, 1), "look": (1, 0)}
    assert hindsight.counted(since, alice) == hindsight.counted(timezone.now()) == {}
    events = AuditEvent.objects.filter(name=hindsight.LOOKED_BACK).order_by("pk")
    assert [(event.call_id, event.actor, event.data.get("shouldAsk")) for event in events] == [
        (first.pk, bob, None),
        (second.pk, bob, True),
        (third.pk, bob, None),
    ]


@pytest.mark.usefixtures("everything")
def test_only_its_person_looks_back_and_only_at_what_ran_unasked(bob: User, alice: User) -> None:
    call, question = ran(bob, "send"), asked(bob, "send").call
    refused: list[tuple[ToolCall, Actor]] = [
        (call, signed_in(alice)),
        (question, signed_in(bob)),
        (call, Actor(bob.pk, "elicitation")),
    ]
    for each, actor in refused:
        with pytest.raises(NotFound):
            hindsight.look_back(each.pk, actor, FINE)
    assert not Hindsight.objects.exists()
