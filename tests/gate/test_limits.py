"""How many questions may be open at once."""

from functools import partial

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.checks import run_checks
from pytest_django import Settings

from hitlchat.gate import queue, results
from hitlchat.gate.models import Approval, Tool, ToolCall, new_id
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, admit, prepare
from tests.conftest import caller
from tests.gate.asking import ask, recording, say_yes
from tests.gate.racing import together
from tests.tables import each_row

pytestmark = pytest.mark.django_db


@each_row("kind", ["studio", "api", "mcp", "chat"])
@pytest.mark.guarantee("SR-41")
def test_beyond_the_limit_of_a_person_every_kind_of_caller_is_refused_in_plain_words(
    kind: str, bob: User, charlie: User, tool: Tool, settings: Settings
) -> None:
    settings.HITL_MAX_WAITING_PER_CALLER = 2
    first, _ = ask(bob, tool, kind=kind), ask(bob, tool, kind="api")
    refused = ask(bob, tool, kind=kind)
    assert (refused.status, refused.reason) == (Status.REFUSED, queue.TOO_MANY)
    assert not Approval.objects.filter(call=refused).exists()
    told = results.for_model(refused)
    assert "It was not executed." in told
    assert "policy" not in told
    assert ask(charlie, tool).status == Status.WAITING
    say_yes(bob, first)
    assert ask(bob, tool, kind=kind).status == Status.WAITING


def test_what_needs_no_question_is_not_limited(bob: User, tool: Tool, settings: Settings) -> None:
    settings.HITL_MAX_WAITING_PER_CALLER = 1
    ask(bob, tool)
    assert ask(bob, recording("look", mode="DISABLED")).status == Status.ALLOWED


def test_a_conversation_has_a_limit_of_its_own(bob: User, tool: Tool, settings: Settings) -> None:
    settings.HITL_MAX_WAITING_PER_CONVERSATION = 1
    here = new_id()
    ask(bob, tool, conversation_id=here)
    assert ask(bob, tool, conversation_id=here).reason == queue.TOO_MANY_HERE
    assert ask(bob, tool, conversation_id=new_id()).status == Status.WAITING


@pytest.mark.django_db(transaction=True)
@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("SR-41")
def test_many_at_once_do_not_pass_the_limit_by_one(bob: User, tool: Tool, settings: Settings) -> None:
    settings.HITL_MAX_WAITING_PER_CALLER = 5
    one = async_to_sync(prepare)(CallRequest(tool.name, {"text": "hello"}, caller(bob, "api")))
    ends = together(*[partial(admit, one)] * 12)
    assert [each for each in ends if isinstance(each, BaseException)] == []
    assert ToolCall.objects.filter(status=Status.WAITING).count() == 5
    assert ToolCall.objects.filter(status=Status.REFUSED, reason=queue.TOO_MANY).count() == 7


def test_limits_that_contradict_each_other_are_told_at_the_start(settings: Settings) -> None:
    assert "hitlchat.W003" not in [found.id for found in run_checks()]
    settings.HITL_MAX_WAITING_PER_CALLER = 19
    assert "hitlchat.W003" in [found.id for found in run_checks()]
