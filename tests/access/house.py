"""A house with one of everything that an address can name. What belongs to somebody is bob's, save the test of a tool,
which is its author's.
"""

import json
import re
from datetime import timedelta
from typing import Any, Final

from django.contrib.auth.models import Group, User
from django.utils import timezone

from hitlchat.accounts.models import Role, SetupLink, Token, TokenKind, hashed
from hitlchat.agent import asking, conversations, endpoints, presets, tool_sets, transcript
from hitlchat.agent.attachments import keeping
from hitlchat.agent.models import Conversation, Message, Run, RunStatus
from hitlchat.agent.models import Role as Speaker
from hitlchat.gate import contents, lab, planted
from hitlchat.gate.absences import begin
from hitlchat.gate.grants.scope import Scope
from hitlchat.gate.models import Approval, Attachment, Grant, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.mcp_server import inspector
from hitlchat.people import membership
from hitlchat.upstreams.models import ComposedTool, ToolEvent
from tests.agent.cast import agent
from tests.conftest import ECHO, MakeTool, signed_in
from tests.gate.asking import ask, say_yes
from tests.gate.deciding_people import rule
from tests.insights.rows import ran
from tests.notices.noticing import webhook
from tests.upstreams.asking import executing_elsewhere, question_of
from tests.upstreams.shops import expose, listing, somewhere, take_in
from tools_studio.models import Script, TestCase

PICTURE: Final = b"a picture"
PART: Final = re.compile(r"\{([^}]+)\}")
# The kinds of things with a name of their own, by the beginning of their addresses; elsewhere a name is a tool's.
NAMES: Final = {
    "/servers": "shop",
    "/api/servers": "shop",
    "/models": "endpoint",
    "/api/endpoints": "endpoint",
    "/tool-sets": "set",
    "/api/tool-sets": "set",
    "/presets": "preset",
    "/api/presets": "preset",
    "/studio/agents": "helper",
    "/api/agents": "helper",
    "/studio/project": "refund",
}


class House:
    """`things`: what to put into a part of an address, by that part, with the beginning of the address before it
    where the same word means something else there.
    """

    def __init__(self, alice: User, bob: User, author: User, make_tool: MakeTool) -> None:
        self.alice, self.bob, self.author = alice, bob, author
        self.talk = Conversation.objects.create(owner=bob, title="Orders")
        names = {f"{beginning} name": name for beginning, name in NAMES.items()}
        self.things = names | self._people() | self._talk() | self._tools(make_tool) | self._upstream()
        by = signed_in(alice)
        endpoints.create(endpoints.Draft("endpoint", base_url="http://127.0.0.1:1/v1", model="m"), by)
        tool_sets.create(tool_sets.Draft("set", tools=("echo",)), by)
        presets.create(presets.Draft("preset"), by)
        agent(alice, "helper")

    def address(self, route: str) -> str:
        """Return the address with something that exists in each of its parts."""
        return PART.sub(lambda part: str(self._thing(route, part[1])), route) + ASKED.get(route, "")

    def filled(self, sent: Any) -> Any:
        """Return what is sent with it, likewise."""
        text = json.dumps(sent)
        return json.loads(re.sub(r"\{(\w+)\}", lambda part: str(self.things[part[1]]), text))

    def _thing(self, route: str, part: str) -> Any:
        special = (key for key in self.things if key.endswith(f" {part}") and route.startswith(key.split(" ")[0]))
        return self.things[next(special, part)]

    def _people(self) -> dict[str, Any]:
        invitation, secret = membership.invite(Role.MEMBER, "a colleague", signed_in(self.alice))
        SetupLink.objects.create(digest=hashed("set-up"), expires_at=timezone.now() + timedelta(days=1))
        session = inspector.Session(self.bob.pk, "2026-07-28", True, "http://127.0.0.1:1/mcp", "127.0.0.1", "none")
        inspector.begin(session)
        # Not yet: a delegate may look at what waits for the person.
        tomorrow = timezone.now() + timedelta(days=1)
        absence = begin(self.bob.pk, self.author.username, tomorrow, tomorrow + timedelta(days=1), signed_in(self.bob))
        return {
            "user_id": self.bob.pk,
            "group_id": Group.objects.create(name="finance").pk,
            "invitation_id": invitation.pk,
            "/join secret": secret,
            "/welcome secret": "set-up",
            "token_id": Token.objects.get(digest=hashed(Token.make(self.bob, TokenKind.MCP))).pk,
            "session_id": session.id,
            "announcement_id": planted.announce("Read your cards.", 14, signed_in(self.alice)).pk,
            "absence_id": absence.pk,
            "delegation_id": absence.pk,
            "receiver_id": webhook(self.alice, "https://hook.example/")[0].pk,
        }

    def _talk(self) -> dict[str, Any]:
        run = Run.objects.create(conversation=self.talk, status=RunStatus.DONE, shown=True)
        message = Message.objects.create(conversation=self.talk, run=run, seq=1, role=Speaker.USER, content="Hello")
        sent = keeping.add(self.talk, "orders.csv", b"a,b")
        keeping.bind([sent], message)
        conversations.share(self.talk, signed_in(self.bob))
        return {
            "conversation_id": self.talk.pk,
            "message_id": message.pk,
            "message_id: a summary": transcript.add_summary(self.talk.pk, run.pk, "They like tea.", [message.pk]).pk,
            "run_id": run.pk,
            "before": 2,
            "link": self.talk.share,
            "attachment_id": sent.pk,
        }

    def _tools(self, make_tool: MakeTool) -> dict[str, Any]:
        echo, strict = make_tool("echo", hitl_mode="CONDITIONAL"), make_tool("strict")
        rule(strict, self.alice)
        call = ask(self.bob, echo, {}, conversation_id=self.talk.pk)
        granted = ask(self.bob, echo, {"text": "again"})
        say_yes(self.bob, granted, grant=Scope(calls=2))
        tried = ask(self.author, echo, {"text": "tried"}, kind="studio", conversation_id=None)
        asking.offered()
        question = {"question": "Which?", "fields": [{"name": "colour", "label": "Colour", "kind": "text"}]}
        return {
            "name": "echo",
            "document": "policies",
            "number": 1,
            "/studio before": 1,
            "after": 1,
            "case_id": TestCase.objects.create(script=Script.objects.get(tool=echo), name="one").pk,
            "call_id": call.pk,
            "call_id: ran unasked": ran(self.bob, "look").pk,
            "/studio call_id": tried.pk,
            "approval_id": Approval.objects.get(call=call).pk,
            "approval_id: approvers decide": Approval.objects.get(call=ask(self.bob, strict, {})).pk,
            "approval_id: approved": Approval.objects.get(call=granted).pk,
            "approval_id: a question": Approval.objects.get(call=ask(self.bob, Tool(name=asking.NAME), question)).pk,
            "grant_id": Grant.objects.get().pk,
            "draft_id": lab.keep(DRAFT, signed_in(self.alice), name="draft").pk,
        }

    def _upstream(self) -> dict[str, Any]:
        shop = somewhere(self.alice)
        take_in(shop, listing(echo="Say it back."))
        expose(self.alice, shop, alias="shop_echo")
        executing = executing_elsewhere(self.bob)
        ToolCall.objects.filter(pk=executing.pk).update(started_at=timezone.now())
        digest = contents.digest(PICTURE)
        block = {"type": "image", "mimeType": "image/png", "bytes": len(PICTURE), "sha256": digest}
        columns: dict[str, Any] = {"tool_name": "shop_echo", "source": "upstream", "status": Status.SUCCEEDED}
        shown = ToolCall.objects.create(**columns, caller=self.bob, caller_kind="chat", result={"content": [block]})
        Attachment.objects.create(call=shown, digest=digest, data=PICTURE)
        return {
            "tool": "echo",
            "server_id": shop.pk,
            "tool_id": ComposedTool.objects.get().pk,
            "alias": "shop_echo",
            "event_id": ToolEvent.objects.all()[0].pk,
            "question_id": question_of(executing).pk,
            "digest": digest,
            "/history/{call_id}/attachments/{digest} call_id": shown.pk,
        }


