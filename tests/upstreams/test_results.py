"""What became of a call, as the gate is told: every way to end told apart."""

import pytest

from hitlchat.gate.sources import OutcomeUnknown
from hitlchat.upstreams.client.results import Answer, NeverRan, Outcome, Rejected, Unknown, Unreadable
from hitlchat.upstreams.source import LARGEST_RESULT, LONGEST_MESSAGE, result_of

TEXT = {"type": "text", "text": "hello"}


def of(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


PICTURE = {"type": "image", "mimeType": "image/png", "bytes": 108}


def test_an_answer_is_a_result(subtests: pytest.Subtests) -> None:
    for answer, value in [
        (Answer([TEXT]), "hello"),
        (Answer([TEXT, TEXT]), "hello\nhello"),
        (Answer([of("5")], {"result": 5}), {"result": 5}),
        (Answer([of('{"closed": 2}')], {"closed": 2}), {"closed": 2}),
        (Answer([of("[1,\n 2]")], [1, 2]), [1, 2]),
        (Answer([of("a"), of("b")], {"result": ["a", "b"]}), {"result": ["a", "b"]}),
        (Answer([of(" \n")], {"closed": 2}), {"closed": 2}),
        (Answer([TEXT], {"closed": 2}), {"structured": {"closed": 2}, "content": [TEXT]}),
        (Answer([of("{}"), TEXT], {}), {"structured": {}, "content": [of("{}"), TEXT]}),
        (Answer([]), None),
        (Answer([PICTURE, TEXT]), {"content": [PICTURE, TEXT]}),
        (Answer([PICTURE], [1]), {"structured": [1], "content": [PICTURE]}),
        (Answer([TEXT], {"content": [TEXT]}), {"structured": {"content": [TEXT]}, "content": [TEXT]}),
        (Answer([of("2")], {"content": 2}), {"structured": {"content": 2}, "content": [of("2")]}),
    ]:
        with subtests.test(answer=answer):
            result = result_of(answer, "shop")
            assert (result.value, result.error) == (value, None)


FAILURES: list[tuple[Outcome, str, str]] = [
    (Answer([TEXT], is_error=True), "tool", "hello"),
    (Answer([], is_error=True), "tool", "did not say why"),
    (Answer([of(" ")], is_error=True), "tool", "did not say why"),
    (Answer([], {"error": "locked until Friday"}, is_error=True), "tool", '{"error": "locked until Friday"}'),
    (Answer([TEXT], {"code": 7}, is_error=True), "tool", 'hello\n\n{"code": 7}'),
    (Answer([of('{"code":7}')], {"code": 7}, is_error=True), "tool", '{"code":7}'),
    (Rejected(-32602, "bad"), "rejected", "The server shop answered with an error instead (-32602): bad"),
    (NeverRan("it is down"), "unreachable", "It was not run: it is down."),
    (Unreadable("too large"), "result", "It was run, but its result cannot be used: too large."),
    (Answer([{"type": "text", "text": "x" * LARGEST_RESULT}]), "result", "at most 1,048,576 can be stored"),
    (Answer([], float("nan")), "result", "cannot be stored"),
]


def test_each_way_to_fail_has_its_own_words(subtests: pytest.Subtests) -> None:
    for outcome, kind, said in FAILURES:
        with subtests.test(outcome=outcome):
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
