"""Conditions as they are saved: what would fail at the approver is said to whoever writes it."""

from typing import Any

import pytest

from hitlchat.gate import policy

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "amount": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "items": {"type": "object"},
        "kind": {"enum": ["a", "b"]},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
    },
    "additionalProperties": False,
}
FINE = [
    "",
    "True",
    'args["amount"] > 10_000',
    'float(args["amount"]) > 100 and\nlen(args["text"]) > 1',
    'args.get("limit", 0) is not None',
    'any(tag == "x" for tag in args["tags"])',
    'len(args.items()) > 3 or "text" in args',
    'caller["kind"] == "mcp" or "staff" in caller["groups"] or caller["conversation"] is None',
    'int(args["text"]) > 3',
    'args["items"]["any"] == 3',
    'args["tags"][5] == "x"',
    'args["limit"] is not None and args["limit"] > 3',
    'args["kind"] in ("a", "b")',
    '[name for name in args if name.startswith("t")] == []',
    'not args["text"]',
]
WRONG = {
    "len(args.text) > 1": 'Write args["text"], not args.text.',
    "True or args.text": 'Write args["text"], not args.text.',
    "args.items > 1": 'Write args["items"], not args.items.',
    'caller.kind == "mcp"': 'Write caller["kind"], not caller.kind.',
    "amount > 3": 'Write args["amount"], not amount.',
    "total > 3": "There is no total in a condition; expected args, caller or args_from_outside.",
    "False and total > 3": "There is no total in a condition; expected args, caller or args_from_outside.",
    're.match("a", args["text"]) is not None': "There is no re in a condition; expected args, caller or args_from_",
    'args["txet"] == "a"': 'There is no args["txet"]; expected one of "text", "amount", "tags"',
    'caller["name"] == "a"': 'There is no caller["name"]; expected one of "kind", "user", "conversation", "groups".',
    "1 +": "Not a Python expression: ",
    "args = 3": "Not a Python expression: ",
    'open("x")': "It would fail: ",
    'args["text"] > 3': "It would fail: TypeError: ",
    'args["amount"].startswith("1")': "It would fail: AttributeError: ",
    'args["text"]': 'Expected True or False, not "12".',
    'len(args["text"])': "Expected True or False, not 2.",
    "None": "Expected True or False, not null.",
}


async def test_a_condition_that_works_is_taken(subtests: pytest.Subtests) -> None:
    for condition in FINE:
        with subtests.test(condition=condition):
            assert await policy.condition_fault(condition, SCHEMA) == ""


async def test_a_condition_that_would_fail_is_told_with_what_to_write(subtests: pytest.Subtests) -> None:
    for condition, said in WRONG.items():
        with subtests.test(condition=condition):
            assert (await policy.condition_fault(condition, SCHEMA)).startswith(said)


async def test_of_arguments_that_nobody_knows_nothing_is_made_up(subtests: pytest.Subtests) -> None:
    schema: Any
    for schema in [{}, {"properties": {"x": {}, "y": True}}, {"properties": {"x": {"$ref": "#/x"}}}]:
        with subtests.test(schema=schema):
            for condition in ('args["x"] > 3', 'args["z"].startswith("a")', 'args["x"]["y"] == 1'):
                assert await policy.condition_fault(condition, schema) == ""
            assert await policy.condition_fault("args.x > 3", schema) == 'Write args["x"], not args.x.'
