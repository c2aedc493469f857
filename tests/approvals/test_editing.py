"""Changing the arguments of a call that waits: the form, what is wrong with it, what a yes would mean, and that yes."""

import html
import json
import re
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.gate.models import Approval, Decision, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tests.conftest import MakeTool, caller

pytestmark = pytest.mark.django_db(transaction=True)

PAY = '''def run(to: str, amount: int, fast: bool = False, how: dict = {}) -> str:
    """Pay someone."""
    return f"{to} {amount}"
'''
ASKED = {"to": "ann", "amount": 5}
HTMX = {"HX-Request": "true"}


@pytest.fixture
def approval(make_tool: MakeTool, bob: User) -> Approval:
    make_tool("pay", code=PAY, prompt_template="Pay {args.amount} to {args.to}")
    return asked(bob, ASKED)


def asked(user: User, arguments: dict[str, Any]) -> Approval:
    call = async_to_sync(submit)(CallRequest("pay", arguments, caller(user)))
    return Approval.objects.select_related("call").get(call=call)


def step(page: Client, approval: Approval, step: str = "review", /, **typed: str) -> str:
    """The text of the next step, without its tags' noise."""
    response = page.post(f"/approvals/{approval.pk}/edit", {"step": step} | typed, headers=HTMX)
    assert response.status_code == 200
    return html.unescape(response.content.decode())


def hidden(shown: str, name: str) -> str:
    """A hidden field of a step. Values with quotes are matched up to the end of their tag."""
    found = re.search(rf'name="{name}" value="(.*?)">', shown)
    assert found is not None, shown
    return found[1]


def yes_to(review: str) -> dict[str, str]:
    return {name: hidden(review, name) for name in ("digest", "edited", "shown")} | {"verdict": "approve"}


def form_of(page: Client, approval: Approval) -> str:
    return html.unescape(page.get(f"/approvals/{approval.pk}/edit", headers=HTMX).content.decode())


def fields(**typed: str) -> dict[str, str]:
    given = {"to": "ann", "amount": "5", "fast": "false", "how": "{}"} | typed
    return {f"arg-{name}": value for name, value in given.items()}


def undecided(approval: Approval) -> bool:
    return ToolCall.objects.get(pk=approval.call_id).status == Status.WAITING and not Decision.objects.exists()


def test_the_form_has_a_field_for_each_argument_as_it_was_asked(page: Client, approval: Approval) -> None:
    assert "<!doctype html>" in page.get(f"/approvals/{approval.pk}/edit").content.decode()
    shown = form_of(page, approval)
    assert "<!doctype html>" not in shown
    for name in ("to", "amount", "fast", "how"):
        assert f'name="arg-{name}"' in shown
    assert ">\nann</textarea>" in shown
    assert undecided(approval)


@pytest.mark.guarantee("gate:same-call", "SR-10")
def test_what_was_reviewed_is_what_is_approved(page: Client, approval: Approval, bob: User) -> None:
    review = step(page, approval, **fields(amount="50"))
    becomes = re.sub("<[^>]*>", "", review[review.index('class="becomes"') :].partition("</p>")[0])
    assert becomes.rstrip().endswith("Pay 50 to ann")
    assert "<mark>5</mark>" in review
    assert "<mark>50</mark>" in review
    assert "The other 3 arguments stay as requested." in review
    assert "This tool always needs approval." in review
    answer = yes_to(review)
    assert page.post(f"/approvals/{approval.pk}/decide", answer).status_code == 302
    decision = Decision.objects.get()
    assert decision.digest == answer["shown"] != answer["digest"] == approval.digest
    call = ToolCall.objects.get()
    assert (call.status, call.tool_name) == (Status.APPROVED, "pay")
    assert call.arguments == decision.edited_arguments == {"to": "ann", "amount": 50, "fast": False, "how": {}}


