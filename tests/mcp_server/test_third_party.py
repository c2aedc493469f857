"""Real clients that nobody here wrote, as people run them, at a real server: the MCP Inspector's, published on npm."""

import html
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.mcp_server.npm_clients import FINE, IS_ERROR, SECONDS, Mcpdo, Programs, Said, daemon_of, programs_for, said
from tests.processes import STEADY, Installation, Person, Server, Servers, _drop_database, copy_of
from tests.waiting import until

pytestmark = [
    pytest.mark.slow("every command starts a program of its own"),
    pytest.mark.embedded,
    pytest.mark.timeout(300),
    pytest.mark.guarantee("gate:no-yes-no-run", "gate:one-funnel"),
]

ERAS: Final = ("legacy", "modern")
each_era = pytest.mark.parametrize("era", ERAS)
ECHO: Final = 'def run(text: str = "hello") -> str:\n    """Say it back."""\n    return text\n'
COUNT: Final = '''from hitl import store


def run(key: str) -> int:
    """Count how often this ran with the same key."""
    store.set(key, store.get(key, 0) + 1)
    return store.get(key)
'''
TOOLS: Final[list[dict[str, Any]]] = [
    {"name": "look", "code": ECHO, "hitl_mode": "DISABLED"},
    {"name": "count", "code": COUNT, "hitl_mode": "REQUIRED", "capabilities": {"store": True}},
]
PREPARE: Final = """
import json
from django.contrib.auth.models import User
from hitlchat.accounts.models import Token
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Tool
from hitlchat.mcp_server import tokens
from tools_studio import authoring
alice, bob = User.objects.get(username="alice"), User.objects.get(username="bob")
for draft in json.loads({drafts!r}):
    authoring.create(authoring.Draft(**draft), Actor(alice.pk, "console"), confirmed=True)
Tool.objects.update(published=True)
print(json.dumps({{way: tokens.make_mcp(bob, without_elicitation=way) for way in ("deny", "inbox", "url")}}))
Token.objects.update(attended=True)
"""


@dataclass(frozen=True)
class House:
    """`tokens`: of bob, by what happens where his client cannot ask him."""

    server: Server
    bob: Person
    tokens: dict[str, str]

    def record(self, call_id: str) -> dict[str, Any]:
        return dict(self.bob.get(f"/api/calls/{call_id}").json())

    def waiting(self, key: str) -> list[dict[str, Any]]:
        """What bob is asked about, of the calls with this key: each test has its own."""
        return [each for each in self.bob.pending() if each["arguments"] == {"key": key}]

    def approve(self, key: str) -> None:
        """As bob, signed in, once he is asked."""
        (asked,) = until(lambda: self.waiting(key), "bob is asked")
        assert self.bob.post(f"/api/approvals/{asked['id']}/approve").is_success


