from django.urls import path

from hitlchat.upstreams.ledger import history, views

urlpatterns = [
    path("s/<str:name>/tools/<uuid:tool_id>", views.tool, name="tool"),
    path("s/<str:name>/tools/<uuid:tool_id>/accept", views.accept, name="accept-tool"),
    path("s/<str:name>/tools/<uuid:tool_id>/stop", views.stop, name="stop-tool"),
    path("tools/by-alias/<str:alias>", views.by_alias, name="alias"),
    path("history", history.history, name="history"),
    path("history/<int:event_id>", history.event, name="event"),
]
