from django.urls import path

from hitlchat.approvals.inbox.socket import InboxConsumer

websocket_urlpatterns = [path("ws/inbox", InboxConsumer.as_asgi())]
