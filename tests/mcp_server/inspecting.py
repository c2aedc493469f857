"""A person at the Inspector's pages, over real HTTP: what a browser would send and see."""

import re
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from hitlchat.accounts.models import Token
from hitlchat.mcp_server.inspector import Session, _sessions, end_all
from hitlchat.mcp_server.inspector.views import NAME
from tests.conftest import PASSWORD
from tests.waiting import until

BASE = "/mcp-access/inspector"
OLDER, MODERN = "2025-11-25", "2026-07-28"
each_era = pytest.mark.parametrize("era", [OLDER, MODERN])


class Inspecting:
    def __init__(self, url: str, name: str) -> None:
        self.web = httpx2.Client(base_url=url, timeout=40, trust_env=False, verify=False)
        self.web.get("/sign-in")
        assert self.post("/sign-in", username=name, password=PASSWORD).status_code == 302
        self.path = ""
        self._last = -1

    def post(self, path: str, **form: Any) -> httpx2.Response:
        headers = {"X-CSRFToken": self.web.cookies["csrftoken"], "Origin": str(self.web.base_url).rstrip("/")}
        return self.web.post(path, data=form, headers=headers)

    def begin(self, era: str, **form: Any) -> httpx2.Response:
        """Begin a session, with a token made for it unless `secret` is one."""
        answer = self.post(BASE, era=era, **{"elicits": "yes", "without_elicitation": "deny", **form})
        if answer.status_code == 302:
            self.path = urlsplit(answer.headers["location"]).path
        return answer

    def connect(self, era: str, **form: Any) -> Session:
        """The same, until its tools are listed."""
        answer = self.begin(era, **form)
        assert answer.status_code == 302, answer.text
        # As an administrator would, who may do so in the form.
        Token.objects.filter(name=NAME).update(attended=True)
        session = self.session
        until(lambda: session.problem or session.tools is not None, "its tools are listed")
        return session

    @property
    def session(self) -> Session:
        return next(each for each in _sessions.values() if str(each.id) in self.path)

    def call(self, tool: str, **form: Any) -> httpx2.Response:
        return self.post(f"{self.path}/tools/{tool}", **form)

    def answer(self, action: str) -> httpx2.Response:
        """Answer the question that is, or will be, open."""
        self._last = -1
        number = until(self._question, "the client's user is asked")
        return self.post(self.path, answer=action, number=number)

    def seen(self) -> str:
        return self.web.get(self.path).text

    def shows(self, words: str) -> str:
        """The page, once it has these words."""
        self._last = -1
        return until(lambda: page if words in (page := self._seen_anew()) else "", f"the page says {words!r}")

    def _seen_anew(self) -> str:
        """The page, if anything has happened since this last looked."""
        last, self._last = self._last, self.session.last
        return "" if last == self._last else self.seen()

    def _question(self) -> str:
        found = re.search(r'id="asked-(\d+)"', self._seen_anew())
        return found[1] if found else ""

    def close(self) -> None:
        """End the sessions of everyone, and wait for all that goes on in them."""
        sessions = list(_sessions.values())
        end_all()
        until(lambda: not any(session.tasks for session in sessions), "nothing goes on any more")
        self.web.close()
