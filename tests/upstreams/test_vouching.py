"""Vouching: the risk of a tool is unknown until an administrator says what it does, of that definition and no other."""

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.template.loader import render_to_string

from hitlchat.api.approvals import approval, with_all
from hitlchat.approvals import console
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import Card, card
from hitlchat.gate.models import Approval, AuditEvent, Tool
from hitlchat.gate.status import Status
from hitlchat.upstreams import exposure
from hitlchat.upstreams.changes import Change, NotConfirmed, Refused
from hitlchat.upstreams.models import ComposedTool, ToolEvent, ToolState, UpstreamServer
from hitlchat.upstreams.pages.ledger import acceptance_of
from hitlchat.upstreams.servers import OnlyPeople
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, fresh, recording, say_yes, status
from tests.upstreams.shops import SAYS_IT_BACK, expose, listing, row, somewhere, take_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.guarantee("gate:only-people")]

ESTIMATE = "Nobody here vouches for it: L5 is an estimate from what its server says."


@pytest.fixture
def server(alice: User) -> UpstreamServer:
    made = somewhere(alice)
    take_in(made, listing(echo=SAYS_IT_BACK))
    expose(alice, made)
    return made


def vouch(person: User, server: UpstreamServer, said: str, confirmed: str | None = None, **fields: Any) -> ComposedTool:
    found = row(server)
    change = Change(found.pk, vouch=said, **{"digest": found.seen_digest, **fields})
    return exposure.apply([change], signed_in(person), confirmed=confirmed)[0]


def refusal(person: User, server: UpstreamServer, **fields: Any) -> str:
    with pytest.raises(Refused) as caught:
        vouch(person, server, "L2", **fields)
    assert row(server).vouch == ""
    return str(caught.value)


def asked(bob: User, server: UpstreamServer) -> Card:
    return card(approval_of(ask(bob, Tool.objects.get(composed__server=server))))


def test_the_card_says_that_the_risk_is_unknown_and_what_the_level_rests_on(bob: User, server: UpstreamServer) -> None:
    call = ask(bob, Tool.objects.get())
    shown = card(approval_of(call))
    assert (shown.risk, shown.care, shown.risk_unknown, shown.facts[0].plain) == (5, 5, True, ESTIMATE)
    html = render_to_string("approvals/_card.html", {"card": shown, "over": "ws"})
    assert 'L5 Critical</span> <span class="tag unknown">Unknown risk</span>' in html
    told = {each.text.plain for each in console.facts(shown, approval_of(call), full=False)}
    assert told >= {ESTIMATE, "L5 Critical, unknown"}
    assert approval(with_all(Approval.objects.all()).get()).risk_unknown


def test_whose_risk_was_never_estimated_by_a_server_is_not_unknown(bob: User) -> None:
    call = ask(bob, recording())
    assert not card(approval_of(call)).risk_unknown
    found = approval_of(call)
    del found.disclosure["riskUnknown"]
    assert not card(found).risk_unknown


def test_vouching_makes_the_risk_known_and_states_its_level(alice: User, bob: User, server: UpstreamServer) -> None:
    found = vouch(alice, server, "L2", vouch_note="Only says it back.")
    assert (found.risk_inherent, found.vouched_by, found.vouched_at is not None) == (2, alice, True)
    shown = asked(bob, server)
    assert (shown.risk, shown.care, shown.risk_unknown) == (1, 2, False)
    assert shown.facts[0].plain == "An administrator vouches for it as it is now: its risk is L2."
    estimated = "An administrator states this level; estimated from what follows it is L5."
    assert row(server).risk_reasons[0] == estimated
    event = ToolEvent.objects.filter(name="tool.configured").latest("pk")
    assert (event.actor, event.digest) == (alice, row(server).seen_digest)
    assert (event.data["before"]["vouch"], event.data["after"]["vouch"]) == ("", "L2")
    assert event.data["after"]["vouch_note"] == "Only says it back."
    on_record = AuditEvent.objects.filter(name="tool.changed").latest("pk").data
    assert (on_record["before"]["risk_unknown"], on_record["after"]["risk_unknown"]) == (True, False)


@pytest.mark.guarantee("gate:only-people")
def test_a_lower_level_counts_only_once_it_is_confirmed_and_a_higher_one_at_once(
    alice: User, server: UpstreamServer
) -> None:
    with pytest.raises(NotConfirmed) as question:
        vouch(alice, server, "L2", confirmed="")
    assert row(server).vouch == ""
    (less,) = question.value.loosenings
    assert less.words[0].startswith("Its risk counts as L2 instead of L5: a yes needs less care")
    assert vouch(alice, server, "L2", confirmed=question.value.digest).risk_inherent == 2
    with pytest.raises(NotConfirmed):
        vouch(alice, server, "L1", confirmed=question.value.digest)
    for said in ("L2", "L3", "scan"):
        vouch(alice, server, said, confirmed="")
    assert row(server).risk_inherent == 5


