"""The REST API: its routers, its page, and every error as a problem document (RFC 9457), whichever layer it is from."""

import json
import logging
from collections.abc import Callable
from functools import partial, wraps
from http import HTTPStatus
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse, RawPostDataException
from django.http.multipartparser import MultiPartParserError
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, re_path, reverse
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.openapi.docs import DocsBase
from ninja.parser import Parser
from ninja.responses import NinjaJSONEncoder
from pydantic.alias_generators import to_camel

from hitlchat.api import (
    agents,
    approvals,
    attachments,
    audit,
    calls,
    conversations,
    delegations,
    endpoints,
    insights,
    planted,
    policies,
    presets,
    questions,
    server_tools,
    servers,
    tools,
)
from hitlchat.api.ai_sdk import routes as ai_sdk
from hitlchat.api.auth import UNKNOWN, PersonalToken, Session
from hitlchat.base import canonical, database
from hitlchat.base.canonical import NotJson
from hitlchat.base.problems import Invalid, NotFound, Problem
from hitlchat.gate.decide import AlreadySettled
from hitlchat.gate.deciders import SignInAgain
from hitlchat.gate.loosening import NotConfirmed
from hitlchat.gate.models import Approval
from hitlchat.upstreams.servers import NotConfirmed as ProgramNotConfirmed
from tools_studio.authoring import NameTaken
from tools_studio.exchange import BadFile

# One sentence for what is not there and for what is someone else's (SR-21).
NOT_FOUND = "Nothing with this name or id exists, or it is not yours."
NOT_ACCEPTED = "Not accepted: unknown or read-only."

View = Callable[..., HttpResponseBase]

logger = logging.getLogger(__name__)


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
            is_page = pattern.name in ("openapi-json", "openapi-view")
            pattern.callback = _framed(require_safe(pattern.callback) if is_page else pattern.callback)
        return patterns


def problem(status: int, detail: str, **more: object) -> HttpResponse:
    document = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail, **more}
    text = json.dumps(document, cls=NinjaJSONEncoder)
    return HttpResponse(text, status=status, content_type="application/problem+json")


def _framed(view: View) -> View:
    """Wrap `view`, so that a 404 or 405 outside of any operation is a problem document too."""

    @wraps(view)
    def framed_view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            response = view(request, *args, **kwargs)
        except Http404:
            return problem(404, NOT_FOUND)
        if response.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
            return response
        refused = problem(405, f"This address does not answer {request.method}.")
        refused["Allow"] = response["Allow"]
        return refused

    return framed_view


def _nothing(request: HttpRequest) -> HttpResponseBase:
    raise Http404(f"{request.path} is not an address of the API")


def _answer(handle: Callable[[Any], HttpResponse], _request: HttpRequest, error: Any) -> HttpResponse:
    return handle(error)


def _unknown_caller(error: AuthenticationError) -> HttpResponse:
    response = problem(401, UNKNOWN if error.message == "Unauthorized" else error.message)
    response["WWW-Authenticate"] = "Bearer"
    return response


def _http(error: HttpError) -> HttpResponse:
    cause = f": {error.__cause__}" if isinstance(error.__cause__, NotJson) else ""
    return problem(error.status_code, f"{error}{cause}.".replace("..", "."))


def _invalid(error: ValidationError) -> HttpResponse:
    errors: dict[str, str] = {}
    for found in error.errors:
        # The first is the place (body, query), and in a body the second is its parameter.
        path = found["loc"][2:] if found["loc"][0] == "body" else found["loc"][1:]
        words = NOT_ACCEPTED if found["type"] == "extra_forbidden" else found["msg"].removeprefix("Value error, ")
        errors.setdefault(".".join(map(str, path)) or "body", words)
    return _fields(errors)


def _fields(errors: dict[str, str], status: int = 422, **more: object) -> HttpResponse:
    detail = " ".join(f"{name}: {words.rstrip('.')}." for name, words in errors.items())
    return problem(status, detail, errors=errors, **more)


