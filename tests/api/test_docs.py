"""The description of the API, and the page that shows it."""

import re
from typing import Any

from django.contrib.staticfiles import finders
from django.test import Client

CONTRACT = {
    "/api/conversations": {"get", "post"},
    "/api/conversations/{conversation_id}": {"get"},
    "/api/conversations/{conversation_id}/messages": {"post"},
    "/api/runs/{run_id}": {"get"},
    "/api/runs/{run_id}/stop": {"post"},
    "/api/approvals": {"get"},
    "/api/approvals/{approval_id}": {"get"},
    "/api/approvals/{approval_id}/approve": {"post"},
    "/api/approvals/{approval_id}/reject": {"post"},
    "/api/calls": {"get"},
    "/api/calls/{call_id}": {"get"},
    "/api/tools": {"get", "post"},
    "/api/tools/{name}": {"get", "patch", "delete"},
    "/api/tools/{name}/test": {"post"},
    "/api/tools/{name}/publish": {"post"},
    "/api/tools/{name}/unpublish": {"post"},
    "/api/audit": {"get"},
}


def test_the_description_has_every_operation_of_the_contract(client: Client) -> None:
    found: dict[str, dict[str, Any]] = client.get("/api/openapi.json").json()["paths"]
    assert {path: set(methods) for path, methods in found.items()} == CONTRACT


def test_every_operation_needs_a_credential(client: Client) -> None:
    found: dict[str, dict[str, Any]] = client.get("/api/openapi.json").json()["paths"]
    operations = [operation for methods in found.values() for operation in methods.values()]
    assert all(operation["security"] for operation in operations)


def test_the_description_speaks_camel_case(client: Client) -> None:
    schemas = client.get("/api/openapi.json").json()["components"]["schemas"]
    names = {name for schema in schemas.values() for name in schema.get("properties", {})}
    assert {name for name in names if "_" in name} == set()


def test_the_page_keeps_to_its_own_origin_and_has_no_script_inside(client: Client) -> None:
    page = client.get("/api/docs")
    html = page.content.decode()
    assert "script-src 'self'" in page["Content-Security-Policy"]
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", html)
    assert all("src=" in tag or "application/json" in tag for tag in re.findall(r"<script[^>]*>", html))
    for path in re.findall(r'(?:src|href)="/static/([^"]+)"', html):
        assert finders.find(path), path
