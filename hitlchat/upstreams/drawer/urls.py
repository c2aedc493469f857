from django.urls import path

from hitlchat.upstreams.drawer import views

urlpatterns = [
    path("tools", views.drawer, name="drawer"),
    path("tools/list", views.filtered, name="drawer-list"),
    path("tools/of/<str:name>", views.lines, name="drawer-lines"),
    path("tools/line/<uuid:tool_id>", views.line, name="drawer-line"),
    path("tools/details/<uuid:tool_id>", views.details, name="drawer-details"),
    path("tools/choices", views.choices, name="drawer-choices"),
    path("tools/check", views.check, name="drawer-check"),
]
