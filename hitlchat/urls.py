from django.urls import include, path

from hitlchat import health
from hitlchat.api.root import api

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("api/", api.urls),
    path("", include("hitlchat.accounts.urls")),
    path("", include("hitlchat.approvals.urls")),
    path("studio/", include("tools_studio.urls")),
    path("", include("hitlchat.chat.urls")),
]
