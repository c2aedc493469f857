from django.urls import include, path

from hitlchat import health, violations
from hitlchat.api.root import api
from hitlchat.chat.administering import AgentPages, EndpointPages, PresetPages, ToolSetPages
from hitlchat.telemetry import metrics

handler500 = "hitlchat.health.server_error"

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("csp-report", violations.report),
    path("metrics", metrics.page, name="metrics"),
    path("api/", api.urls),
    path("", include("hitlchat.accounts.sign_in")),
    path("", include("hitlchat.people.views")),
    path("", include("hitlchat.approvals.urls")),
    path("record/", include("hitlchat.record.views")),
    path("insights/", include("hitlchat.insights.views")),
    path("notices/", include("hitlchat.notices.views")),
    path("studio/agents/", include(AgentPages().included)),
    path("studio/project/", include("hitlchat.project_tools.views")),
    path("studio/", include("tools_studio.urls")),
    path("servers/", include("hitlchat.upstreams.urls")),
    path("models/", include(EndpointPages().included)),
    path("tool-sets/", include(ToolSetPages().included)),
    path("presets/", include(PresetPages().included)),
    path("mcp-access/", include("hitlchat.mcp_server.views")),
    path("", include("hitlchat.chat.urls")),
]
