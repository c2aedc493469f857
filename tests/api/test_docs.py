"""The description of the API, and the page that shows it."""

import re

from django.contrib.staticfiles import finders
from django.test import Client

from tests.api.described import description

CONTRACT = {
    "/api/conversations": {"get", "post"},
    "/api/conversation-defaults": {"get", "patch"},
    "/api/conversations/{conversation_id}": {"get", "patch", "delete"},
    "/api/conversations/{conversation_id}/messages": {"get", "post"},
    "/api/conversations/{conversation_id}/messages/{message_id}/edit": {"post"},
    "/api/conversations/{conversation_id}/messages/{message_id}/regenerate": {"post"},
    "/api/conversations/{conversation_id}/messages/{message_id}/show": {"post"},
    "/api/conversations/{conversation_id}/messages/{message_id}/undo": {"post"},
    "/api/conversations/{conversation_id}/messages/{message_id}/redo": {"post"},
    "/api/attachments/{attachment_id}": {"get", "delete"},
    "/api/conversations/{conversation_id}/attachments": {"get", "post"},
    "/api/conversations/{conversation_id}/export": {"get"},
    "/api/chat": {"post"},
    "/api/chat/{conversation_id}": {"get"},
    "/api/chat/{conversation_id}/stream": {"get"},
    "/api/chat/{conversation_id}/submit-tool-result": {"post"},
    "/api/runs/{run_id}": {"get"},
    "/api/runs/{run_id}/stop": {"post"},
    "/api/approvals": {"get"},
    "/api/approvals/{approval_id}": {"get"},
    "/api/approvals/{approval_id}/approve": {"post"},
    "/api/approvals/{approval_id}/reject": {"post"},
    "/api/approvals/{approval_id}/take-back": {"post"},
    "/api/looking-back": {"get"},
    "/api/looking-back/{call_id}": {"post"},
    "/api/attention-checks": {"get"},
    "/api/attention-checks/announcement": {"get", "put", "delete"},
    "/api/approvals/{approval_id}/on-it": {"post", "delete"},
    "/api/approvals/{approval_id}/why": {"post"},
    "/api/approvals/{approval_id}/extend": {"post"},
    "/api/delegations": {"get", "post"},
    "/api/delegations/{delegation_id}": {"delete"},
    "/api/texts": {"get", "put"},
    "/api/tools/{name}/texts": {"get", "put"},
    "/api/approvals/batch": {"post"},
    "/api/calls": {"get"},
    "/api/calls/{call_id}": {"get"},
    "/api/calls/{call_id}/stop": {"post"},
    "/api/grants": {"get"},
    "/api/grants/{grant_id}/revoke": {"post"},
    "/api/questions": {"get"},
    "/api/questions/{question_id}": {"get"},
    "/api/questions/{question_id}/answer": {"post"},
    "/api/questions/{question_id}/decline": {"post"},
    "/api/tools": {"get", "post"},
    "/api/tools/{name}": {"get", "patch", "delete"},
    "/api/tools/{name}/test": {"post"},
    "/api/tools/{name}/publish": {"post"},
    "/api/tools/{name}/unpublish": {"post"},
    "/api/tools/{name}/rules": {"get", "put"},
    "/api/tools/{name}/versions": {"get"},
    "/api/tools/{name}/versions/{number}": {"get"},
    "/api/tools/{name}/versions/{number}/restore": {"post"},
    "/api/tools/{name}/cases": {"get", "post"},
    "/api/tools/{name}/cases/{case_id}": {"delete"},
    "/api/tools/{name}/cases/run": {"post"},
    "/api/tools-export": {"get"},
    "/api/tools-import": {"post"},
    "/api/servers": {"get", "post"},
    "/api/servers/{name}": {"get", "patch", "delete"},
    "/api/servers/{name}/test": {"post"},
    "/api/servers/{name}/reconnect": {"post"},
    "/api/servers/{name}/tools": {"get", "put"},
    "/api/servers/{name}/tools/{tool}": {"get", "put"},
    "/api/servers/{name}/tools/{tool}/accept": {"post"},
    "/api/servers/{name}/tools/{tool}/history": {"get"},
    "/api/models": {"get"},
    "/api/endpoints": {"get", "post"},
    "/api/endpoints/{name}": {"get", "patch", "delete"},
    "/api/endpoints/{name}/test": {"post"},
    "/api/endpoints/{name}/models": {"get"},
    "/api/second-opinion": {"get", "put"},
    "/api/tool-sets": {"get", "post"},
    "/api/tool-sets/{name}": {"get", "patch", "delete"},
    "/api/presets": {"get", "post"},
    "/api/presets/{name}": {"get", "patch", "delete"},
    "/api/agents": {"get", "post"},
    "/api/agents/{name}": {"get", "patch", "delete"},
    "/api/exposure": {"get", "put"},
    "/api/audit": {"get"},
    "/api/audit/seals": {"get"},
    "/api/insights/report": {"get"},
    "/api/policies/simulate": {"post"},
    "/api/policies/replay": {"post"},
    "/api/policies/earned": {"get"},
    "/api/policies/drafts": {"get", "post"},
    "/api/policies/drafts/{draft_id}": {"get", "delete"},
    "/api/policies/drafts/{draft_id}/compare": {"post"},
    "/api/policies/drafts/{draft_id}/publish": {"post"},
}


def test_the_description_has_every_operation_of_the_contract(client: Client) -> None:
    assert client.get("/api/openapi.json").json() == description()
    assert {path: set(methods) for path, methods in description()["paths"].items()} == CONTRACT


def test_every_operation_needs_a_credential() -> None:
    operations = [operation for methods in description()["paths"].values() for operation in methods.values()]
    assert all(operation["security"] for operation in operations)


def test_the_description_speaks_camel_case() -> None:
    schemas = description()["components"]["schemas"]
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
