from django.urls import path

from hitlchat.mcp_server.inspector import doing, views

_SESSION = "inspector/<uuid:session_id>"

urlpatterns = [
    path("inspector", views.index, name="inspector"),
    path("inspector/connect", views.connect, name="inspector-connect"),
    path(_SESSION, views.session_page, name="inspector-session"),
    path(f"{_SESSION}/live", views.live, name="inspector-live"),
    path(f"{_SESSION}/tools/<str:name>", views.tool, name="inspector-tool"),
    path(f"{_SESSION}/tools/<str:name>/call", doing.call, name="inspector-call"),
    path(f"{_SESSION}/calls/<int:number>/cancel", doing.cancel, name="inspector-cancel"),
    path(f"{_SESSION}/questions/<int:number>/answer", doing.answer, name="inspector-answer"),
    path(f"{_SESSION}/ping", doing.ping, name="inspector-ping"),
    path(f"{_SESSION}/list", doing.list_again, name="inspector-list"),
    path(f"{_SESSION}/end", doing.end, name="inspector-end"),
]
