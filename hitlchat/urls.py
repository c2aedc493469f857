from django.urls import include, path

from hitlchat import health
from hitlchat.api.root import api

handler500 = "hitlchat.health.server_error"

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("", include("hitlchat.telemetry.urls")),
    path("api/", api.urls),
    path("", include("hitlchat.accounts.urls")),
    path("", include("hitlchat.people.urls")),
    path("", include("hitlchat.approvals.urls")),
    path("record/", include("hitlchat.record.urls")),
    path("insights/", include("hitlchat.insights.urls")),
    path("notices/", include("hitlchat.notices.urls")),
    path("studio/project/", include("hitlchat.project_tools.urls")),
    path("studio/", include("tools_studio.urls")),
    path("servers/", include("hitlchat.upstreams.urls")),
    path("mcp-access/", include("hitlchat.mcp_server.urls")),
    path("", include("hitlchat.chat.urls")),
]
