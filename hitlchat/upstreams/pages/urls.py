from django.urls import path

from hitlchat.upstreams.pages import acting, editing, listing, risk, testing

urlpatterns = [
    path("", listing.servers, name="list"),
    path("status", listing.status, name="status"),
    path("new", editing.new, name="new"),
    path("test", testing.test, name="test"),
    path("risk", risk.risk, name="risk"),
    path("s/<str:name>", editing.server, name="server"),
    path("s/<str:name>/live", editing.live, name="live"),
    path("s/<str:name>/reconnect", acting.reconnect, name="reconnect"),
    path("s/<str:name>/enable", acting.enable, name="enable"),
    path("s/<str:name>/delete", acting.delete, name="delete"),
]
