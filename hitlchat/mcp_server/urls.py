from django.urls import path

from hitlchat.mcp_server.inspector import views
from hitlchat.mcp_server.inspector import views as inspector
from hitlchat.mcp_server.pages import connect, tokens

app_name = "mcp"

_SESSION = "inspector/<uuid:session_id>"

urlpatterns = [
    path("tokens", tokens.tokens_page, name="tokens"),
    path("tokens/<int:token_id>/revoke", tokens.revoke, name="revoke"),
    path("tokens/<int:token_id>/attended", tokens.mark, name="mark"),
    path("connect", connect.connect, name="connect"),
    path("inspector", inspector.index, name="inspector"),
    path("inspector/connect", inspector.connect, name="inspector-connect"),
    path(_SESSION, inspector.session_page, name="inspector-session"),
    path(f"{_SESSION}/live", inspector.live, name="inspector-live"),
    path(f"{_SESSION}/tools/<str:name>", inspector.tool, name="inspector-tool"),
    path(f"{_SESSION}/tools/<str:name>/call", views.call, name="inspector-call"),
    path(f"{_SESSION}/calls/<int:number>/cancel", views.cancel, name="inspector-cancel"),
    path(f"{_SESSION}/questions/<int:number>/answer", views.answer, name="inspector-answer"),
    path(f"{_SESSION}/ping", views.ping, name="inspector-ping"),
    path(f"{_SESSION}/list", views.list_again, name="inspector-list"),
    path(f"{_SESSION}/end", views.end, name="inspector-end"),
]