@pytest.fixture(scope="module")
def house(migrated: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    home = copy_of(migrated, tmp_path_factory.mktemp("third") / "data")
    tokens = json.loads(home.manage("shell", "-v", "0", "-c", PREPARE.format(drafts=json.dumps(TOOLS))))
    started = Servers(home)
    # The word of trusted clients is enough for a tool that keeps something.
    server = started.start(**STEADY, HITL_ELICITATION_MAX_RISK="2")
    yield House(server, server.sign_in("bob"), tokens)
    started.close()
    _drop_database(home.database)


@pytest.fixture
def programs(house: House) -> Iterator[Programs]:
    """With a token whose calls are refused when the client cannot ask."""
    with programs_for(house.server.url, house.tokens["deny"]) as found:
        yield found


@pytest.fixture
def mcpdo(programs: Programs) -> Iterator[Mcpdo]:
    with daemon_of(programs) as found:
        yield found


def told(answer: Said) -> tuple[int, str, bool]:
    return answer.code, answer.status, answer.told["isError"]


@each_era
def test_the_inspector_lists_and_calls(era: str, programs: Programs) -> None:
    tools = {tool["name"]: tool for tool in programs.run(programs.cli(era, "tools/list")).told["tools"]}
    assert {"look", "count"} <= tools.keys()
    assert tools["look"]["inputSchema"]["properties"]["text"]["type"] == "string"
    assert tools["count"]["_meta"]["hitlchat/riskLevel"] == 2
    answer = programs.run(programs.calling(era, "look", text="a text"))
    assert told(answer) == (FINE, "succeeded", False)
    assert (answer.text, answer.told["structuredContent"]) == ("a text", {"result": "a text"})
    wrong = programs.run(programs.calling(era, "look", tex="a text"))
    assert told(wrong) == (IS_ERROR, "rejected", True)


@pytest.mark.guarantee("SR-35")
def test_a_gated_call_of_the_inspector_which_cannot_ask_is_refused(house: House, programs: Programs) -> None:
    key = "denied"
    answer = programs.run(programs.calling("modern", "count", key=key))
    assert told(answer) == (IS_ERROR, "refused", True)
    assert "this client cannot ask its user" in answer.text
    assert house.record(answer.call_id)["startedAt"] is None
    assert house.waiting(key) == []


def test_with_another_token_the_inspector_waits_until_its_user_has_decided(house: House) -> None:
    key = "inbox"
    with programs_for(house.server.url, house.tokens["inbox"]) as programs:
        running = programs.start(programs.calling("legacy", "count", key=key))
        try:
            house.approve(key)
            answer = said(*_ended(running))
        finally:
            running.kill()
    assert told(answer) == (FINE, "succeeded", False)
    assert answer.text == "1"
    assert [each["means"] for each in house.record(answer.call_id)["decisions"]] == ["session"]


def test_with_a_token_that_gives_links_the_inspector_comes_back_for_what_was_decided(house: House) -> None:
    key = "link"
    with programs_for(house.server.url, house.tokens["url"]) as programs:
        command = programs.calling("modern", "count", key=key)
        first, again = programs.run(command), programs.run(command)
        assert told(first) == told(again) == (IS_ERROR, "waiting", True)
        assert first.call_id == again.call_id
        (asked,) = house.waiting(key)
        assert first.told["_meta"]["hitlchat/approval"] == f"{house.server.url}/approvals/{asked['id']}"
        house.approve(key)
        until(lambda: house.record(first.call_id)["status"] == "succeeded", "it ran")
        answer = programs.run(command)
    assert told(answer) == (FINE, "succeeded", False)
    assert (answer.text, answer.call_id) == ("1", first.call_id)


@each_era
def test_mcpdo_runs_what_its_user_accepts_and_nothing_else(era: str, house: House, mcpdo: Mcpdo) -> None:
    key = f"asked-{era}"
    connection = mcpdo.connect(era)
    answers = {}
    for how in ("--decline", "--cancel", "{}"):
        question = connection.asked("count", key=key)
        assert question["mode"] == "form"
        assert question["message"].startswith("[Risk L2")
        assert key in question["message"]
        assert question["requestedSchema"] == {"type": "object", "properties": {}}
        answers[how] = connection.answer(question, how)
    declined, cancelled, accepted = answers.values()
    assert told(declined) == (IS_ERROR, "declined", True)
    assert "The user declined this call. It was not executed." in declined.text
    assert told(cancelled) == (IS_ERROR, "withdrawn", True)
    assert told(accepted) == (FINE, "succeeded", False)
    # Had one of the others run, it would have counted.
    assert accepted.text == "1"
    records = [house.record(answer.call_id) for answer in answers.values()]
    assert [record["startedAt"] is None for record in records] == [True, True, False]
    verdicts = [[(each["verdict"], each["means"]) for each in record["decisions"]] for record in records]
    assert verdicts == [[("decline", "elicitation")], [], [("approve", "elicitation")]]


def test_mcpdo_that_only_opens_addresses_is_sent_to_the_page(house: House, mcpdo: Mcpdo) -> None:
    key = "sent"
    connection = mcpdo.connect("modern", elicit="url")
    question = connection.asked("count", key=key)
    (asked,) = house.waiting(key)
    assert (question["mode"], question["url"]) == ("url", f"{house.server.url}/approvals/{asked['id']}")
    house.approve(key)
    answer = connection.answer(question, "--done")
    assert told(answer) == (FINE, "succeeded", False)
    assert answer.text == "1"
    assert [each["means"] for each in house.record(answer.call_id)["decisions"]] == ["session"]


def test_what_the_connect_page_gives_for_the_inspector_runs_as_it_stands(house: House, programs: Programs) -> None:
    commands = _commands_for_the_inspector(house)
    assert all(command[:2] == ["npx", "@modelcontextprotocol/inspector"] for command in commands)
    listing = next(command for command in commands if "--cli" in command)
    answer = programs.run(programs.launcher(*listing[2:]))
    assert answer.code == FINE
    assert "look" in {tool["name"] for tool in answer.told["tools"]}


def _commands_for_the_inspector(house: House) -> list[list[str]]:
    """What bob sees after he has pressed for a token, as a shell would take it apart."""
    form = {"csrfmiddlewaretoken": house.bob.csrf}
    page = house.bob._client.post("/mcp-access/connect", data=form, headers=house.bob._headers).text
    texts = re.findall(r'<pre[^>]* id="inspector-\d+"[^>]*>(.*?)</pre>', page, re.DOTALL)
    assert len(texts) == 2
    return [[word for word in shlex.split(html.unescape(text)) if word.strip()] for text in texts]


def _ended(running: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = running.communicate(timeout=SECONDS)
    return running.returncode, out, err