def test_what_a_new_value_means_is_beside_it(page: Client, approval: Approval) -> None:
    review = re.sub(r"<[^>]*>|\s+", " ", step(page, approval, **fields(to="https://a.example@evil.example")))
    assert re.search(r"Goes to host\s+evil\.example\s", review)
    assert re.search(r"Before the @ is a user name, not the host:\s+a\.example\s", review)


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_yes_to_other_changes_than_were_shown_decides_nothing(
    subtests: pytest.Subtests, page: Client, approval: Approval
) -> None:
    changed: Any
    for changed in [
        {"edited": '{"to": "eve", "amount": 5, "fast": false, "how": {}}'},
        {"shown": "0" * 64},
        {"digest": "0" * 64},
        {"edited": "no json"},
        {"edited": '{"to": "ann", "to": "eve", "amount": 50}'},
        {"edited": '["ann"]'},
        {"edited": ["{}", "{}"]},
        {"shown": []},
        {"verdict": "Approve"},
    ]:
        with subtests.test(changed=changed):
            review = step(page, approval, **fields(amount="50"))
            response = page.post(f"/approvals/{approval.pk}/decide", yes_to(review) | changed)
            assert response.status_code == 409
            assert undecided(approval)


WRONG: dict[str, tuple[dict[str, str], str]] = {
    "no number": ({"amount": "five"}, "amount: expected a whole number."),
    "another type": ({"amount": "5.5"}, "amount: 5.5 is not a whole number."),
    "missing": ({"amount": ""}, "amount: it is required."),
    "no JSON": ({"how": "{"}, 'how: expected JSON, such as [1, 2] or {"a": 1}.'),
    "a list for an object": ({"how": "[]"}, "how: [] is not an object."),
}


def test_what_is_wrong_is_said_at_its_field_and_what_was_typed_stays(
    subtests: pytest.Subtests, page: Client, approval: Approval
) -> None:
    for case, (typed, said) in WRONG.items():
        with subtests.test(case=case):
            shown = step(page, approval, **fields(to="still here", **typed))
            (name,) = typed
            at = shown.index(f'name="arg-{name}"')
            assert said in shown[at : shown.index("</div>", at)]
            assert 'aria-invalid="true"' in shown[at : shown.index(">", at)]
            assert "still here" in shown
            assert "Approve with changes" not in shown
            assert undecided(approval)


# As FastMCP, pydantic and zod write what may be left out, and what is one of a few.
FORMS: dict[str, Any] = {
    "type": "object",
    "$defs": {"Tone": {"type": "string", "enum": ["warm", "cold"], "description": "How it sounds."}},
    "definitions": {"Size": {"enum": [1, 2]}},
    "properties": {
        "q": {"type": "string"},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "Limit"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "day": {"type": ["string", "null"], "format": "date", "default": None},
        "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
        "tone": {"$ref": "#/$defs/Tone", "default": "warm"},
        "size": {"allOf": [{"$ref": "#/definitions/Size"}]},
        "mood": {"anyOf": [{"$ref": "#/$defs/Tone"}, {"type": "null"}], "default": None},
        "unit": {"oneOf": [{"const": "kg", "title": "Kilograms"}, {"const": "lb", "title": "Pounds"}]},
        "flag": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None},
        "d": {"type": "string", "default": "dd"},
        "plain": {"type": "string"},
    },
    "required": ["q"],
}
# What a call is that gives the first argument alone.
LEFT_OUT = {"q": "hi", "limit": None, "note": None, "day": None, "tags": None, "tone": "warm", "mood": None}
LEFT_OUT |= {"flag": None, "d": "dd"}


@pytest.fixture
def forms(make_tool: MakeTool, bob: User, entered: list[ToolCall]) -> Approval:
    make_tool("pay", code="def run(q: str) -> str:\n    return q\n")
    Tool.objects.update(input_schema=FORMS, source="recording")
    found = asked(bob, {"q": "hi"})
    assert found.disclosure["arguments"] == LEFT_OUT
    return found


