"""Origins that may open a websocket here, and the address of a conversation's."""

from collections.abc import Awaitable, Callable
from typing import Any

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.urls import path

from hitlchat.chat.consumers import ConversationConsumer

Asgi = Callable[[Any, Any, Any], Awaitable[None]]


class OwnOriginOnly:
    """Checks the Origin of a websocket, which stands for a CSRF token (SR-24), with its port, as a browser sends our
    cookies to every port of a host. Origins that may post forms (CSRF_TRUSTED_ORIGINS) may open one too.
    """

    def __init__(self, application: Asgi) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        origin, host = (headers.get(name, b"").decode("latin-1").lower() for name in (b"origin", b"host"))
        if origin.partition("://")[2] == host or origin in settings.CSRF_TRUSTED_ORIGINS:
            await self._application(scope, receive, send)
        else:
            await WebsocketDenier()(scope, receive, send)


websocket_urlpatterns = [path("ws/conversations/<uuid:conversation_id>", ConversationConsumer.as_asgi())]
