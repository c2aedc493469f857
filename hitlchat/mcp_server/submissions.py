"""A tools/call as it came in over MCP: its request, its progress, its lease while its client is connected."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import cached_property
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

import anyio
import mcp_types as types
from django.conf import settings
from django.db.models import Q
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.translation import gettext_noop
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hitlchat.base import canonical, database, lease
from hitlchat.base.background import Worker, background
from hitlchat.base.database import in_db
from hitlchat.gate import stopping
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.who import claim
from hitlchat.mcp_server.authentication import ACCESS, GONE
from hitlchat.mcp_server.models import Submission
from hitlchat.mcp_server.tokens import Access
from hitlchat.upstreams.client.link import Step

LOST = "the server process that its client was connected to stopped before the question was answered"
EXPIRED = gettext_noop("its token expired")
AT_ONCE = 100
SECONDS = 5.0
# An outcome that nobody came back for is an answer to the same call for so long, and then history.
STANDS = timedelta(hours=1)

_following: WeakValueDictionary[UUID, "Progress"] = WeakValueDictionary()
_leased: set[UUID] = set()


_leases = lease.Leases("held_until", lambda: 2 * lease.length())


class Progress:
    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._reported: float | None = None
        self._newest: Step | None = None
        self._changed = asyncio.Event()

    async def waits(self, message: str) -> None:
        await self._report((self._reported or 0.0) + 1, None, message)

    def expect(self, call_id: UUID) -> None:
        """Expect progress of this call for this client; passed on once `following` is entered."""
        _following[call_id] = self

    @asynccontextmanager
    async def following(self, call_id: UUID) -> AsyncIterator[None]:
        """Pass on the progress of the tool of this call, if this process executes it."""
        self.expect(call_id)
        passing = asyncio.create_task(self._pass_on())
        try:
            yield
        finally:
            _following.pop(call_id, None)
            passing.cancel()
            with suppress(asyncio.CancelledError):
                await passing

    def notice(self, step: Step) -> None:
        self._newest = step
        self._changed.set()

    async def _pass_on(self) -> None:
        before: float | None = None
        while await self._changed.wait():
            self._changed.clear()
            if self._newest is not None:
                # Behind what was told while it waited.
                before = (self._reported or 0.0) if before is None else before
                total = None if self._newest.total is None else before + self._newest.total
                await self._report(before + self._newest.progress, total, self._newest.message or None)

    async def _report(self, progress: float, total: float | None, message: str | None) -> None:
        # The first number may be 0: that the tool has begun.
        if self._reported is not None and progress <= self._reported:
            return
        self._reported = progress
        # A client that has gone is noticed elsewhere.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._session.report_progress(progress, total, message)


class ToolRequest:
    def __init__(self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams) -> None:
        assert ctx.request is not None
        self.ctx, self.params, self.scope = ctx, params, ctx.request.scope
        self.access: Access = self.scope[ACCESS]
        self.arguments: dict[str, Any] = params.arguments or {}
        self.progress = Progress(ctx.session)

    @property
    def gone(self) -> asyncio.Event:
        """Set once the client has closed the connection that it asked over."""
        event: asyncio.Event = self.scope[GONE]
        return event

    @property
    def is_modern(self) -> bool:
        """Return whether it is of 2026-07-28: a question is an answer to the call, which is then made once more."""
        return self.ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    @cached_property
    def digest(self) -> str:
        """Return the digest of what is asked for; empty if that is no JSON, which the gate will say."""
        try:
            return canonical.sha256([self.params.name, self.arguments])
        except canonical.NotJson:
            return ""

    @cached_property
    def claimed_user(self) -> Actor:
        """Return the user, as far as this client says so."""
        params, access = self.ctx.session.client_params, self.access
        client = claim(params.client_info.name) if params else ""
        return Actor(access.user_id, "elicitation", client=client, token=access.token_name, token_id=access.token_id)

    @property
    def asks_forms(self) -> bool:
        # An empty capability is from before there were two kinds, and means forms.
        return self._elicitation is not None and (self._elicitation.form is not None or not self.opens_urls)

    @property
    def opens_urls(self) -> bool:
        return self._elicitation is not None and self._elicitation.url is not None

    @property
    def _elicitation(self) -> types.ElicitationCapability | None:
        capabilities = self.ctx.session.client_capabilities
        return capabilities.elicitation if capabilities else None

    def address_of(self, approval_id: UUID) -> str:
        """Return the page on which a signed-in person decides, under the name by which the client knows this server."""
        host = dict(self.scope["headers"])[b"host"].decode("latin-1")
        scheme = "https" if settings.HTTPS else self.scope.get("scheme", "http")
        return f"{scheme}://{host}{reverse('approval', args=[approval_id])}"


def on_progress(*, call_id: UUID, step: Step, **_: Any) -> None:
    if (progress := _following.get(call_id)) is not None:
        progress.notice(step)


def until() -> CombinedExpression:
    """Return until when others believe that this process still has the client."""
    return Now() + 2 * lease.length()


@asynccontextmanager
async def leased(call: ToolCall) -> AsyncIterator[None]:
    """Lease a call while its client waits for it here, unless it needs nobody's answer."""
    if call.settled or call.status == Status.ALLOWED:
        yield
        return
    _leased.add(call.pk)
    rows, is_lost = Submission.objects.filter(pk=call.pk), False
    try:
        await in_db(rows.update)(held_until=until())
        yield
    except (Exception, asyncio.CancelledError):
        # Others need not wait for what this process knows: its clients are gone when it ends.
        is_lost = background.leaving
        raise
    finally:
        _leased.discard(call.pk)
        with anyio.move_on_after(SECONDS, shield=True):
            await in_db(rows.update)(held_until=database.now() if is_lost else None)