def _problem(error: Problem, **more: object) -> HttpResponse:
    if isinstance(error, NotFound):
        return problem(404, NOT_FOUND)
    if error.code:
        more["code"] = error.code
    if not isinstance(error, Invalid):
        return problem(error.status, str(error), **more)
    errors, within = error.errors, error.within
    if within:
        errors = {name if name == within else f"{within}.{name}": words for name, words in errors.items()}
    else:
        # Only names of our own are spelt otherwise in a request.
        errors = {to_camel(name) if name.isidentifier() else name: words for name, words in errors.items()}
    return _fields(errors, error.status, **more)


def _settled(error: AlreadySettled) -> HttpResponse:
    now = approvals.approval(approvals.with_all(Approval.objects.all()).get(call=error.call))
    return _problem(error, approval=now.model_dump(by_alias=True))


def _bad_file(error: BadFile) -> HttpResponse:
    errors: dict[str, str] = {}
    for found in error.problems:
        place = f"document.{found.place}".rstrip(".")
        errors[place] = f"{errors[place]} {found.sentence}" if place in errors else found.sentence
    return problem(422, f"Nothing was imported. {error}".replace("\n", " "), errors=errors)


def _unforeseen(error: Exception) -> HttpResponse:
    if trouble := database.trouble(error):
        logger.error("An API request failed: the database is %s", trouble, exc_info=error)
        return problem(503, database.SENTENCES[trouble])
    logger.error("An API request failed", exc_info=error)
    return problem(500, "Something went wrong on the server. The error was logged.")


HANDLERS: Final[dict[type[Exception], Callable[[Any], HttpResponse]]] = {
    AuthenticationError: _unknown_caller,
    HttpError: _http,
    Http404: lambda _: problem(404, NOT_FOUND),
    ValidationError: _invalid,
    DataError: lambda _: problem(422, "A value is too large, or has a character that cannot be kept."),
    RequestDataTooBig: lambda _: problem(413, "The request is too large."),
    RawPostDataException: lambda _: problem(415, "Send the body as application/json."),
    MultiPartParserError: lambda _: problem(400, "The body is not well-formed multipart/form-data."),
    SuspiciousOperation: lambda _: problem(400, "The request is malformed."),
    Problem: _problem,
    AlreadySettled: _settled,
    SignInAgain: lambda error: _problem(error, signIn=reverse("sign-in-again")),
    NotConfirmed: lambda error: _fields({"confirmLowering": f"{error} Send true to confirm."}, 409),
    NameTaken: lambda error: problem(409, error.errors["name"], errors=error.errors),
    ProgramNotConfirmed: lambda error: _problem(error, commandLine=error.command_line),
    BadFile: _bad_file,
    Exception: _unforeseen,
}

api = RestApi(
    title="hitlchat",
    description="Errors are problem documents (RFC 9457). Bodies are strict: unknown fields are rejected.",
    version="1",
    docs=Docs(),
    auth=[PersonalToken(), Session()],
    parser=StrictParser(),
    urls_namespace="api",
)
for kind, handle in HANDLERS.items():
    api.add_exception_handler(kind, partial(_answer, handle))
api.add_router("/conversations", conversations.router)
api.add_router("/chat", ai_sdk.router)
api.add_router("/conversation-defaults", conversations.defaults_router)
api.add_router("", attachments.router)
api.add_router("/runs", calls.runs_router)
api.add_router("/approvals", approvals.router)
api.add_router("/calls", calls.router)
api.add_router("/looking-back", calls.looking_back_router)
api.add_router("/attention-checks", planted.router)
api.add_router("/grants", approvals.grants_router)
api.add_router("/delegations", delegations.router)
api.add_router("/policies", policies.router)
api.add_router("/questions", questions.router)
api.add_router("/tools", tools.router)
api.add_router("/tools", policies.rules_router)
api.add_router("", tools.files_router)
api.add_router("", policies.texts_router)
api.add_router("/servers", servers.router)
api.add_router("/servers", server_tools.router)
api.add_router("/exposure", servers.exposure_router)
api.add_router("/endpoints", endpoints.router)
api.add_router("/models", endpoints.models_router)
api.add_router("/second-opinion", endpoints.second_router)
api.add_router("/tool-sets", presets.tool_sets_router)
api.add_router("/presets", presets.router)
api.add_router("/agents", agents.router)
api.add_router("/audit", audit.router)
api.add_router("/insights", insights.router)
