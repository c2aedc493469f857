"""One tools/call: by whom, over what connection, and what its client can do."""

import asyncio
from functools import cached_property
from typing import Any
from uuid import UUID

import mcp_types as types
from django.conf import settings
from django.urls import reverse
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hitlchat.base import canonical
from hitlchat.gate.actor import Actor
from hitlchat.gate.who import claim
from hitlchat.mcp_server.door import ACCESS, GONE
from hitlchat.mcp_server.progress import Progress
from hitlchat.mcp_server.tokens import Access


class Asked:
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
        """Of 2026-07-28: a question is an answer to the call, which the client then makes once more."""
        return self.ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    @cached_property
    def digest(self) -> str:
        """Of what is asked for; empty if that is no JSON, which the gate will say."""
        try:
            return canonical.sha256([self.params.name, self.arguments])
        except canonical.NotJson:
            return ""

    @cached_property
    def word(self) -> Actor:
        """The user, as far as this client says so."""
        told = self.ctx.session.client_params
        return self.access.word(claim(told.client_info.name) if told else "")

    @property
    def asks_forms(self) -> bool:
        # An empty capability is from before there were two kinds, and means forms.
        return self._elicitation is not None and (self._elicitation.form is not None or not self.opens_urls)

    @property
    def opens_urls(self) -> bool:
        return self._elicitation is not None and self._elicitation.url is not None

    @property
    def _elicitation(self) -> types.ElicitationCapability | None:
        told = self.ctx.session.client_capabilities
        return told.elicitation if told else None

    def address_of(self, approval_id: UUID) -> str:
        """Of the page on which a signed-in person decides, under the name by which the client knows this server."""
        host = dict(self.scope["headers"])[b"host"].decode("latin-1")
        scheme = "https" if settings.HTTPS else self.scope.get("scheme", "http")
        return f"{scheme}://{host}{reverse('approval', args=[approval_id])}"