def lease_worker() -> Worker:
    """Return the worker that renews the leases of this process, and takes over those that lapsed."""
    every = settings.LEASE_SECONDS / 3
    return Worker("clients", in_db(_renew), every, longest=every)


def pick_up(incoming: ToolRequest) -> ToolCall | None:
    """Take up the parked call like this one, if there is one: it is this request's from now on."""
    recent = Q(call__settled_at=None) | Q(call__settled_at__gt=Now() - STANDS)
    rows = Submission.objects.filter(recent, token_id=incoming.access.token_id, request=incoming.digest)
    parked = rows.filter(parked_at__isnull=False).order_by("parked_at").values_list("pk", "parked_at")
    for call_id, since in parked[:10]:
        if incoming.digest and Submission.objects.filter(pk=call_id, parked_at=since).update(parked_at=None):
            return ToolCall.objects.get(pk=call_id)
    return None


def _renew() -> None:
    if _leased:
        # Not those let go of in this moment.
        Submission.objects.filter(pk__in=tuple(_leased), held_until__isnull=False).update(held_until=until())
    rows = Submission.objects.filter(held_until__isnull=False).exclude(pk__in=tuple(_leased)).select_related("call")
    gone = [pk for pk, _ in _leases.lapsed(rows, AT_ONCE)]
    for row in rows.filter(pk__in=gone).order_by("held_until"):
        lost = Submission.objects.filter(pk=row.pk, held_until=row.held_until)
        if row.ends:
            stopping.withdraw_question(row.call_id, row.call.round, actor=SYSTEM, why=LOST)
            lost.update(held_until=None)
        else:
            lost.update(held_until=None, parked_at=database.now())
    # A call ends with the token that it came in with, as when that is revoked.
    expired = Submission.objects.filter(call__status=Status.WAITING, token__expires_at__lte=Now())
    for call_id in expired.values_list("call_id", flat=True)[:AT_ONCE]:
        stopping.withdraw_call(call_id, actor=SYSTEM, why=EXPIRED)