# What an address asks for beside its path.
ASKED: Final = {"/texts/example": "?outcome=declined", "/tools/{name}/texts/example": "?outcome=declined"}
# A file in a form, where SENT names it.
FILE: Final = "orders.csv"
AGENT: Final = {"name": "another", "description": "Says it back.", "instructions": "Say it back."}
DRAFT: Final = {"tools": {"echo": {"hitlMode": "REQUIRED"}}}
# What has to be sent for a request to be about more than what is wrong with it.
SENT: Final[dict[tuple[str, str], Any]] = {
    ("POST", "/api/delegations"): {"delegate": "nobody", "until": "2026-01-01T00:00:00Z"},
    ("POST", "/api/looking-back/{call_id: ran unasked}"): {"verdict": "fine"},
    ("POST", "/looking-back/{call_id: ran unasked}"): {"verdict": "fine"},
    ("POST", "/approvals/{approval_id}/extend"): {"deadline": "2026-01-01T00:00:00+00:00"},
    ("POST", "/approvals/{approval_id: approvers decide}/extend"): {"deadline": "2026-01-01T00:00:00+00:00"},
    ("POST", "/api/conversations/{conversation_id}/messages"): {"content": "Hello"},
    ("POST", "/api/conversations/{conversation_id}/messages/{message_id}/edit"): {"content": "Hello"},
    ("POST", "/api/chat"): {"id": "{conversation_id}", "messages": [{"role": "user", "parts": []}]},
    ("POST", "/api/chat/{conversation_id}/submit-tool-result"): {
        "kind": "approval-response",
        "approvalId": "{approval_id}",
        "approved": True,
    },
    ("POST", "/api/approvals/batch"): {
        "verdict": "approve",
        "items": [{"id": "{approval_id}", "consentDigest": "0"}] * 2,
    },
    ("POST", "/api/conversations/{conversation_id}/attachments"): FILE,
    ("POST", "/api/policies/simulate"): {"toolName": "echo"},
    ("POST", "/api/policies/drafts"): DRAFT | {"name": "another"},
    ("POST", "/api/policies/drafts/{draft_id}/publish"): {"why": "So."},
    ("POST", "/api/tools"): {"name": "another", "code": ECHO},
    ("POST", "/api/tools/{name}/cases"): {"name": "another"},
    ("POST", "/api/tools-import"): {"document": {}},
    ("POST", "/api/servers"): {"name": "another", "url": "https://another.example/mcp"},
    ("PUT", "/api/servers/{name}/tools"): {"tools": [{"tool": "echo"}]},
    ("POST", "/api/servers/{name}/tools/{tool}/accept"): {"digest": "0"},
    ("POST", "/api/endpoints"): {"name": "another", "baseUrl": "http://127.0.0.1:1/v1", "model": "m"},
    ("PUT", "/api/attention-checks/announcement"): {"text": "Read your cards."},
    ("PUT", "/api/second-opinion"): {"mode": "off"},
    ("POST", "/api/tool-sets"): {"name": "another"},
    ("POST", "/api/presets"): {"name": "another"},
    ("POST", "/api/agents"): AGENT,
}
