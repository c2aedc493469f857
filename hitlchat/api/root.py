"""The REST API: its routers, its page, and what holds for all of them."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, re_path
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase
from ninja.parser import Parser

from hitlchat.api import (
    agents,
    approvals,
    attachments,
    audit,
    calls,
    conversations,
    endpoints,
    grants,
    policies,
    presets,
    problems,
    questions,
    server_tools,
    servers,
    texts,
    tool_sets,
    tools,
)
from hitlchat.api.ai_sdk import routes as ai_sdk
from hitlchat.api.auth import PersonalToken, Session
from hitlchat.base import canonical


class StrictParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        return canonical.loads(request.body)


class Docs(DocsBase):
    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        swagger = {"url": self.get_openapi_url(api, kwargs), "layout": "BaseLayout", "deepLinking": True}
        return render(request, "api/docs.html", {"swagger": swagger})


class RestApi(NinjaAPI):
    def _get_urls(self) -> list[URLResolver | URLPattern]:
        patterns = [*super()._get_urls(), re_path("", _nothing)]
        for pattern in patterns:
            assert isinstance(pattern, URLPattern)
            pattern.callback = problems.framed(pattern.callback)
        return patterns


def _nothing(request: HttpRequest) -> HttpResponseBase:
    raise Http404(f"{request.path} is no address of the API")


api = RestApi(
    title="hitlchat",
    description="Errors are problem documents (RFC 9457). Bodies are strict: what is unknown here is refused.",
    version="1",
    docs=Docs(),
    auth=[PersonalToken(), Session()],
    parser=StrictParser(),
    urls_namespace="api",
)
problems.install(api)
api.add_router("/conversations", conversations.router)
api.add_router("/chat", ai_sdk.router)
api.add_router("/conversation-defaults", conversations.defaults_router)
api.add_router("", attachments.router)
api.add_router("/runs", calls.runs_router)
api.add_router("/approvals", approvals.router)
api.add_router("/calls", calls.router)
api.add_router("/grants", grants.router)
api.add_router("/policies", policies.router)
api.add_router("/questions", questions.router)
api.add_router("/tools", tools.router)
api.add_router("/tools", policies.rules_router)
api.add_router("", tools.files_router)
api.add_router("", texts.router)
api.add_router("/servers", servers.router)
api.add_router("/servers", server_tools.router)
api.add_router("/exposure", servers.exposure_router)
api.add_router("/endpoints", endpoints.router)
api.add_router("/models", endpoints.models_router)
api.add_router("/tool-sets", tool_sets.router)
api.add_router("/presets", presets.router)
api.add_router("/agents", agents.router)
api.add_router("/audit", audit.router)
