from django.urls import path

from tools_studio.pages import editor, files, reference, status, trying, versions

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
    path("tools/<str:name>/versions", versions.listed, name="tool-versions"),
    path("tools/<str:name>/versions/<int:before>..<int:after>", versions.compared, name="tool-difference"),
    path("tools/<str:name>/versions/compare", versions.choose, name="choose-versions"),
    path("tools/<str:name>/versions/<int:number>/restore", versions.restore, name="restore-version"),
    path("tools/<str:name>/cases", trying.listed, name="tool-cases"),
    path("tools/<str:name>/cases/add", trying.add, name="add-case"),
    path("tools/<str:name>/cases/run", trying.run, name="run-cases"),
    path("tools/<str:name>/cases/<int:case_id>", trying.settled, name="case-outcome"),
    path("tools/<str:name>/cases/<int:case_id>/delete", trying.delete, name="delete-case"),
    path("import", files.import_page, name="import-tools"),
    path("export", files.export_page, name="export-tools"),
    path("sandbox", status.page, name="sandbox-status"),
    path("python", reference.page, name="tool-python"),
]
