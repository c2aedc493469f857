"""Every error is a problem document, and no body is read in two ways."""

import logging
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from hitlchat.agent.models import Conversation
from tests.api.conftest import Program, ProgramOf, problem

MALFORMED: dict[str, str | bytes] = {
    "cut off": '{"title": "a"',
    "no JSON": "title=a",
    "duplicate keys": '{"title": "a", "title": "b"}',
    "not a number": '{"title": NaN}',
    "infinite": '{"title": 1e999}',
    "white space": "  ",
    "not UTF-8": b'{"title": "\xff"}',
    "too deep": "[" * 100_000,
}
WRONG = {
    "a list": "[]",
    "null": "null",
    "a number for text": '{"title": 1}',
    "a truth for text": '{"title": true}',
    "text for a list": '{"tools": "echo"}',
    "snake case": '{"Title": "a"}',
    "an unknown field": '{"title": "a", "owner": 1}',
    "a character that can't be kept": '{"title": "a\\u0000b"}',
    "half a character": '{"title": "a\\ud800b"}',
    "too long": '{"title": "%s"}' % ("a" * 201),
}


def test_a_malformed_body_is_a_400(bobs: Program) -> None:
    for body in MALFORMED.values():
        problem(bobs.send("POST", "/conversations", body), 400)
        assert not Conversation.objects.exists()


def test_a_body_that_does_not_fit_is_a_422(bobs: Program) -> None:
    for body in WRONG.values():
        assert problem(bobs.send("POST", "/conversations", body), 422)["errors"]
        assert not Conversation.objects.exists()


def test_a_filter_that_does_not_fit_is_named(bobs: Program) -> None:
    found = problem(bobs.get("/calls", limit=201, status="maybe", before="x"), 422)
    assert found["errors"].keys() == {"limit", "status", "before"}


def test_too_large_a_body_is_a_413(bobs: Program) -> None:
    problem(bobs.post("/conversations", {"title": "a" * 3_000_000}), 413)


def test_a_form_is_no_body(bob: User, browser_of: ProgramOf) -> None:
    client = browser_of(bob).client
    client.get("/api/docs")
    form = {"title": "a", "csrfmiddlewaretoken": client.cookies["csrftoken"].value}
    problem(client.post("/api/conversations", form), 415)


def test_an_unknown_address_is_a_404(bobs: Program) -> None:
    for path in ("/", "/nothing", "/approvals/", "/runs", "/approvals/not-an-id", "/approvals/../tools"):
        problem(bobs.get(path), 404)


def test_an_unknown_method_is_a_405(bobs: Program) -> None:
    for method in ["PUT", "PATCH", "DELETE"]:
        response = bobs.send(method, "/conversations", "{}")
        problem(response, 405)
        assert {word.strip() for word in response["Allow"].split(",")} == {"GET", "POST"}


def test_an_error_of_ours_tells_nothing_but_is_logged(bobs: Program, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("the secret inside")

    assert bobs.get("/calls").status_code == 200
    with connection.execute_wrapper(lambda execute, sql, *rest: broken() if "toolcall" in sql else execute(sql, *rest)):
        response = bobs.get("/calls")
    assert "secret" not in problem(response, 500)["detail"]
    assert [record.exc_text for record in caplog.records if record.levelno == logging.ERROR and record.exc_text]


def test_nobody_is_let_in_without_a_credential_to_learn_what_is_wrong(db: None) -> None:
    problem(Program(Client()).send("POST", "/conversations", "{"), 401)
