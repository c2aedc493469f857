"""What became of a call, as the gate is told: every way to end told apart."""

from typing import Any

import pytest

from hitlchat.gate.sources import OutcomeUnknown
from hitlchat.upstreams.client import Answer, NeverRan, Outcome, Rejected, Unknown, Unreadable
from hitlchat.upstreams.source import LARGEST_RESULT, LONGEST_MESSAGE, result_of

TEXT = {"type": "text", "text": "hello"}
PICTURE = {"type": "image", "mimeType": "image/png", "bytes": 108}


@pytest.mark.parametrize(
    "answer,value",
    [
        (Answer([TEXT]), "hello"),
        (Answer([TEXT, TEXT]), "hello\nhello"),
        (Answer([TEXT], {"result": 5}), {"result": 5}),
        (Answer([]), None),
        (Answer([PICTURE, TEXT]), {"content": [PICTURE, TEXT]}),
        (Answer([PICTURE], [1]), {"structured": [1], "content": [PICTURE]}),
        (Answer([TEXT], {"content": [TEXT]}), {"structured": {"content": [TEXT]}, "content": [TEXT]}),
        (Answer([TEXT], {"content": "hello"}), {"content": "hello"}),
    ],
    ids=[
        "text",
        "texts",
        "structured",
        "nothing",
        "a picture",
        "a picture and structured",
        "like blocks",
        "unlike them",
    ],
)
def test_an_answer_is_a_result(answer: Answer, value: Any) -> None:
    result = result_of(answer, "shop")
    assert (result.value, result.error) == (value, None)


@pytest.mark.parametrize(
    "outcome,kind,said",
    [
        (Answer([TEXT], is_error=True), "tool", "hello"),
        (Answer([], is_error=True), "tool", "did not say why"),
        (Rejected(-32602, "bad"), "rejected", "The server shop answered with an error instead (-32602): bad"),
        (NeverRan("it is down"), "unreachable", "It was not run: it is down."),
        (Unreadable("too large"), "result", "It was run, but what came back cannot be used: too large."),
        (Answer([{"type": "text", "text": "x" * LARGEST_RESULT}]), "result", "at most 1,048,576 are kept"),
        (Answer([], float("nan")), "result", "cannot be kept"),
    ],
    ids=["failed", "failed silently", "rejected", "never ran", "unreadable", "too large", "not JSON"],
)
def test_each_way_to_fail_has_its_own_words(outcome: Outcome, kind: str, said: str) -> None:
    error = result_of(outcome, "shop").error
    assert error is not None
    assert error["kind"] == kind
    assert said in error["message"]


def test_what_may_have_run_is_neither_result_nor_failure() -> None:
    with pytest.raises(OutcomeUnknown, match="may have run it: gone"):
        result_of(Unknown("gone"), "shop")


def test_a_long_complaint_is_cut_and_the_cut_is_told() -> None:
    error = result_of(Rejected(1, "x" * 10_000), "shop").error
    assert error is not None
    assert error["message"].endswith("more characters)")
    assert len(error["message"]) < LONGEST_MESSAGE + 50
