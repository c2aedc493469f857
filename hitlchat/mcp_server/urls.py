from django.urls import include, path

app_name = "mcp"

urlpatterns = [
    path("", include("hitlchat.mcp_server.pages.urls")),
    path("", include("hitlchat.mcp_server.inspector.urls")),
]
