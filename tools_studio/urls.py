from django.urls import path

from tools_studio.pages import editor, exchange, status, trials, versions

urlpatterns = [
    path("", editor.studio, name="studio"),
    path("inspect", editor.inspect, name="inspect-tool"),
    path("new", editor.new, name="new-tool"),
    path("tools/<str:name>", editor.tool, name="tool"),
    path("tools/<str:name>/publish", editor.publish, name="publish-tool"),
    path("tools/<str:name>/delete", editor.delete, name="delete-tool"),
    path("tools/<str:name>/open-calls", editor.open_calls, name="tool-open-calls"),
    path("tools/<str:name>/test", trials.test, name="test-tool"),
    path("tools/<str:name>/test/<uuid:call_id>", trials.console, name="test-console"),
    path("tools/<str:name>/preview", trials.preview, name="preview-tool"),
    path("tools/<str:name>/versions", versions.listed, name="tool-versions"),
    path("tools/<str:name>/versions/<int:before>..<int:after>", versions.compared, name="tool-difference"),
    path("tools/<str:name>/versions/compare", versions.choose, name="choose-versions"),
    path("tools/<str:name>/versions/<int:number>/restore", versions.restore, name="restore-version"),
    path("tools/<str:name>/cases", trials.listed, name="tool-cases"),
    path("tools/<str:name>/cases/add", trials.add, name="add-case"),
    path("tools/<str:name>/cases/run", trials.run, name="run-cases"),
    path("tools/<str:name>/cases/<int:case_id>", trials.settled, name="case-outcome"),
    path("tools/<str:name>/cases/<int:case_id>/delete", trials.delete, name="delete-case"),
    path("import", exchange.import_page, name="import-tools"),
    path("export", exchange.export_page, name="export-tools"),
    path("sandbox", status.page, name="sandbox-status"),
]
