from django.urls import path

from hitlchat.mcp_server.pages import connect, tokens

urlpatterns = [
    path("tokens", tokens.tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke", tokens.revoke, name="revoke"),
    path("tokens/<int:token_id>/attended", tokens.mark, name="mark"),
    path("connect", connect.connect, name="connect"),
]
