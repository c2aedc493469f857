from django.urls import include, path

from tools_studio.pages import editor, trying

urlpatterns = [
    path("", editor.studio, name="studio"),
    path("inspect", editor.inspect, name="inspect-tool"),
    path("new", editor.new, name="new-tool"),
    path("tools/<str:name>", editor.tool, name="tool"),
    path("tools/<str:name>/publish", editor.publish, name="publish-tool"),
    path("tools/<str:name>/delete", editor.delete, name="delete-tool"),
    path("tools/<str:name>/test", trying.test, name="test-tool"),
    path("tools/<str:name>/test/<uuid:call_id>", trying.console, name="test-console"),
    path("tools/<str:name>/preview", trying.preview, name="preview-tool"),
    path("", include("tools_studio.pages.urls")),
]
