"""Drafts of rules: kept by administrators, compared, and published as a whole or not at all."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from hitlchat.base.problems import Invalid, NotFound
from hitlchat.gate import decide, lab, oversight, replay, ruling, tools
from hitlchat.gate.actor import Actor
from hitlchat.gate.draft import BadDraft, read
from hitlchat.gate.history import changes
from hitlchat.gate.loosening import NotConfirmed
from hitlchat.gate.models import AuditEvent, DecidedBy, PolicyDraft, Tool
from hitlchat.gate.oversight import Rules
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, recording
from tests.gate.policy_rules import REFUSES
from tests.gate.sources_for_tests import UNWANTED
from tests.tables import each_row

pytestmark = pytest.mark.django_db

BIG = 'args["amount"] > 100'
SMALL = {"tools": {"refund": {"hitlMode": "CONDITIONAL", "condition": BIG}}}


@pytest.fixture
def refund(bob: User) -> Tool:
    return recording()


def keep(alice: User, given: Any = SMALL, name: str = "Small refunds", **words: str) -> PolicyDraft:
    return lab.keep(given, signed_in(alice), name=name, **words)


def publish(alice: User, draft: PolicyDraft, why: str = "They were all approved.") -> PolicyDraft:
    return lab.publish(draft.pk, signed_in(alice), why, confirmed=True)


def now(name: str = "refund") -> tuple[str, str]:
    tool = Tool.objects.get(name=name)
    return tool.hitl_mode, tool.condition


def test_a_draft_is_kept_with_what_for_and_by_whom_and_changes_nothing(refund: Tool, alice: User) -> None:
    draft = keep(alice, purpose=" Fewer questions. ")
    assert (draft.name, draft.purpose, draft.author, draft.body) == ("Small refunds", "Fewer questions.", alice, SMALL)
    assert now() == ("REQUIRED", "")
    event = AuditEvent.objects.get(name=lab.ADDED)
    assert (event.actor, event.data["policy_draft"], event.data["draft"]) == (alice, "Small refunds", SMALL)


def test_a_published_draft_is_in_force_and_the_next_call_is_treated_by_it(refund: Tool, alice: User, bob: User) -> None:
    waiting = ask(bob, refund, {"text": "a", "amount": 5})
    draft = publish(alice, keep(alice))
    assert now() == ("CONDITIONAL", BIG)
    assert ask(bob, refund, {"text": "a", "amount": 5}).status == Status.ALLOWED
    assert ask(bob, refund, {"text": "a", "amount": 500}).status == Status.WAITING
    waiting.refresh_from_db()
    assert waiting.status == Status.WAITING
    assert (draft.publisher, draft.why) == (alice, "They were all approved.")
    assert draft.published_at
    with pytest.raises(lab.Published):
        publish(alice, draft)


def test_who_published_it_and_why_is_on_record_beside_what_became_of_each_tool(refund: Tool, alice: User) -> None:
    publish(alice, keep(alice))
    event = AuditEvent.objects.get(name=lab.PUBLISHED)
    assert (event.actor, event.data["why"], event.data["draft"]) == (alice, "They were all approved.", SMALL)
    assert changes.words(event) == "The draft of policies Small refunds was published: They were all approved."
    assert event in changes.rows("tools")
    assert event.data["weaker"][0].startswith("refund: “Ask every time” becomes “Policies decide”")
    changed = AuditEvent.objects.get(name="tool.changed")
    assert (changed.actor, changed.data["after"]) == (alice, {"hitl_mode": "CONDITIONAL", "condition": BIG})


@pytest.mark.guarantee("gate:fail-closed")
def test_nothing_is_loosened_until_somebody_confirms_it(refund: Tool, alice: User) -> None:
    draft = keep(alice)
    with pytest.raises(NotConfirmed) as caught:
        lab.publish(draft.pk, signed_in(alice), "So.")
    assert "refund: “Ask every time” becomes" in caught.value.weaker[0]
    assert now() == ("REQUIRED", "")
    strict = keep(alice, {"tools": {"refund": {"rules": {"decidedBy": "approvers"}}}}, "Others decide")
    lab.publish(strict.pk, signed_in(alice), "So.")
    assert oversight.of(refund).decided_by == DecidedBy.APPROVERS


def test_who_decides_is_set_by_the_draft_too(refund: Tool, alice: User, bob: User, finance: Group) -> None:
    bob.groups.add(finance)
    waiting = ask(alice, refund)
    publish(alice, keep(alice, {"tools": {"refund": {"rules": {"decidedBy": "group", "group": "finance"}}}}))
    assert oversight.of(refund) == Rules(DecidedBy.GROUP, finance)
    waiting.refresh_from_db()
    assert waiting.status == Status.WITHDRAWN, "it was asked of others"
    lenient = {"tools": {"refund": {"rules": {"decidedBy": "requester"}}}}
    with pytest.raises(NotConfirmed, match="decides alone"):
        lab.publish(keep(alice, lenient, "Alone").pk, signed_in(alice), "So.")


def test_of_a_draft_all_comes_into_force_or_nothing(refund: Tool, alice: User) -> None:
    # After the good one, whose change is to be undone.
    recording("wipe")
    recording("zap", source="raising")
    good = SMALL["tools"]
    draft = keep(alice, {"tools": good | {"wipe": {"condition": UNWANTED, "hitlMode": "CONDITIONAL"}}}, "One bad")
    coded = keep(alice, {"tools": good | {"zap": {"hitlMode": "DISABLED"}}}, "In code")
    for each, field in ((draft, "tools.wipe.condition"), (coded, "tools.zap")):
        with pytest.raises(lab.CannotPublish) as caught:
            publish(alice, each)
        assert [*caught.value.errors] == [field]
        assert now() == ("REQUIRED", "")
        assert PolicyDraft.objects.get(pk=each.pk).published_at is None
    assert not AuditEvent.objects.filter(name__in=["tool.changed", lab.PUBLISHED]).exists()


def _mode(tool: Tool, alice: User) -> None:
    tools.change(tool.pk, {"hitl_mode": "DISABLED"}, signed_in(alice))


def _condition(tool: Tool, alice: User) -> None:
    tools.change(tool.pk, {"condition": "True"}, signed_in(alice))


def _definition(tool: Tool, alice: User) -> None:
    tools.change(tool.pk, {"definition_hash": "e" * 64}, signed_in(alice))


def _rules(tool: Tool, alice: User) -> None:
    ruling.change(tool, Rules(DecidedBy.APPROVERS), signed_in(alice), confirmed=True)


def _deleted(tool: Tool, alice: User) -> None:
    tools.remove([tool], signed_in(alice))


def _another(tool: Tool, alice: User) -> None:
    tools.remove([tool], signed_in(alice))
    recording()


CHANGES = {
    "tools.refund.hitlMode": _mode,
    "tools.refund.condition": _condition,
    "tools.refund.definition": _definition,
    "tools.refund.rules": _rules,
    "tools.refund": _deleted,
    "tools.refund ": _another,
}


@pytest.mark.guarantee("gate:fail-closed")
@each_row("field, change", CHANGES.items(), CHANGES)
def test_a_draft_whose_tool_has_changed_is_refused_with_the_field(
    field: str, change: Any, refund: Tool, alice: User
) -> None:
    draft = keep(alice)
    change(refund, alice)
    before = list(Tool.objects.values("hitl_mode", "condition"))
    with pytest.raises(lab.ToolChanged) as caught:
        publish(alice, draft)
    assert [*caught.value.errors] == [field.strip()] == [*lab.outdated(draft)]
    assert list(Tool.objects.values("hitl_mode", "condition")) == before


def test_a_draft_with_policies_is_not_published_but_names_the_line_for_the_settings(refund: Tool, alice: User) -> None:
    draft = keep(alice, SMALL | {"policies": [REFUSES | {"reason": "It's no."}]})
    with pytest.raises(lab.InSettings) as caught:
        publish(alice, draft)
    assert caught.value.line.startswith("HITL_POLICIES='[{")
    assert "It'\"'\"'s no." in caught.value.line
    assert caught.value.line in caught.value.errors["policies"]
    assert now() == ("REQUIRED", "")


@pytest.mark.guarantee("gate:only-people")
def test_only_administrators_in_person_keep_delete_and_publish_drafts(refund: Tool, alice: User, bob: User) -> None:
    draft = keep(alice)
    for actor in (signed_in(bob), Actor(alice.pk, "system"), Actor(alice.pk, "elicitation")):
        with pytest.raises(lab.OnlyAdministrators):
            lab.keep(SMALL, actor, name="Another")
        with pytest.raises(lab.OnlyAdministrators):
            lab.publish(draft.pk, actor, "So.", confirmed=True)
        with pytest.raises(lab.OnlyAdministrators):
            lab.remove(draft.pk, actor)
    assert PolicyDraft.objects.get().published_at is None


BAD = {
    "draft": {},
    "tools.refund.rules.group": {"tools": {"refund": {"rules": {"decidedBy": "group", "group": "nobody"}}}},
    "tools.refund.rules.quorum": {"tools": {"refund": {"rules": {"decidedBy": "approvers", "quorum": 9}}}},
    "tools.refund.rules.who": {"tools": {"refund": {"rules": {"who": "x"}}}},
    "tools.refund.condition": {"tools": {"refund": {"condition": "amount >"}}},
}


@each_row("field, given", BAD.items(), BAD)
def test_a_bad_draft_is_not_kept(field: str, given: Any, refund: Tool, alice: User) -> None:
    with pytest.raises(BadDraft) as caught:
        keep(alice, given)
    assert [*caught.value.errors] == [field]
    assert PolicyDraft.objects.count() == 0


def test_a_draft_needs_a_name_of_its_own_and_publishing_a_reason(refund: Tool, alice: User) -> None:
    draft = keep(alice)
    with pytest.raises(lab.NameTaken):
        keep(alice)
    for words in ({"name": " "}, {"name": "x" * 101}, {"purpose": "x" * 501}, {"name": "a\u202eb"}):
        with pytest.raises(Invalid) as caught:
            keep(alice, **words)
        assert [*caught.value.errors] == [*words]
    with pytest.raises(Invalid) as caught:
        publish(alice, draft, why=" ")
    assert [*caught.value.errors] == ["why"]
    assert now() == ("REQUIRED", "")


def test_a_deleted_draft_is_gone_and_what_it_set_stays(refund: Tool, alice: User) -> None:
    draft = publish(alice, keep(alice))
    lab.remove(draft.pk, signed_in(alice))
    assert now() == ("CONDITIONAL", BIG)
    assert AuditEvent.objects.get(name=lab.REMOVED).data["policy_draft"] == "Small refunds"
    for gone in (lambda: lab.remove(draft.pk, signed_in(alice)), lambda: publish(alice, draft)):
        with pytest.raises(NotFound):
            gone()


def test_two_drafts_over_the_same_calls_differ_on_those_that_are_named(refund: Tool, bob: User) -> None:
    other = recording("look")
    small, middle, big = (ask(bob, refund, {"text": "a", "amount": amount}) for amount in (5, 150, 500))
    ask(bob, other)
    decide.decline(approval_of(small).pk, signed_in(bob))
    higher = read({"tools": {"refund": {"hitlMode": "CONDITIONAL", "condition": 'args["amount"] > 200'}}})
    found = replay.compare(read(SMALL), higher, 30, most=100, seconds=60)
    assert [(each.calls, each.asked, each.allowed) for each in (found.one, found.other)] == [(3, 2, 1), (3, 1, 2)]
    assert found.one.would_have_run_though_declined == found.other.would_have_run_though_declined == [small.pk]
    assert found.differences == [replay.Difference(middle.pk, "ask", "allow")]
    in_force = replay.compare(higher, read({}), 30, most=100, seconds=60)
    assert (in_force.differing, in_force.other.asked) == (2, 3)
    with_policies = replay.compare(read({"policies": [REFUSES]}), higher, 30, most=100, seconds=60)
    assert [each.calls for each in (with_policies.one, with_policies.other)] == [4, 4]
    assert {each.one for each in with_policies.differences} == {"refuse"}
    assert big.pk in [each.call for each in with_policies.differences]
    cut = replay.compare(read(SMALL), higher, 30, most=2, seconds=60)
    assert [(each.calls, each.left_out) for each in (cut.one, cut.other)] == [(2, 1), (2, 1)]
