"""What the demo model says when calls have come back."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.agent.demo_tools import SHIPPED, reply_to

RAN = "`refund_order` was run. The result:\n\n"
DECLINED = "You declined `refund_order`, so it was not run."
UNANSWERED = "Nobody answered in time whether `refund_order` may run, so it was not run."
UNKNOWN = "The outcome of `refund_order` is unknown: it may or may not have happened. I will not repeat it."


def came_back(*contents: str | None, name: str = "refund_order") -> str:
    """What it says after calls with these tool messages."""
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": "{}"}} for n in range(len(contents))
    ]
    results = [
        {"role": "tool", "tool_call_id": f"c{n}", "content": text}
        for n, text in enumerate(contents)
        if text is not None
    ]
    start = [
        {"role": "user", "content": "refund order 4711 5 EUR"},
        {"role": "assistant", "content": None, "tool_calls": calls},
    ]
    text, more = reply_to({"messages": [*start, *reversed(results)], "tools": SHIPPED})
    assert not more
    return text


def status(name: str, **facts: Any) -> str:
    return json.dumps({"status": name, "message": "…", **facts})


def test_it_tells_the_truth_about_what_came_back() -> None:
    for content, said in [
        (status("declined"), DECLINED),
        (status("declined", reason_given_by_the_user="too *much*"), f"{DECLINED} Your reason: too \\*much\\*"),
        (status("expired"), UNANSWERED),
        (status("withdrawn"), "`refund_order` was withdrawn before it started, so it was not run."),
        (status("refused", reason="too late"), "A policy refused `refund_order`, so it was not run. Reason: too late"),
        (status("rejected", reason="no amount"), "`refund_order` was rejected, so it was not run. Reason: no amount"),
        (
            status("rejected", reason="Not run: the tool was changed."),
            "`refund_order` was rejected, so it was not run. Reason: the tool was changed.",
        ),
        (
            status("failed", error="only 9 left", line=3, executed=True),
            "`refund_order` was run and failed. It says: only 9 left (line 3)",
        ),
        (
            status("failed", error="It was not run: its server is down.", executed=False),
            "`refund_order` was not run. Reason: its server is down.",
        ),
        (status("failed", error="the server said no"), "`refund_order` failed. It says: the server said no"),
        (status("unknown"), UNKNOWN),
        (status("executing"), "`refund_order` has not come back yet: its outcome is not known. I will not repeat it."),
        (None, "There is no result of `refund_order`: I do not know whether it ran."),
        ('{"status": "declined", "executed": false, "fact": "It was not exec\n[cut here: 9 more characters]', DECLINED),
        ('{"status": "expired", "executed": false, "message": "No\n[cut here: 9 more characters]', UNANSWERED),
        ("The outcome is unknown.", UNKNOWN),
        ("null", "`refund_order` was run. It returned nothing."),
        ("", "`refund_order` was run. It returned nothing."),
        ("[]", "`refund_order` was run. It returned an empty list."),
        ("{}", "`refund_order` was run. It returned an empty object."),
        ("42", f"{RAN}42"),
        ("120.00", f"{RAN}120.00"),
        ("1e400", f"{RAN}1e400"),
        ("0", f"{RAN}0"),
        ("false", f"{RAN}false"),
        ('"done"', f"{RAN}done"),
        ("The card was declined by the bank", f"{RAN}The card was declined by the bank"),
        ('{"status": "cancelled", "total": 1.5}', f"{RAN}- `status`: cancelled\n- `total`: 1.5"),
        ('{"status": "failed", "total": 1.5}', f"{RAN}- `status`: failed\n- `total`: 1.5"),
        (
            '[{"id": 1, "x": "a|b"}, {"id": 2, "x": null}]',
            f"{RAN}| id | x |\n| --- | --- |\n| 1 | a\\|b |\n| 2 | null |",
        ),
        ('{"cut here', RAN + '```\n{"cut here\n```'),
        ("two\nlines", f"{RAN}```\ntwo\nlines\n```"),
    ]:
        assert came_back(content) == said


def test_edited_arguments_are_told() -> None:
    said = came_back(status("succeeded", arguments={"amount": "5.00"}, result={"refunded": "5.00"}))
    assert "You changed the arguments" in said
    assert "- `amount`: 5.00" in said
    assert "- `refunded`: 5.00" in said


def test_results_are_told_in_the_order_of_the_calls() -> None:
    said = came_back("1", status("declined"), '{"deep": {"a": [1, 2]}}')
    assert said.index("1\n") < said.index("declined") < said.index("```json")


@settings(deadline=None)
@given(st.text(), st.sampled_from(['{"a": %s}', "[%s, %s]", '[{"a": %s}]', "%s"]))
def test_no_result_becomes_markup(value: str, shape: str) -> None:
    value = f"{value} <b>x</b> [a](http://a.example) ![b](c) **d** `e`"
    content = shape.replace("%s", json.dumps(value))
    rendered = MarkdownIt("commonmark").enable("table").render(came_back(content))
    assert not any(tag in rendered for tag in ("<a ", "<img", "<strong>", "<b>", "<em>", "<h1"))
