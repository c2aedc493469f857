from django.urls import path

from hitlchat.mcp_server import views
from hitlchat.mcp_server.inspector import views as inspector

app_name = "mcp"

_SESSION = "inspector/<uuid:session_id>"

urlpatterns = [
    path("tokens", views.tokens_page, name="tokens"),
    path("tokens/<int:token_id>/revoke", views.revoke, name="revoke"),
    path("tokens/<int:token_id>/attended", views.mark, name="mark"),
    path("connect", views.connect, name="connect"),
    path("inspector", inspector.index, name="inspector"),
    path("inspector/connect", inspector.connect, name="inspector-connect"),
    path(_SESSION, inspector.page, name="inspector-session"),
    path(f"{_SESSION}/live", inspector.live, name="inspector-live"),
    path(f"{_SESSION}/tools/<str:name>", inspector.page, name="inspector-tool"),
    path(f"{_SESSION}/tools/<str:name>/call", inspector.call, name="inspector-call"),
    path(f"{_SESSION}/calls/<int:number>/cancel", inspector.act, {"action": "cancel"}, name="inspector-cancel"),
    path(f"{_SESSION}/questions/<int:number>/answer", inspector.act, {"action": "answer"}, name="inspector-answer"),
    path(f"{_SESSION}/ping", inspector.act, {"action": "ping"}, name="inspector-ping"),
    path(f"{_SESSION}/list", inspector.act, {"action": "list"}, name="inspector-list"),
    path(f"{_SESSION}/end", inspector.act, {"action": "end"}, name="inspector-end"),
]