def typed_in(shown: str) -> dict[str, str]:
    """What a browser would send of a form, untouched."""
    texts = re.findall(r'<textarea [^>]*name="([^"]*)"[^>]*>\n(.*?)</textarea>', shown, re.DOTALL)
    chosen = {}
    for name, options in re.findall(r'<select[^>]* name="([^"]*)"[^>]*>(.*?)</select>', shown, re.DOTALL):
        values = re.findall(r'<option value="(.*?)"( selected)?>', options)
        chosen[name] = next((value for value, is_selected in values if is_selected), values[0][0])
    return dict(texts) | chosen


def edited(page: Client, approval: Approval, **typed: str) -> dict[str, Any]:
    """What would run after these fields were changed."""
    review = step(page, approval, **typed_in(form_of(page, approval)) | {f"arg-{name}": typed[name] for name in typed})
    found: dict[str, Any] = json.loads(hidden(review, "edited"))
    return found


def test_what_a_call_left_out_has_fields_all_the_same(page: Client, forms: Approval) -> None:
    shown = form_of(page, forms)
    assert "All arguments, as JSON" not in shown
    assert all(f'name="arg-{name}"' in shown for name in FORMS["properties"])
    assert not {"None", "True", "['", "anyOf"} & set(re.findall(r"None|True|\['|anyOf", shown))
    for label in ("integer or null, optional", "date or null, optional", "array or null, optional"):
        assert label in re.sub(r"<[^>]*>", "", shown)
    assert "You changed nothing" in step(page, forms, **typed_in(shown))
    for text in ('{"q": "hi"}', '{"q": "hi", "limit": 3, "mood": "cold"}'):
        assert 'name="arg-limit"' in step(page, forms, "fields", json=text)


def test_a_reference_to_a_list_of_values_gives_a_choice(page: Client, forms: Approval) -> None:
    shown = form_of(page, forms)
    for name in ("tone", "size", "mood", "unit", "flag"):
        assert re.search(rf'<select [^>]*name="arg-{name}"', shown), name
    assert '<option value=""kg"">Kilograms</option>' in shown
    changed = {"tone": '"cold"', "size": "2", "mood": '"warm"', "unit": '"lb"', "flag": "false"}
    now = {"tone": "cold", "size": 2, "mood": "warm", "unit": "lb", "flag": False}
    assert edited(page, forms, **changed) == LEFT_OUT | now


def test_what_was_typed_is_what_runs(subtests: pytest.Subtests, page: Client, forms: Approval) -> None:
    typed: dict[str, str]
    now: Any
    for typed, now in [
        ({"limit": "5"}, {"limit": 5}),
        ({"note": "a"}, {"note": "a"}),
        ({"tags": '["a"]'}, {"tags": ["a"]}),
        ({"q": ""}, {"q": ""}),
        ({"d": ""}, {"d": ""}),
    ]:
        with subtests.test(typed=typed):
            assert edited(page, forms, **typed) == LEFT_OUT | now


@pytest.mark.usefixtures("forms")
def test_a_text_is_emptied_or_left_out_as_was_chosen(page: Client, bob: User) -> None:
    found = asked(bob, {"q": "hi", "note": "a", "d": "b", "plain": "c"})
    typed = typed_in(form_of(page, found)) | {"arg-note": "", "arg-d": "", "arg-plain": ""}
    chosen = {
        "text": LEFT_OUT | {"note": "", "d": "", "plain": ""},
        "out": LEFT_OUT,
    }
    for meaning, now in chosen.items():
        review = step(page, found, **typed | {f"empty-{name}": meaning for name in ("note", "d", "plain")})
        assert json.loads(hidden(review, "edited")) == now
    kept = step(page, found, **typed | {"empty-plain": "out", "arg-limit": "no number"})
    at = kept.index('name="empty-plain"')
    assert 'value="out" selected' in kept[at : kept.index("</select>", at)]


NULLS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "needed": {"type": ["integer", "null"]},
        "text": {"type": ["string", "null"]},
        "kind": {"enum": ["a", None]},
        "any": {},
        "other": {"type": ["integer", "null"], "default": 5},
    },
    "required": ["needed", "text", "kind", "any"],
}


