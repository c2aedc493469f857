from django.urls import path

from hitlchat.upstreams.oauth import views

urlpatterns = [
    path("s/<str:name>/sign-in", views.begin, name="sign-in"),
    path("s/<str:name>/sign-in/forget", views.forget, name="forget-sign-in"),
    path("callback/<uuid:server_id>", views.callback, name="callback"),
    path("client/<uuid:server_id>", views.client, name="client"),
]
