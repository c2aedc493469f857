from django.urls import path

from hitlchat.upstreams.pages import listing, server, testing

urlpatterns = [
    path("", listing.servers, name="list"),
    path("status", listing.status, name="status"),
    path("new", server.new, name="new"),
    path("test", testing.test, name="test"),
    path("risk", server.risk, name="risk"),
    path("s/<str:name>", server.server, name="server"),
    path("s/<str:name>/live", server.live, name="live"),
    path("s/<str:name>/reconnect", server.reconnect, name="reconnect"),
    path("s/<str:name>/enable", server.enable, name="enable"),
    path("s/<str:name>/delete", server.delete, name="delete"),
]