def test_null_stays_null_where_it_is_more_than_left_out(page: Client, make_tool: MakeTool, bob: User) -> None:
    make_tool("pay", code="def run(q: str) -> str:\n    return q\n")
    Tool.objects.update(input_schema=NULLS)
    for text in (None, ""):
        found = asked(bob, {"needed": None, "text": text, "kind": None, "any": None, "other": None})
        assert "You changed nothing" in step(page, found, **typed_in(form_of(page, found)))
        now = {"needed": 1, "text": text, "kind": "a", "any": None, "other": 2}
        assert edited(page, found, needed="1", kind='"a"', other="2") == now


def test_what_is_wrong_is_said_in_words_at_its_field(subtests: pytest.Subtests, page: Client, forms: Approval) -> None:
    for typed, said in [
        ({"limit": "true"}, "limit: true is not a whole number or null."),
        ({"limit": "1.5"}, "limit: 1.5 is not a whole number or null."),
        ({"tags": "[null]"}, "tags.0: null is not a text."),
    ]:
        with subtests.test(typed=typed):
            fields = {f"arg-{name}": value for name, value in typed.items()}
            shown = step(page, forms, **typed_in(form_of(page, forms)) | fields)
            at = shown.index(f'name="{next(iter(fields))}"')
            assert said in shown[at : shown.index("</div>", at)]


NOT_JSON: dict[str, tuple[str, str]] = {
    "an unknown key": ('{"to": "ann", "amount": 5, "tool": "other"}', '"tool" was unexpected'),
    "a key twice": ('{"to": "ann", "to": "eve", "amount": 5}', "occurs twice"),
    "NaN": ('{"to": "ann", "amount": NaN}', "NaN is not JSON"),
    "no object": ("[1]", "must be a JSON object"),
    "too long": ('{"to": "' + "x" * 262_144 + '", "amount": 5}', "at most 262,144 are accepted"),
    "nested too deeply": ('{"to": "ann", "amount": 5, "how": ' + '{"a":' * 300 + "1" + "}" * 301, "nested too deeply"),
}


def test_json_that_cannot_be_the_arguments_is_refused_in_words(
    subtests: pytest.Subtests, page: Client, approval: Approval
) -> None:
    for case, (text, said) in NOT_JSON.items():
        with subtests.test(case=case):
            shown = step(page, approval, json=text)
            assert said in shown
            assert "Approve with changes" not in shown
            assert undecided(approval)


def test_from_fields_to_json_and_back_nothing_is_lost(page: Client, approval: Approval) -> None:
    as_json = step(page, approval, "json", **fields(amount="7", how='{"a": [1.0]}'))
    assert "Edit as fields" in as_json
    assert "Edit as fields" in step(page, approval, json="{")
    text = as_json[as_json.index("<textarea") :].partition(">")[2].partition("</textarea>")[0]
    assert '"amount": 7' in text
    assert "1.0" in text
    as_fields = step(page, approval, "fields", json=text)
    assert ">\n7</textarea>" in as_fields
    assert '{"a": [1.0]}' in as_fields


@pytest.mark.usefixtures("approval")
def test_what_cannot_be_seen_in_a_field_is_json_with_its_codes(
    subtests: pytest.Subtests, page: Client, bob: User
) -> None:
    for value in ["a\u202eb", "a\r\nb", "\u200b", "a\u00a0b"]:
        with subtests.test(value=value):
            found = asked(bob, {"to": value, "amount": 1})
            shown = page.get(f"/approvals/{found.pk}/edit", headers=HTMX).content.decode()
            assert "All arguments, as JSON" in shown
            assert "\\u" in shown or "\\r" in shown
            assert value not in shown


def test_the_difference_shows_what_is_hidden_long_or_none(page: Client, approval: Approval) -> None:
    same = step(page, approval, **fields())
    assert "You changed nothing" in same
    assert "Approve with changes" not in same
    turned = step(page, approval, **fields(to="ann\u202e"))
    assert '<span class="esc">U+202E</span>' in turned
    assert "\u202e" not in turned
    long = step(page, approval, **fields(to="x" * 5000 + "END"))
    assert "Show your whole value (5003 characters)" in long
    assert "END" in long


