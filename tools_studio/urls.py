from django.urls import path

from tools_studio import views

urlpatterns = [
    path("", views.studio, name="studio"),
    path("inspect", views.inspect, name="inspect-tool"),
    path("new", views.new, name="new-tool"),
    path("tools/<str:name>", views.tool, name="tool"),
    path("tools/<str:name>/publish", views.publish, name="publish-tool"),
    path("tools/<str:name>/delete", views.delete, name="delete-tool"),
    path("tools/<str:name>/test", views.test, name="test-tool"),
]
