"""Applying what was changed in the drawer: all of it or nothing, and nothing that nobody has seen or said yes to."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries

from hitlchat.gate.models import Tool
from hitlchat.upstreams import exposure
from hitlchat.upstreams.changes import Change, stamp
from hitlchat.upstreams.client.listing import Listing
from hitlchat.upstreams.models import ComposedTool, Exposure, ToolState, UpstreamServer
from hitlchat.upstreams.pages.drawer_list import Wanted, rest_of
from tests.conftest import MakeTool, signed_in
from tests.upstreams.drawers import DRAWER, applied, confirms, of, offer, post, seen, send, wish
from tests.upstreams.shops import POISONED, SAYS_IT_BACK, expose, listed, listing, row, somewhere, take_in

pytestmark = pytest.mark.django_db(transaction=True)

FORM = f"{DRAWER}/of/shop"
CHECK = f"{DRAWER}/check/shop"


def everything() -> Any:
    return list(Tool.objects.values()), list(ComposedTool.objects.values()), Exposure.current().ceiling


def refused(person: User, *wishes: dict[str, str], **more: str) -> str:
    """The answer to changes of which none was made."""
    before = everything()
    answer = send(person, *wishes, **more)
    assert 'data-outcome="refused"' in answer
    assert everything() == before
    return answer


def asked(person: User, *wishes: dict[str, str], **more: str) -> str:
    """The question about changes of which none was made yet."""
    before = everything()
    answer = send(person, *wishes, **more)
    assert "Reduce human oversight?" in answer
    assert everything() == before
    return answer


def test_all_changes_are_applied_at_once_and_the_totals_follow(alice: User, server: UpstreamServer) -> None:
    first = wish(row(server), exposed=True, alias="say", description="Says it.", prompt_template="Say {args.text}?")
    assert applied(answer := send(alice, first, wish(row(server, "other"), exposed=True))) == 2
    assert "<b>2</b>of 2 exposed" in answer
    say = Tool.objects.get(name="say")
    assert (say.published, say.hitl_mode, say.description) == (True, "REQUIRED", "Says it.")
    assert say.prompt_template == "Say {args.text}?"
    assert Tool.objects.filter(name="shop_other", published=True).exists()


def test_what_is_not_sent_stays_as_it_is(alice: User, server: UpstreamServer) -> None:
    expose(alice, server, alias="say", description="Says it.")
    line = wish(row(server), prompt_template="Really?")
    send(alice, line, confirmed=confirms(asked(alice, line)))
    tool = Tool.objects.get(composed__name="echo")
    assert (tool.name, tool.description, tool.prompt_template, tool.published) == ("say", "Says it.", "Really?", True)
    send(alice, wish(row(server), alias="", description=""))
    assert (row(server).description, Tool.objects.get(pk=tool.pk).name) == ("", "shop_echo")


def test_what_changed_since_the_page_was_made_is_refused(alice: User, server: UpstreamServer) -> None:
    seen = wish(row(server), exposed=True)
    take_in(server, listing(echo="Something else altogether.", other="Say something else instead."))
    answer = refused(alice, seen, wish(row(server, "other"), exposed=True))
    assert "The tool has changed since you reviewed it." in answer
    assert f'data-stamp="{stamp(row(server))}"' in answer
    assert "Your changes to this tool were undone." in answer
    gone = wish(row(server, "other"), exposed=True)
    take_in(server, listing(echo="Something else altogether."))
    ComposedTool.objects.filter(name="other").delete()
    assert "1 tool no longer exists" in refused(alice, gone)


def test_lowering_oversight_is_asked_about_and_a_yes_counts_for_exactly_that(
    alice: User, server: UpstreamServer
) -> None:
    expose(alice, server)
    expose(alice, server, "other")
    never, policies = wish(row(server), hitl_mode="DISABLED"), wish(row(server), hitl_mode="CONDITIONAL")
    question = asked(alice, never, confirmed="0" * 64)
    assert "asked every time and will never ask" in question
    assert "These include L5 tools" in question
    yes = confirms(question)
    # Not for more tools, nor for another rule.
    more = asked(alice, never, wish(row(server, "other"), hitl_mode="DISABLED"), confirmed=yes)
    assert confirms(more) != yes
    asked(alice, policies, confirmed=yes)
    send(alice, never, wish(row(server, "other"), description="Says else."), confirmed=yes)
    assert Tool.objects.get(composed__name="echo").hitl_mode == "DISABLED"


def test_exposing_what_never_asks_and_changing_its_rule_are_asked_about_too(
    alice: User, server: UpstreamServer
) -> None:
    new = asked(alice, wish(row(server), exposed=True, hitl_mode="CONDITIONAL", condition="True"))
    send(alice, wish(row(server), exposed=True, hitl_mode="CONDITIONAL", condition="True"), confirmed=confirms(new))
    rule = asked(alice, wish(row(server), condition="False"))
    assert "will ask under another condition" in rule
    send(alice, wish(row(server), condition="False"), confirmed=confirms(rule))
    send(alice, wish(row(server), exposed=False))
    assert "will be exposed again and leave it to policies" in asked(alice, wish(row(server), exposed=True))


def test_a_tool_above_the_ceiling_is_refused_until_that_is_raised(alice: User, server: UpstreamServer) -> None:
    offer(alice, "both", 4)
    wanted = wish(row(server), exposed=True)
    assert "at most L4 is offered here" in refused(alice, wanted)
    assert "at most L4" in send(alice, wanted, path=CHECK)
    offer(alice, "both", 5, "both", 4)
    assert applied(send(alice, wanted)) == 1


def test_a_higher_ceiling_asks_about_what_comes_back_and_does_not_ask_every_time(
    alice: User, server: UpstreamServer
) -> None:
    expose(alice, server, hitl_mode="DISABLED")
    expose(alice, server, "other")
    exposure.change("both", 1, signed_in(alice))
    before = everything()
    question = offer(alice, "both", 5, "both", 1)
    assert "<b>echo</b>" in question
    assert "will be exposed again and never ask" in question
    assert "<b>other</b>" not in question
    assert '<option value="5" selected>' in question
    # Nor is the yes one for another rule.
    exposure.apply([Change(row(server).pk, hitl_mode="CONDITIONAL")], signed_in(alice))
    before = everything()
    other = offer(alice, "both", 5, "both", 1, confirmed=confirms(question))
    assert "will be exposed again and leave it to policies" in other
    assert everything() == before
    assert applied(offer(alice, "both", 5, "both", 1, confirmed=confirms(other))) == 1
    assert row(server).state == ToolState.EXPOSED


def test_settings_that_somebody_else_changed_meanwhile_are_not_overwritten(alice: User, server: UpstreamServer) -> None:
    expose(alice, server)
    stale = wish(row(server), alias="tell")
    for first in (Change(row(server).pk, alias="say"), Change(row(server).pk, hitl_mode="DISABLED")):
        exposure.apply([first], signed_in(alice))
        assert "alice changed this in the meantime." in refused(alice, stale)
    answer = refused(alice, stale, wish(row(server, "other"), exposed=True))
    assert "alice changed this in the meantime. Review it again." in answer
    assert "review 1 tool again" in answer
    assert f'data-stamp="{stamp(row(server))}"' in answer
    assert applied(send(alice, wish(row(server), exposed=True, alias="tell"))) == 1


def test_one_bad_change_keeps_all_from_being_made_and_each_reason_stands_with_its_tool_and_field(
    alice: User, server: UpstreamServer
) -> None:
    echo, other = row(server), row(server, "other")
    bad = {"alias": "has spaces", "condition": "args.text ==", "prompt_template": "{args.nothing}"}
    answer = refused(alice, wish(echo, exposed=True), wish(other, exposed=True, hitl_mode="CONDITIONAL", **bad))
    assert "review 1 tool again" in answer
    assert f'data-problem-for="{other.pk}"' in answer
    assert f'data-problem-for="{echo.pk}"' not in answer
    for field in bad:
        assert f'data-said="{field}"' in answer
    assert "Alias: Expected 1 to 64 letters" in answer
    assert "Condition: not a Python expression: invalid syntax. </span>" in answer
    assert 'value="has spaces"' in answer


def test_a_setting_that_somebody_else_changed_meanwhile_is_not_overwritten(alice: User, server: UpstreamServer) -> None:
    exposure.change("own", 3, signed_in(alice))
    before = everything()
    assert "Someone else changed the offered tools in the meantime: Own tools only, up to L3." in offer(
        alice, "both", 4
    )
    for mode, ceiling in (("nobody", 5), ("both", 6)):
        assert "expected" in offer(alice, mode, ceiling, "own", 3)
    assert everything() == before


def test_a_look_at_what_is_typed_finds_what_applying_it_would_and_changes_nothing(
    alice: User, server: UpstreamServer, make_tool: MakeTool
) -> None:
    make_tool("refund_order")
    before = everything()
    pair = [wish(row(server, name), exposed=True, alias="same") for name in ("echo", "other")]
    assert send(alice, *pair, path=CHECK).count("new alias") == 2
    alike = send(alice, wish(row(server), exposed=True, alias="Refund-0rder"), path=CHECK)
    assert "looks like “refund_order”, the name of another tool" in alike
    fine = send(alice, wish(row(server), exposed=True, alias="say"), path=CHECK)
    assert f'<p id="p-{row(server).pk}-alias" hx-swap-oob="innerHTML"></p>' in fine
    assert everything() == before


def test_what_no_page_of_ours_sends_is_a_bad_request(
    subtests: pytest.Subtests, alice: User, server: UpstreamServer
) -> None:
    for fields in [
        {"x.exposed": "on"},
        {"TOOL.exposed": "on"},
        {"TOOL.exposed": "on", "TOOL.stamp": "0"},
        {"TOOL.published": "on", "TOOL.stamp": f"{'0' * 64}.{'0' * 64}"},
        {"rest": "everything"},
    ]:
        with subtests.test(fields=fields):
            sent = {key.replace("TOOL", str(row(server).pk)): value for key, value in fields.items()}
            assert post(alice, FORM, sent).status_code == 400
            assert post(alice, CHECK, sent).status_code == 400
    ceiling = {"mode": "both", "ceiling": "x", "was_mode": "both", "was_ceiling": "5"}
    assert post(alice, DRAWER, ceiling).status_code == 400


def test_a_form_changes_no_tools_of_another_server(alice: User, server: UpstreamServer) -> None:
    take_in(somewhere(alice, name="other"), listing(strange="s"))
    strange = ComposedTool.objects.get(name="strange")
    assert "1 tool no longer exists" in refused(alice, wish(strange, exposed=True))


def test_lines_that_nobody_filled_in_are_no_changes(alice: User, server: UpstreamServer) -> None:
    expose(alice, server, hitl_mode="CONDITIONAL", condition="True and\nTrue")
    flat = wish(row(server), condition="True andTrue", description="", exposed=True)
    hidden = wish(row(server, "other"), alias="elsewhere")
    before = everything()
    assert applied(send(alice, flat, hidden)) == 0
    assert everything() == before
    # Of a text of several lines, its line breaks are part.
    for text in ("One two", "One\r\n\r\ntwo"):
        assert applied(send(alice, wish(row(server), description=text))) == 1
    assert row(server).description == "One\n\ntwo"


def test_a_form_is_sent_and_shown_again_without_scripts(alice: User, server: UpstreamServer) -> None:
    bad = of(alice).post(FORM, wish(row(server), exposed=True, alias="has spaces")).content.decode()
    assert "<h1>Servers</h1>" in bad
    assert "Nothing was applied: review 1 tool again." in bad
    assert 'value="has spaces"' in bad
    assert '<dialog class="drawer"' in bad
    good = of(alice).post(FORM, wish(row(server), exposed=True, alias="say"))
    assert (good.status_code, good.headers["Location"]) == (302, f"{DRAWER}?server=shop")
    assert Tool.objects.filter(name="say", published=True).exists()
    assert of(alice).post(f"{DRAWER}/require").headers["Location"] == DRAWER
    ceiling = {"mode": "both", "ceiling": "1", "was_mode": "both", "was_ceiling": "5"}
    assert of(alice).post(DRAWER, ceiling).headers["Location"] == DRAWER


def test_all_exposed_tools_ask_every_time_after_one_press(alice: User, server: UpstreamServer) -> None:
    expose(alice, server, hitl_mode="DISABLED")
    expose(alice, server, "other", hitl_mode="CONDITIONAL", condition="True")
    assert "2 tools ask every time now." in send(alice, path=f"{DRAWER}/require")
    assert set(Tool.objects.filter(composed__isnull=False).values_list("hitl_mode", flat=True)) == {"REQUIRED"}
    assert "All exposed tools already ask every time." in send(alice, path=f"{DRAWER}/require")


def test_the_rest_is_selected_and_deselected_as_far_as_it_is_what_was_seen(alice: User, server: UpstreamServer) -> None:
    take_in(server, listing(echo="e", one="o", two="t", wicked=POISONED))
    rest = {"from": "1", "rest": "select", "rest_stamp": rest_stamp(server)}
    first = wish(row(server), exposed=True)
    assert applied(send(alice, first, **rest)) == 3
    refused(alice, first, **rest)
    out = rest | {"rest": "deselect", "rest_stamp": rest_stamp(server)}
    assert applied(send(alice, **out)) == 2
    assert set(ComposedTool.objects.filter(exposed=True).values_list("name", flat=True)) == {"echo"}


def test_somebody_vouches_for_a_tool_and_takes_it_back(alice: User, server: UpstreamServer) -> None:
    expose(alice, server)
    assert "Unknown risk" in seen(alice, FORM)
    known = wish(row(server), vouch="L2", vouch_note="Only says it back.")
    question = asked(alice, known)
    assert "Its risk counts as L2 instead of L5: a yes needs less care" in question
    assert applied(send(alice, known, confirmed=confirms(question))) == 1
    assert (row(server).standing_vouch, row(server).risk_inherent, row(server).vouched_by) == ("L2", 2, alice)
    details = seen(alice, f"{DRAWER}/details/{row(server).pk}")
    assert '<option value="L2" selected>Known: L2</option>' in details
    assert "Vouched for by alice" in details
    record = of(alice).get(f"/servers/s/shop/tools/{row(server).pk}").content.decode()
    assert "<q>Only says it back.</q>" in record
    assert "Known: L2" in record
    assert "Vouched for" in refused(alice, wish(row(server), vouch="L7"))
    assert applied(send(alice, wish(row(server), vouch=""))) == 1
    assert (row(server).standing_vouch, row(server).risk_inherent) == ("", 5)


def test_somebody_vouches_for_all_exposed_tools_of_a_server_as_they_are_now(
    alice: User, server: UpstreamServer
) -> None:
    take_in(server, listing(echo=SAYS_IT_BACK, other="Say something else.", third="Say a third thing.", last="Say it."))
    for name in ("echo", "other", "third"):
        expose(alice, server, name)
    stamp_seen = vouch_all(alice)
    out, own = wish(row(server, "other"), exposed=False), wish(row(server, "third"), vouch="L1")
    yes = confirms(asked(alice, out, own, vouch_all=stamp_seen))
    assert applied(send(alice, out, own, vouch_all=stamp_seen, confirmed=yes)) == 3
    said = {each.name: each.standing_vouch for each in ComposedTool.objects.all()}
    assert said == {"echo": "scan", "other": "", "third": "L1", "last": ""}
    assert "vouch_all" not in seen(alice, FORM)
    assert "have changed since you looked" in refused(alice, vouch_all=stamp_seen)
    expose(alice, server, "last")
    now = vouch_all(alice)
    take_in(server, listing(echo=SAYS_IT_BACK, other="Say something else.", third="Say a third thing.", last="Shout."))
    assert "have changed since you looked" in refused(alice, vouch_all=now)


def vouch_all(person: User) -> str:
    found = re.search(r'name="vouch_all" value="([0-9a-f]{64})"', seen(person, FORM))
    assert found
    return found[1]


def rest_stamp(server: UpstreamServer) -> str:
    """Of all tools but the first."""
    return rest_of(server, Wanted(), 1, 5).stamp


def test_hundreds_of_tools_are_exposed_by_few_statements(
    alice: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    server = somewhere(alice)
    take_in(server, Listing(tuple(listed(f"tool_{n}") for n in range(90))))
    wishes = [wish(each, exposed=True) for each in ComposedTool.objects.all()]
    with django_assert_max_num_queries(80):
        assert of(alice).post(FORM, {key: value for each in wishes for key, value in each.items()}).status_code == 302
    assert Tool.objects.filter(published=True).count() == 90
    assert all(each.pinned == each.seen and each.accepted_by_id == alice.pk for each in ComposedTool.objects.all())
