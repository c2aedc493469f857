"""Earned rules: which the record bears out, what a published one lets run, and what ends it."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from hitlchat.gate import decide, draft, earned, hindsight, lab, replay, ruling, settling, tools
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.history import changes
from hitlchat.gate.loosening import NotConfirmed
from hitlchat.gate.models import AuditEvent, DecidedBy, Grant, Hindsight, Tool, ToolCall
from hitlchat.gate.oversight import Rules
from hitlchat.gate.simulation import coverage
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, fresh, run, say_yes, status
from tests.gate.earning import NOTHING, answered, history, keep, published, refund, small
from tests.gate.granting import HERE, again
from tests.gate.policy_rules import ALLOWS, ASKS
from tests.tables import each_row

pytestmark = pytest.mark.django_db

CONDITION = (
    "sorted(args) == ['amount', 'order'] and 10 <= args['amount'] <= 39 and len(args['order']) <= 4 and "
    "args['order'].isascii() and args['order'].replace('-', '').replace('_', '').isalnum() and not args_from_outside"
)


@pytest.fixture
def tool(bob: User) -> Tool:
    made = refund()
    history(bob, made)
    return made


def no(user: User, call: ToolCall) -> None:
    decide.decline(approval_of(call).pk, signed_in(user))


def proposed() -> list[str]:
    return [each.tool.name for each in earned.proposals()]


def test_the_map_of_what_can_run_unasked_names_a_rule_in_force_for_calls_of_the_chat(
    tool: Tool, alice: User, settings: Settings
) -> None:
    published(alice, tool)
    (found,) = coverage(Tool.objects.filter(pk=tool.pk))
    assert (found.states["chat"], found.states["mcp"]) == ("may", "asked")
    (why,) = found.why
    assert why.startswith("An earned rule, published by alice, lets calls like those that people approved run")
    settings.HITL_POLICIES = [ASKS]
    assert not coverage(Tool.objects.filter(pk=tool.pk))[0].can_run_unasked
    settings.HITL_POLICIES = []
    giving.revoke(Grant.objects.get().pk, signed_in(alice))
    (found,) = coverage(Tool.objects.filter(pk=tool.pk))
    assert (found.can_run_unasked, found.why) == (False, ())


def test_what_was_always_approved_is_proposed_with_its_evidence_and_nothing_is_changed(tool: Tool, bob: User) -> None:
    before = list(AuditEvent.objects.values_list("pk"))
    (found,) = earned.proposals()
    assert (found.rule.condition, found.rule.per_day, found.rule.per_person) == (CONDITION, 3, 3)
    evidence = found.evidence
    assert (evidence.approved, evidence.like_it, evidence.people, evidence.days) == (30, 30, 1, 10)
    assert evidence.against == ()
    assert set(evidence.other_noes) == set(ToolCall.objects.filter(status="declined").values_list("pk", flat=True))
    checked = earned.evidence_for(tool, found.rule.condition)
    assert (checked.approved, checked.against, set(checked.other_noes)) == (30, (), set(evidence.other_noes))
    assert found.draft["tools"]["refund"]["hitlMode"] == "CONDITIONAL"
    assert list(AuditEvent.objects.values_list("pk")) == before
    assert Tool.objects.get().hitl_mode == "REQUIRED"
    assert small(bob, tool).status == Status.WAITING


UNSOUND: dict[str, dict[str, Any]] = {
    "answered faster than can be read": {"hurried": True},
    "never seen by who answered": {"first_shown_at": None},
    "on the word of a client": {"means": "elicitation"},
    "edited by who approved them": {"edited_arguments": {"order": "A", "amount": 1}},
    "with values from outside": {"provenance": [{"path": "/order", "from": "outside"}]},
    "of which nobody knows where values come from": {"provenance": None},
    "that failed": {"status": Status.FAILED},
    "decided by others": {"oversight_digest": "e" * 64},
    "of another caller": {"kind": "api"},
    "of another tool of that name": {"source": "another"},
    "of another definition of the tool": {"definition_hash": "e" * 64},
    "all of one day": {"days": 1},
    "of long ago": {"days": 100},
    "taken back": {"status": Status.WITHDRAWN},
}


@pytest.mark.guarantee("gate:fail-closed")
@each_row("more", UNSOUND.values(), UNSOUND)
def test_yeses_that_prove_nothing_are_no_evidence(more: dict[str, Any], bob: User) -> None:
    made = refund("pay")
    for number in range(60):
        answered(bob, made, {"order": f"A-{number}", "amount": 10}, **{"days": 1 + number // 6} | more)
    assert proposed() == []


def test_what_an_agent_repeats_in_a_conversation_counts_once(bob: User, alice: User) -> None:
    made, where = refund("pay"), ask(bob, refund("other"), {"order": "a", "amount": 1}).conversation_id
    for number in range(40):
        answered(bob, made, {"order": "A-1", "amount": 10}, days=1 + number // 4, conversation_id=where)
    assert proposed() == []


def test_of_a_year_of_patterns_exactly_the_sound_ones_are_proposed(bob: User, alice: User) -> None:
    sound, mixed, free, few, mail = (refund(name) for name in ("sound", "mixed", "free", "few", "mail"))
    history(bob, sound)
    for number in range(60):
        day: dict[str, Any] = {"days": 1 + number // 4}
        answered(bob, mixed, {"order": f"A-{number}", "amount": 10}, no=number % 3 == 0, **day)
        answered(bob, free, {"order": f"Drop the table {number}!", "amount": 10}, **day)
        reason = {"order": f"A-{number}", "amount": number, "note": "damaged" if number % 3 else "changed my mind"}
        answered(bob, mail, reason, no=not number % 3, **day)
    for number in range(earned.LEAST - 1):
        answered(bob, few, {"order": f"A-{number}", "amount": 10}, days=number + 1)
    found = {each.tool.name: each.rule.condition for each in earned.proposals()}
    assert [*found] == ["mail", "sound"]
    assert "args['note'] == 'damaged'" in found["mail"]


def test_who_gets_something_is_only_ever_somebody_who_was_approved(bob: User) -> None:
    few, many = refund("few"), refund("many")
    for number in range(60):
        day: dict[str, Any] = {"days": 1 + number // 6}
        answered(bob, few, {"recipient": f"r{number % 2}", "amount": 10 + number}, **day)
        answered(bob, many, {"recipient": f"r{number}", "amount": 10 + number}, **day)
    (found,) = earned.proposals()
    assert (found.tool, "args['recipient'] in ['r0', 'r1']" in found.rule.condition) == (few, True)


@pytest.mark.guarantee("gate:same-call")
@each_row(
    "values, like, unlike",
    [
        ([*range(30)], [0, 1, 1.0, 29], [True, False, "1", 30]),
        ([True, False], [True, False], [1, 0, 1.0, "True"]),
        ([[1, 2]], [[1, 2]], [[True, 2], "[1, 2]", [1.0, 2]]),
        ([1, None], [1, None], [True, "1"]),
    ],
    ["numbers in a range", "yes or no", "a list", "one number, or nothing"],
)
def test_a_value_of_another_kind_is_another_value(
    values: list[Any], like: list[Any], unlike: list[Any], alice: User, bob: User
) -> None:
    made = refund("pay", input_schema={"type": "object", "properties": {"n": {}}})
    for number in range(60):
        answered(bob, made, {"n": values[number % len(values)]}, days=1 + number // 6)
    published(alice, made, perDay=100, perPerson=100)
    for given, ends in ((like, Status.ALLOWED), (unlike, Status.WAITING)):
        assert [ask(bob, made, {"n": each}, heard=NOTHING).status for each in given] == [ends] * len(given)


def _risky(tool: Tool, alice: User) -> None:
    Tool.objects.filter(pk=tool.pk).update(risk_inherent=5)


def _signed_in(tool: Tool, alice: User) -> None:
    Tool.objects.filter(pk=tool.pk).update(signed_in_only=True)


def _four_eyes(tool: Tool, alice: User) -> None:
    ruling.change(tool, Rules(DecidedBy.APPROVERS, quorum=1, not_the_requester=True), signed_in(alice), confirmed=True)


def _unpublished(tool: Tool, alice: User) -> None:
    Tool.objects.filter(pk=tool.pk).update(published=False)


NEVER = {"L5": _risky, "signed in only": _signed_in, "four eyes": _four_eyes, "unpublished": _unpublished}


@pytest.mark.guarantee("gate:fail-closed")
@each_row("change", NEVER.values(), NEVER)
def test_tools_that_call_for_more_care_never_earn_a_rule(change: Any, tool: Tool, alice: User) -> None:
    (before,) = earned.proposals()
    change(tool, alice)
    assert proposed() == []
    with pytest.raises(draft.BadDraft, match="No rule can be earned"):
        keep(alice, before.draft)


@pytest.mark.guarantee("gate:fail-closed")
@each_row("why", [each for each in NEVER if each != "four eyes"])
def test_a_tool_that_may_earn_none_any_more_gets_none_from_a_draft_of_before(why: str, tool: Tool, alice: User) -> None:
    (found,) = earned.proposals()
    kept = keep(alice, found.draft)
    NEVER[why](tool, alice)
    with pytest.raises(lab.CannotPublish, match="No rule can be earned"):
        lab.publish(kept.pk, signed_in(alice), "So.", confirmed=True)
    assert not Grant.objects.exists()


def test_a_tool_has_one_rule_at_a_time_whatever_others_have(tool: Tool, alice: User, bob: User) -> None:
    other = refund("other")
    history(bob, other)
    (rule,) = [each.rule for each in earned.proposals() if each.tool == tool]
    published(alice, other)
    published(alice, tool)
    kept = keep(alice, {"tools": {"refund": {"earned": rule.model_dump(by_alias=True)}}}, "Another")
    with pytest.raises(lab.CannotPublish, match="is in force"):
        lab.publish(kept.pk, signed_in(alice), "So.", confirmed=True)
    assert Grant.objects.count() == 2


def test_a_tool_that_never_asks_earns_none_and_one_set_in_code_only_where_policies_decide_already(bob: User) -> None:
    may = {
        (source, mode): earned.can_earn(refund(f"{source}_{mode}", source=source, hitl_mode=mode))
        for source in ("recording", "project")
        for mode in ("CONDITIONAL", "REQUIRED", "DISABLED")
    }
    assert {each for each, is_so in may.items() if is_so} == {
        ("recording", "CONDITIONAL"),
        ("recording", "REQUIRED"),
        ("project", "CONDITIONAL"),
    }


def test_a_published_one_lets_run_what_is_like_it_and_the_rest_asks(tool: Tool, alice: User, bob: User) -> None:
    waiting = small(bob, tool)
    rule = published(alice, tool)
    assert status(waiting) == Status.WAITING
    call = small(bob, tool)
    assert (call.status, call.grant_id) == (Status.ALLOWED, rule.pk)
    assert call.reason.startswith("Not asked because of an earned rule: refund runs without asking while sorted(args)")
    assert run(call)
    assert status(call) == Status.SUCCEEDED
    for other in (
        small(bob, tool, 40),
        small(bob, tool, 9),
        small(bob, tool, order="A and more"),
        small(bob, tool, heard=None),
        small(bob, tool, kind="api"),
        ask(bob, Tool.objects.get(), {"order": "A", "amount": 12, "note": "x"}, heard=None),
    ):
        assert other.status == Status.WAITING
    assert small(alice, tool).status == Status.ALLOWED, "for everybody"
    event = AuditEvent.objects.get(name="grant.earned")
    assert event.data["evidence"] == {"approved": 30, "people": 1, "days": 10, "otherNoes": 3}
    assert changes.words(event).startswith("A rule was earned: refund runs without asking while")
    assert proposed() == []


@pytest.mark.guarantee("gate:fail-closed")
def test_it_comes_into_force_only_confirmed_and_borne_out_by_the_record_of_then(
    tool: Tool, alice: User, bob: User
) -> None:
    (found,) = earned.proposals()
    kept = keep(alice, found.draft)
    with pytest.raises(NotConfirmed, match="Calls run without asking while"):
        lab.publish(kept.pk, signed_in(alice), "So.")
    noes: list[dict[str, Any]] = [{"status": Status.WITHDRAWN}, {"no": True}]
    for how in noes:
        said = answered(bob, tool, {"order": "A-1", "amount": 20}, **how)
        with pytest.raises(lab.CannotPublish, match="people said no"):
            lab.publish(kept.pk, signed_in(alice), "So.", confirmed=True)
        ToolCall.objects.filter(pk=said.pk).update(caller_kind="api")
    wide = found.draft
    wide["tools"]["refund"]["earned"]["condition"] = "args['amount'] > 900"
    with pytest.raises(lab.CannotPublish, match="too few"):
        lab.publish(keep(alice, wide, "Wide").pk, signed_in(alice), "So.", confirmed=True)
    asks = {"tools": {"refund": {"earned": found.draft["tools"]["refund"]["earned"]}}}
    with pytest.raises(lab.CannotPublish, match="has the mode"):
        lab.publish(keep(alice, asks, "Asks").pk, signed_in(alice), "So.", confirmed=True)
    # Of a call that was declined, the second gives no answer.
    for condition in ("True", "args['amount'] < 40 or args['amount'] == 900 and args['note'] == ''"):
        wide["tools"]["refund"]["earned"]["condition"] = condition
        with pytest.raises(lab.CannotPublish, match="people said no"):
            lab.publish(keep(alice, wide, "All").pk, signed_in(alice), "So.", confirmed=True)
    assert (Grant.objects.count(), Tool.objects.get().hitl_mode) == (0, "REQUIRED")


@pytest.mark.guarantee("gate:fail-closed")
def test_a_no_while_it_is_published_keeps_it_out(tool: Tool, alice: User, bob: User) -> None:
    (found,) = earned.proposals()
    Tool.objects.update(hitl_mode="CONDITIONAL")
    call = {"order": "A-1", "amount": 20}

    def regret() -> ToolCall:
        said = answered(bob, tool, call)
        Hindsight.objects.create(call=said, person=bob, verdict=Hindsight.Verdict.SHOULD_ASK, at=timezone.now())
        return said

    # Also one that was begun before the record was read, and could not be read there yet; whatever clocks say.
    ways: list[Callable[[], ToolCall]] = [
        partial(answered, bob, tool, call, no=True, days=-1),
        partial(answered, bob, tool, call, no=True, days=1),
        partial(answered, bob, tool, call, edited_arguments={**call, "amount": 21}),
        regret,
    ]
    for says in ways:
        evidence = earned.check(tool, found.rule)
        said = says()
        with pytest.raises(earned.NotBorneOut, match="just answered"):
            earned.put_in_force(tool.pk, found.rule, evidence, signed_in(alice))
        ToolCall.objects.filter(pk=said.pk).update(caller_kind="api")
    answered(bob, tool, {"order": "A-1", "amount": 900}, no=True)
    # A no that was read, and is to something else, keeps nothing out.
    earned.put_in_force(tool.pk, found.rule, earned.check(tool, found.rule), signed_in(alice))


def test_beside_policies_a_tool_that_asked_every_time_asks_about_all_else(
    tool: Tool, alice: User, bob: User, settings: Settings
) -> None:
    settings.HITL_POLICIES = [ALLOWS]
    published(alice, tool)
    assert [small(bob, tool, amount).status for amount in (12, 500)] == [Status.ALLOWED, Status.WAITING]


def pass_days(rule: Grant, days: int) -> None:
    """Have its uses be so many days older, since the clock of SQLite cannot be moved."""
    ToolCall.objects.filter(grant=rule).update(created_at=F("created_at") - timedelta(days=days))
    last = ToolCall.objects.filter(grant=rule).latest("created_at")
    Grant.objects.filter(pk=rule.pk).update(until=last.created_at + scope.DECAY)


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_no_more_run_than_its_budget_of_the_day_and_of_the_person(tool: Tool, alice: User, bob: User) -> None:
    rule = published(alice, tool, perDay=3, perPerson=2)
    assert [small(bob, tool).status for _ in range(3)] == [Status.ALLOWED] * 2 + [Status.WAITING]
    assert [small(alice, tool).status for _ in range(2)] == [Status.ALLOWED, Status.WAITING]
    pass_days(rule, 1)
    assert small(bob, tool).status == Status.ALLOWED
    assert again(rule).used == 4


@pytest.mark.guarantee("gate:fail-closed")
def test_it_ends_at_the_first_no_to_a_call_like_it_and_the_tool_asks_again(tool: Tool, alice: User, bob: User) -> None:
    rule = published(alice, tool, perPerson=1)
    ready, over, other = small(bob, tool), small(bob, tool), small(bob, tool, 500)
    no(bob, other)
    assert again(rule).end == "", "that was not like it"
    no(bob, over)
    assert (again(rule).end, again(rule).ended_by) == ("declined", bob)
    assert status(ready) == Status.WITHDRAWN, "it had not started"
    assert small(alice, tool).status == Status.WAITING
    event = AuditEvent.objects.get(name="grant.declined")
    assert changes.words(event) == ("The earned rule of refund ended: a person said no to a call like those it covers")
    (found,) = earned.proposals()
    assert "13 <= args['amount'] <= 39" in found.rule.condition, "that no is a counter-example"


@pytest.mark.guarantee("gate:fail-closed")
def test_it_ends_at_a_no_to_a_call_of_which_its_condition_says_nothing(tool: Tool, alice: User, bob: User) -> None:
    rule = published(alice, tool, condition="args['amount'] < 40 or args['amount'] == 1000 and args['note'] == ''")
    no(bob, small(bob, tool, 999))
    assert again(rule).end == "", "that was not like it"
    no(bob, small(bob, tool, 1000))
    assert again(rule).end == "declined"


@pytest.mark.guarantee("gate:fail-closed")
def test_a_no_counts_wherever_values_come_from_and_whatever_asked(
    tool: Tool, alice: User, bob: User, settings: Settings
) -> None:
    for word in ("answer", "no"):
        rule = published(alice, tool)
        settings.HITL_POLICIES = [ASKS] if word == "no" else []
        call = small(bob, tool, heard=None) if word == "answer" else small(bob, tool)
        assert call.status == Status.WAITING
        decide.answer(approval_of(call).pk, signed_in(bob), "No.") if word == "answer" else no(bob, call)
        settings.HITL_POLICIES = []
        assert again(rule).end == "declined"
        # So that it is no counter-example for the next one.
        ToolCall.objects.filter(pk=call.pk).update(caller_kind="api")


def test_a_call_that_should_have_been_asked_about_ends_it(tool: Tool, alice: User, bob: User) -> None:
    rule = published(alice, tool)
    call = small(bob, tool)
    assert run(call)
    hindsight.look_back(call.pk, signed_in(bob), Hindsight.Verdict.SHOULD_ASK)
    assert (again(rule).end, small(bob, tool).status) == ("declined", Status.WAITING)
    assert earned.evidence_for(tool, CONDITION).against == (call.pk,)


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_what_it_let_in_is_asked_about_by_a_stricter_conversation_and_its_use_given_back(
    tool: Tool, alice: User, bob: User
) -> None:
    rule = published(alice, tool, perDay=1)
    call = small(bob, tool, conversation_id=HERE)
    ruling.change_strictness(HERE, "every", signed_in(bob))
    assert not run(call)
    assert (status(call), again(rule).used, again(rule).until) == (Status.WAITING, 0, rule.until)
    assert small(alice, tool).status == Status.ALLOWED, "the budget has it again"


def test_it_decays_without_a_use_for_thirty_days_and_each_use_puts_that_off(tool: Tool, alice: User, bob: User) -> None:
    rule = published(alice, tool)
    for _ in range(2):
        call = small(bob, tool)
        assert (call.grant_id, again(rule).until) == (rule.pk, call.created_at + scope.DECAY)
        pass_days(rule, 29)
        settling.sweep()
        assert again(rule).end == ""
    pass_days(rule, 1)
    assert small(bob, tool).status == Status.WAITING
    settling.sweep()
    assert (again(rule).end, AuditEvent.objects.filter(name="grant.decayed").count()) == ("decayed", 1)
    assert small(bob, tool).status == Status.WAITING


def _condition(tool: Tool, alice: User) -> None:
    tools.change(tool.pk, {"condition": "True"}, signed_in(alice))


def _definition(tool: Tool, alice: User) -> None:
    tools.change(tool.pk, {"definition_hash": "e" * 64}, signed_in(alice))


def _mode(tool: Tool, alice: User) -> None:
    tools.change(tool.pk, {"hitl_mode": "REQUIRED"}, signed_in(alice))


def _forged(**columns: Any) -> Any:
    return lambda tool, alice: Grant.objects.update(**columns)


def _miscounted(tool: Tool, alice: User) -> None:
    Grant.objects.update(used=7)


def _later(tool: Tool, alice: User) -> None:
    Grant.objects.update(until=timezone.now() + 2 * scope.DECAY)


def _unstated(tool: Tool, alice: User) -> None:
    Grant.objects.update(event=AuditEvent.objects.exclude(name="grant.earned").values_list("pk")[:1])


def _stated_of_another(tool: Tool, alice: User) -> None:
    other = refund("other")
    history(alice, other)
    published(alice, other)
    of_other = AuditEvent.objects.filter(name="grant.earned", data__contains='"other"').values_list("pk")[:1]
    Grant.objects.filter(tool=tool).update(event=of_other)


DOUBTS = {
    **NEVER,
    "other condition": _condition,
    "other definition": _definition,
    "asks every time": _mode,
    "a larger budget": _forged(per_day=900),
    "another rule": _forged(condition="True"),
    "more uses": _miscounted,
    "a later end": _later,
    "published by no event": _unstated,
    "published by the event of another": _stated_of_another,
}


@pytest.mark.guarantee("gate:fail-closed")
@each_row("change", DOUBTS.values(), DOUBTS)
def test_whatever_is_not_as_it_was_published_makes_it_ask(change: Any, tool: Tool, alice: User, bob: User) -> None:
    rule = published(alice, tool)
    ready = small(bob, tool)
    assert ready.status == Status.ALLOWED
    change(tool, alice)
    assert small(bob, tool, kind="chat").status in (Status.WAITING, Status.REJECTED)
    settling.sweep()
    assert again(rule).end == "voided"
    assert not run(fresh(ready)) or change in (_miscounted, _later, _unstated)


def test_an_administrator_ends_it_at_any_time_and_nobody_else(tool: Tool, alice: User, bob: User) -> None:
    rule = published(alice, tool)
    with pytest.raises(giving.NoSuchGrant):
        giving.revoke(rule.pk, signed_in(bob))
    assert giving.revoke(rule.pk, signed_in(alice)).end == "revoked"
    assert small(bob, tool).status == Status.WAITING


def test_a_persons_own_grants_go_on_beside_it(tool: Tool, alice: User, bob: User) -> None:
    rule = published(alice, tool)
    big = small(bob, tool, 500)
    say_yes(bob, big, grant=scope.Scope(calls=2))
    assert small(bob, tool, 600).status == Status.ALLOWED
    assert again(rule).used == 0
    assert [each.is_earned for each in giving.seen_by(alice)] == [False]
    assert Tool.objects.get().earned


@each_row("mode, looks", [("REQUIRED", 0), ("CONDITIONAL", 1)])
def test_tools_without_an_earned_rule_cost_no_look_for_one(mode: str, looks: int, bob: User) -> None:
    made = refund(hitl_mode=mode)
    with CaptureQueriesContext(connection) as queries:
        no(bob, small(bob, made))
    sent = [each["sql"] for each in queries if 'FROM "gate_grant"' in each["sql"]]
    assert len(sent) == looks, "for grants of the person"
    assert not [sql for sql in sent if '"approval_id" IS NULL' in sql]


def test_in_the_lab_a_draft_of_one_says_what_it_would_have_saved_within_its_budget(tool: Tool, bob: User) -> None:
    (found,) = earned.proposals()
    outcome = replay.replay(draft.read(found.draft), 90)
    assert (outcome.questions_saved, outcome.declined_that_would_have_run, outcome.asked) == (30, 0, 3)
    narrow = found.draft
    narrow["tools"]["refund"]["earned"]["perDay"] = 1
    assert replay.replay(draft.read(narrow), 90).questions_saved == 10
    wide = found.draft
    wide["tools"]["refund"]["earned"] |= {"condition": "args['amount'] < 1000", "perDay": 1000, "perPerson": 1000}
    assert replay.replay(draft.read(wide), 90).declined_that_would_have_run == 3