def test_a_text_that_becomes_a_number_is_told_apart(page: Client, make_tool: MakeTool, bob: User) -> None:
    make_tool("pay", code="def run(x: dict) -> str:\n    '''Take it.'''\n    return 'ok'\n")
    found = asked(bob, {"x": {"n": "5"}})
    assert "n" in step(page, found, json='{"x": {"n": 5}}')
    Tool.objects.update(input_schema={"type": "object", "properties": {"x": {}}})
    shown = step(page, asked(bob, {"x": "5"}), json='{"x": 5}')
    assert "It was a text and is now a number." in shown


@pytest.mark.guarantee("gate:no-yes-no-run", "SR-10")
def test_the_rule_that_covers_the_changed_call_is_read_before_the_yes(page: Client, approval: Approval) -> None:
    Tool.objects.filter(name="pay").update(hitl_mode="CONDITIONAL", condition='args["amount"] > 10')
    shown = step(page, approval, **fields(amount="50"))
    assert "Policy check: Asked because the condition" in shown


@pytest.mark.guarantee("gate:truth")
def test_once_it_is_settled_nothing_can_be_changed(page: Client, approval: Approval) -> None:
    review = step(page, approval, **fields(amount="50"))
    page.post(f"/approvals/{approval.pk}/decide", {"verdict": "decline"})
    assert "be changed any more" in step(page, approval, **fields(amount="50"))
    late = page.post(f"/approvals/{approval.pk}/decide", yes_to(review))
    assert late.status_code == 409
    assert b"was not recorded" in late.content
    assert Decision.objects.get().verdict == "decline"


@pytest.mark.guarantee("gate:only-people")
def test_nobody_else_sees_or_changes_it(approval: Approval, charlie: User, client: Client) -> None:
    client.force_login(charlie)
    assert client.get(f"/approvals/{approval.pk}/edit").status_code == 404
    assert client.post(f"/approvals/{approval.pk}/edit", fields()).status_code == 404
    sent = {"verdict": "approve", "digest": approval.digest, "edited": "{}", "shown": ""}
    assert client.post(f"/approvals/{approval.pk}/decide", sent).status_code == 404
    assert client.post(f"/approvals/{approval.pk}/take-back").status_code == 404
    assert undecided(approval)


def test_a_reason_that_is_too_long_is_refused_and_not_cut(page: Client, approval: Approval) -> None:
    sent = {"verdict": "decline", "reason": "x" * 501}
    response = page.post(f"/approvals/{approval.pk}/decide", sent)
    assert response.status_code == 409
    assert b"has 501 characters; at most 500" in response.content
    assert undecided(approval)
    page.post(f"/approvals/{approval.pk}/decide", sent | {"reason": "line\r\n" * 83 + "xx"})
    assert Decision.objects.get().reason == "line\n" * 83 + "xx"


def test_a_note_goes_to_the_model_with_a_yes_to_the_call_as_it_was_shown(page: Client, approval: Approval) -> None:
    sent = {"verdict": "approve", "digest": approval.digest, "reason": "x" * 501}
    assert page.post(f"/approvals/{approval.pk}/decide", sent).status_code == 409
    assert undecided(approval)
    page.post(f"/approvals/{approval.pk}/decide", sent | {"reason": " Only this once "})
    decision = Decision.objects.get()
    assert (decision.verdict, decision.reason, decision.digest) == ("approve", "Only this once", approval.digest)


def test_an_approval_is_taken_back_on_its_page_until_the_call_starts(page: Client, approval: Approval) -> None:
    page.post(f"/approvals/{approval.pk}/decide", {"verdict": "approve", "digest": approval.digest})
    assert b"Take back" in page.get(f"/approvals/{approval.pk}").content
    assert page.post(f"/approvals/{approval.pk}/take-back").status_code == 302
    assert b"This call was withdrawn" in page.get(f"/approvals/{approval.pk}").content
    late = page.post(f"/approvals/{approval.pk}/take-back")
    assert late.status_code == 409
    assert b"nothing to withdraw" in late.content
    assert page.get(f"/approvals/{approval.pk}/take-back").status_code == 405
