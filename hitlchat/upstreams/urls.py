from django.urls import include, path

app_name = "servers"

urlpatterns = [
    path("", include("hitlchat.upstreams.pages.urls")),
    path("", include("hitlchat.upstreams.drawer.urls")),
    path("", include("hitlchat.upstreams.ledger.urls")),
    path("", include("hitlchat.upstreams.gallery.urls")),
    path("", include("hitlchat.upstreams.oauth.urls")),
    path("", include("hitlchat.upstreams.elicitation.urls")),
]
