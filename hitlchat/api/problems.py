"""Every error as a problem document (RFC 9457), whichever layer it comes from."""

import json
import logging
from collections.abc import Callable
from functools import partial, wraps
from http import HTTPStatus
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse, RawPostDataException
from django.http.response import HttpResponseBase
from django.urls import reverse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.responses import NinjaJSONEncoder
from pydantic.alias_generators import to_camel

from hitlchat.agent.runs import KeyReused, RunActive
from hitlchat.api import shapes
from hitlchat.api.auth import UNKNOWN
from hitlchat.api.server_changes import BadChange
from hitlchat.base import database
from hitlchat.base.canonical import NotJson
from hitlchat.gate import loosening, ruling
from hitlchat.gate.batch import NotTogether
from hitlchat.gate.decide import AlreadySettled, BadEdit, NoSuchApproval, OtherDigest
from hitlchat.gate.deciders import NotEntitled, SignInAgain
from hitlchat.gate.extending import NotNow
from hitlchat.gate.grants.giving import NoSuchGrant
from hitlchat.gate.grants.scope import BadGrant
from hitlchat.gate.models import Approval
from hitlchat.gate.quorum import AlreadyCounted
from hitlchat.gate.results import BadTexts
from hitlchat.gate.stopping import NoSuchCall
from hitlchat.upstreams import access
from hitlchat.upstreams.drafts import BadServer
from hitlchat.upstreams.elicitation.fields import BadAnswer
from hitlchat.upstreams.elicitation.questions import NoSuchQuestion, NotOpen
from hitlchat.upstreams.servers import NameTaken as ServerNameTaken
from hitlchat.upstreams.servers import NotConfirmed
from tools_studio.authoring import NameTaken
from tools_studio.drafts import AuthoringError, Unreadable
from tools_studio.exchange import BadFile, TooMuch
from tools_studio.loosening import OnlyPeople

logger = logging.getLogger(__name__)

# One sentence for what is not there and for what is someone else's (SR-21).
NOT_FOUND = "There is nothing here by this name or id, or it is not yours."
NOT_ACCEPTED = "Not accepted here: it is unknown, or read-only."

View = Callable[..., HttpResponseBase]
Handler = Callable[[Any], HttpResponse]


def problem(status: int, detail: str, **more: object) -> HttpResponse:
    document = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail, **more}
    text = json.dumps(document, cls=NinjaJSONEncoder)
    return HttpResponse(text, status=status, content_type="application/problem+json")


def framed(view: View) -> View:
    """`view` with the answers that come from outside of any operation as problems too."""

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


def install(api: NinjaAPI) -> None:
    for kind, handle in HANDLERS.items():
        api.add_exception_handler(kind, partial(_answer, handle))


def _answer(handle: Handler, _request: HttpRequest, error: Any) -> HttpResponse:
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
        said = NOT_ACCEPTED if found["type"] == "extra_forbidden" else found["msg"].removeprefix("Value error, ")
        errors.setdefault(".".join(map(str, path)) or "body", said)
    return _fields(errors)


def _fields(errors: dict[str, str], status: int = 422, **more: object) -> HttpResponse:
    detail = " ".join(f"{name}: {said.rstrip('.')}." for name, said in errors.items())
    return problem(status, detail, errors=errors, **more)


def _of_grant(part: str) -> str:
    return part if part == "grant" else f"grant.{part}"


def _settled(error: AlreadySettled) -> HttpResponse:
    standing = shapes.approval(shapes.with_all(Approval.objects.all()).get(call=error.call))
    return problem(409, str(error), approval=standing.model_dump(by_alias=True))


def _authoring(error: AuthoringError) -> HttpResponse:
    if isinstance(error, NameTaken):
        return problem(409, error.problems["name"], errors=error.problems)
    return _fields({to_camel(name): said for name, said in error.problems.items()})


def _server(error: BadServer) -> HttpResponse:
    errors = {to_camel(name): said for name, said in error.errors.items()}
    if isinstance(error, NotConfirmed):
        return _fields(errors, 409, commandLine=error.command_line)
    return _fields(errors, 409 if isinstance(error, ServerNameTaken) else 422)


def _bad_file(error: BadFile) -> HttpResponse:
    errors: dict[str, str] = {}
    for found in error.problems:
        place = f"document.{found.place}".rstrip(".")
        errors[place] = f"{errors[place]} {found.said}" if place in errors else found.said
    return problem(422, f"Nothing was imported. {error}".replace("\n", " "), errors=errors)


def _unforeseen(error: Exception) -> HttpResponse:
    if trouble := database.trouble(error):
        logger.error("An API request failed: the database is %s", trouble, exc_info=error)
        return problem(503, database.SENTENCES[trouble])
    logger.error("An API request failed", exc_info=error)
    return problem(500, "Something went wrong here. It has been logged.")


HANDLERS: Final[dict[type[Exception], Handler]] = {
    AuthenticationError: _unknown_caller,
    HttpError: _http,
    Http404: lambda _: problem(404, NOT_FOUND),
    ValidationError: _invalid,
    DataError: lambda _: problem(422, "A value is too large, or has a character that cannot be kept."),
    RequestDataTooBig: lambda _: problem(413, "The request is too large."),
    RawPostDataException: lambda _: problem(415, "Send the body as application/json."),
    SuspiciousOperation: lambda _: problem(400, "The request is malformed."),
    NoSuchApproval: lambda _: problem(404, NOT_FOUND),
    AlreadySettled: _settled,
    NotEntitled: lambda error: problem(403, str(error)),
    SignInAgain: lambda error: problem(403, str(error), signIn=reverse("sign-in-again")),
    AlreadyCounted: lambda error: problem(409, str(error)),
    ruling.OnlyAdministrators: lambda error: problem(403, str(error)),
    ruling.BadRules: lambda error: _fields({to_camel(name): said for name, said in error.problems.items()}),
    OtherDigest: lambda error: problem(409, str(error)),
    BadTexts: lambda error: _fields(error.problems),
    NotNow: lambda error: problem(409, str(error)),
    BadEdit: lambda error: _fields({"modifiedArguments": str(error)}),
    BadGrant: lambda error: _fields({_of_grant(name): said for name, said in error.errors.items()}),
    NoSuchGrant: lambda _: problem(404, NOT_FOUND),
    NotTogether: lambda error: _fields({"items": str(error)}),
    KeyReused: lambda error: _fields({"Idempotency-Key": str(error)}),
    RunActive: lambda error: problem(409, str(error)),
    NoSuchCall: lambda _: problem(404, NOT_FOUND),
    NoSuchQuestion: lambda _: problem(404, NOT_FOUND),
    NotOpen: lambda error: problem(409, str(error)),
    BadAnswer: lambda error: _fields({f"content.{name}": said for name, said in error.errors.items()}),
    AuthoringError: _authoring,
    OnlyPeople: lambda error: problem(403, str(error)),
    loosening.NotConfirmed: lambda error: _fields({"confirmLowering": f"{error} Send true to have it so."}, 409),
    Unreadable: lambda error: problem(409, str(error)),
    BadFile: _bad_file,
    TooMuch: lambda error: problem(422, str(error)),
    BadServer: _server,
    BadChange: lambda error: _fields(error.fields, error.status),
    access.OnlyAdministrators: lambda error: problem(403, str(error)),
    access.OnlyPeople: lambda error: problem(403, str(error)),
    Exception: _unforeseen,
}
