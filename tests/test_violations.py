"""Reports of browsers about the content policy: few lines in the log, whatever is sent."""

import json
import logging
from typing import Any

import pytest
from django.test import Client

from hitlchat.headers import POLICY
from hitlchat.violations import LARGEST, MOST_KINDS, logged


@pytest.fixture(autouse=True)
def a_new_hour() -> None:
    logged.clear()


def send(body: Any, **headers: str) -> int:
    text = body if isinstance(body, str) else json.dumps(body)
    return Client(enforce_csrf_checks=True).post("/csp-report", text, "application/csp-report").status_code


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == "hitlchat.violations"]


def about(blocked: str, directive: str = "script-src-elem") -> dict[str, Any]:
    document = "https://hitl.example.com/chat/0?secret"
    return {"csp-report": {"document-uri": document, "effective-directive": directive, "blocked-uri": blocked}}


def test_the_policy_of_pages_says_where_to_report() -> None:
    assert POLICY.endswith("; report-uri /csp-report")


def test_a_kind_is_one_line_without_what_was_on_the_page(caplog: pytest.LogCaptureFixture) -> None:
    for blocked in ("https://evil.example/a?b=c", "https://evil.example/other", "inline"):
        assert send(about(blocked)) == 204
    assert said(caplog) == [
        "A browser reports that script-src-elem of a page kept it from https://evil.example",
        "A browser reports that script-src-elem of a page kept it from inline",
    ]


def test_nothing_that_is_sent_becomes_part_of_the_log_but_names(caplog: pytest.LogCaptureFixture) -> None:
    for blocked in ("https://x\ny/", "https://[", "javascript:alert(1)", "x" * 300, "https://b\u00fccher.example"):
        assert send(about(blocked)) == 204
    assert {each.rpartition(" kept it from ")[2] for each in said(caplog)} == {
        "https://xy", "an unreadable address", "something else"
    }  # fmt: skip


@pytest.mark.parametrize("body", ["", "[]", "{", '{"csp-report": []}', "[" * 9999, '{"csp-report": {}}'])
def test_what_is_no_report_is_refused_in_silence(body: str, caplog: pytest.LogCaptureFixture) -> None:
    assert send(body) == 400
    assert send(about("inline", "script-src\nfake")) == 400
    assert send(" " * (LARGEST + 1)) == 413
    assert said(caplog) == []


def test_many_kinds_are_no_flood_of_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    assert {send(about(f"https://n{number}.example")) for number in range(2 * MOST_KINDS)} == {204}
    assert len(said(caplog)) == MOST_KINDS
