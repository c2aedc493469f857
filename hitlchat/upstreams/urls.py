from django.urls import path

from hitlchat.upstreams.pages import drawer, ledger, questions, server, sign_in

app_name = "servers"

urlpatterns = [
    path("", server.servers_page, name="list"),
    path("status", server.status, name="status"),
    path("new", server.new, name="new"),
    path("test", server.test, name="test"),
    path("risk", server.risk, name="risk"),
    path("s/<str:name>", server.server, name="server"),
    path("s/<str:name>/live", server.live, name="live"),
    path("s/<str:name>/reconnect", server.reconnect, name="reconnect"),
    path("s/<str:name>/enable", server.enable, name="enable"),
    path("s/<str:name>/delete", server.delete, name="delete"),
    path("tools", drawer.drawer, name="drawer"),
    path("tools/list", drawer.filtered, name="drawer-list"),
    path("tools/of/<str:name>", drawer.lines, name="drawer-lines"),
    path("tools/details/<uuid:tool_id>", drawer.details, name="drawer-details"),
    path("tools/require", drawer.require, name="drawer-require"),
    path("tools/check/<str:name>", drawer.check, name="drawer-check"),
    path("s/<str:name>/tools/<uuid:tool_id>", ledger.tool, name="tool"),
    path("s/<str:name>/tools/<uuid:tool_id>/accept", ledger.accept, name="accept-tool"),
    path("s/<str:name>/tools/<uuid:tool_id>/stop", ledger.stop, name="stop-tool"),
    path("tools/by-alias/<str:alias>", ledger.by_alias, name="alias"),
    path("history", ledger.history, name="history"),
    path("history/<int:event_id>", ledger.event, name="event"),
    path("gallery", server.gallery_page, name="gallery"),
    path("s/<str:name>/sign-in", sign_in.begin, name="sign-in"),
    path("s/<str:name>/sign-in/forget", sign_in.forget, name="forget-sign-in"),
    path("callback/<uuid:server_id>", sign_in.callback, name="callback"),
    path("client/<uuid:server_id>", sign_in.client, name="client"),
    path("questions/", questions.listed, {"template": "servers/questions/page.html"}, name="questions"),
    path("questions/waiting", questions.listed, {"template": "servers/questions/_all.html"}, name="questions-waiting"),
    path("questions/<uuid:question_id>", questions.question, name="question"),
    path("questions/<uuid:question_id>/answer", questions.answer, name="answer-question"),
    path("questions/<uuid:question_id>/decline", questions.decline, name="decline-question"),
]
