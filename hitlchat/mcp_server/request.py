"""One tools/call: by whom, over what connection, what its client can do, and the progress it hears of."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

import anyio
import mcp_types as types
from django.conf import settings
from django.urls import reverse
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hitlchat.base import canonical
from hitlchat.gate.actor import Actor
from hitlchat.gate.who import claim
from hitlchat.mcp_server.authentication import ACCESS, GONE
from hitlchat.mcp_server.tokens import Access
from hitlchat.upstreams.client.link import Step

_following: WeakValueDictionary[UUID, "Progress"] = WeakValueDictionary()


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


def on_progress(*, call_id: UUID, step: Step, **_: Any) -> None:
    if (progress := _following.get(call_id)) is not None:
        progress.notice(step)


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
        client = self.ctx.session.client_params
        return self.access.claimed_user(claim(client.client_info.name) if client else "")

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
