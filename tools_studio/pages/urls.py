"""Addresses of the Studio beside the editor: a tool's versions and tests, files of tools, the pages for reading."""

from django.urls import path

from tools_studio.pages import cases, files, reference, status, versions

urlpatterns = [
    path("tools/<str:name>/versions", versions.listed, name="tool-versions"),
    path("tools/<str:name>/versions/<int:before>..<int:after>", versions.compared, name="tool-difference"),
    path("tools/<str:name>/versions/compare", versions.choose, name="choose-versions"),
    path("tools/<str:name>/versions/<int:number>/restore", versions.restore, name="restore-version"),
    path("tools/<str:name>/cases", cases.listed, name="tool-cases"),
    path("tools/<str:name>/cases/add", cases.add, name="add-case"),
    path("tools/<str:name>/cases/run", cases.run, name="run-cases"),
    path("tools/<str:name>/cases/<int:case_id>", cases.settled, name="case-outcome"),
    path("tools/<str:name>/cases/<int:case_id>/delete", cases.delete, name="delete-case"),
    path("import", files.import_page, name="import-tools"),
    path("export", files.export_page, name="export-tools"),
    path("sandbox", status.page, name="sandbox-status"),
    path("python", reference.page, name="tool-python"),
]