def test_vouching_without_a_level_keeps_the_estimated_one(alice: User, bob: User, server: UpstreamServer) -> None:
    vouch(alice, server, "scan")
    shown = asked(bob, server)
    assert (shown.risk, shown.care, shown.risk_unknown) == (5, 5, False)


def test_who_vouches_changes_nothing_about_being_asked(alice: User, bob: User, server: UpstreamServer) -> None:
    vouch(alice, server, "L1")
    tool = Tool.objects.get()
    assert tool.hitl_mode == "REQUIRED"
    assert status(ask(bob, tool)) == Status.WAITING


def test_another_definition_is_unknown_again(alice: User, server: UpstreamServer) -> None:
    vouch(alice, server, "L1", vouch_note="Harmless.")
    take_in(server, listing(echo="Say the text back, twice."))
    assert (row(server).standing_vouch, row(server).risk_inherent, Tool.objects.get().risk_unknown) == ("", 5, True)
    acceptance = acceptance_of(row(server))
    assert (acceptance["before"].inherent, acceptance["after"].inherent, acceptance["riskier"]) == (1, 5, True)
    with pytest.raises(Refused, match="Review the difference"):
        vouch(alice, server, "L2")
    exposure.accept(row(server).pk, row(server).seen_digest, signed_in(alice))
    assert (row(server).state, row(server).risk_inherent, Tool.objects.get().risk_unknown) == ("exposed", 5, True)


def test_what_was_vouched_is_taken_back(alice: User, bob: User, server: UpstreamServer) -> None:
    vouch(alice, server, "L1", vouch_note="Harmless.")
    waiting, approved = (ask(bob, Tool.objects.get()) for _ in range(2))
    say_yes(bob, approved)
    found = vouch(alice, server, "")
    assert (found.vouch, found.vouched_digest, found.vouched_by, found.vouch_note) == ("", "", None, "")
    for call in (waiting, approved):
        assert fresh(call).reason == "Not run: what is known of its risk was changed."
    shown = asked(bob, server)
    assert (shown.care, shown.risk_unknown) == (5, True)


def test_a_question_that_waits_is_withdrawn_when_somebody_vouches(
    alice: User, bob: User, server: UpstreamServer
) -> None:
    call = ask(bob, Tool.objects.get())
    vouch(alice, server, "scan")
    assert status(call) == Status.WITHDRAWN


def test_only_what_is_exposed_and_was_looked_at_is_vouched_for(alice: User, server: UpstreamServer) -> None:
    assert "since you reviewed" in refusal(alice, server, digest="0" * 64)
    assert "send the digest" in refusal(alice, server, digest=None)
    assert "at most 500 characters" in refusal(alice, server, vouch_note="x" * 501)
    exposure.apply([Change(row(server).pk, exposed=False)], signed_in(alice))
    assert "not exposed" in refusal(alice, server)
    with pytest.raises(Refused, match="expected one of scan, L1"):
        vouch(alice, server, "L9")


def test_a_program_vouches_for_nothing(alice: User, server: UpstreamServer) -> None:
    program = Actor(alice.pk, "system")
    echo, digest = row(server).pk, row(server).seen_digest
    for said in ("L5", "scan"):
        with pytest.raises(OnlyPeople):
            exposure.apply([Change(echo, digest=digest, vouch=said)], program)
    vouch(alice, server, "L4")
    for change in (Change(echo, vouch=""), Change(echo, vouch_note="Fine.")):
        with pytest.raises(OnlyPeople):
            exposure.apply([change], program)
    exposure.apply([Change(echo, vouch="L4")], program)
    assert row(server).vouched_by == alice


def test_a_level_below_the_ceiling_brings_back_what_asks_less_only_once_that_is_confirmed(
    alice: User, server: UpstreamServer
) -> None:
    expose(alice, server, hitl_mode="DISABLED")
    exposure.change("both", 4, signed_in(alice))
    assert row(server).state == ToolState.WITHHELD
    with pytest.raises(NotConfirmed) as question:
        vouch(alice, server, "L1", confirmed="")
    assert [(each.exposes, each.after) for each in question.value.loosenings] == [(True, "DISABLED")]
    assert vouch(alice, server, "L1", confirmed=question.value.digest).state == ToolState.EXPOSED


def test_an_update_marks_what_was_exposed_before_as_unknown(server: UpstreamServer) -> None:
    own = recording()
    Tool.objects.update(risk_unknown=False)
    import_module("hitlchat.upstreams.migrations.0003_vouch").fill(apps, None)
    assert Tool.objects.get(composed__server=server).risk_unknown
    assert not Tool.objects.get(pk=own.pk).risk_unknown
