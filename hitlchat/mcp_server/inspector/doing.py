"""What the page of a session has done: everything begins at once and shows in the page once it has come about."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse

from hitlchat.base import canonical
from hitlchat.mcp_server.inspector import page
from hitlchat.mcp_server.inspector.sessions import Session, sessions
from hitlchat.mcp_server.inspector.views import of_session, posted
from tools_studio import argument_form

ANSWERS = ("accept", "decline", "cancel")
LOOK = "inspector-look"
OVER = "The session is over: nothing was called."


class BadArguments(ValueError):
    """What was typed makes no arguments; why, in a sentence."""


@posted
@of_session
def call(request: HttpRequest, session: Session, name: str) -> HttpResponse:
    """Call the tool with the fields of the form, or with `json`."""
    try:
        arguments = _arguments(session, name, request.POST)
    except BadArguments as error:
        return _refused(request, session, name, str(error))
    session.touch()
    sessions.do(lambda: session.acting.call(name, arguments))
    return _begun(request, session, name)


@posted
@of_session
def cancel(request: HttpRequest, session: Session, number: int) -> HttpResponse:
    session.touch()
    sessions.do(lambda: session.acting.cancel(number))
    return _begun(request, session)


@posted
@of_session
def answer(request: HttpRequest, session: Session, number: int) -> HttpResponse:
    """Answer the elicitation as the client's user: it says no more than any client's word does."""
    action = request.POST.get("action", "")
    if action not in ANSWERS:
        return HttpResponse("action: expected accept, decline or cancel.", status=422)
    session.touch()
    sessions.do(lambda: session.acting.answer(number, action))
    return _begun(request, session)


@posted
@of_session
def ping(request: HttpRequest, session: Session) -> HttpResponse:
    session.touch()
    sessions.do(session.acting.ping)
    return _begun(request, session)


@posted
@of_session
def list_again(request: HttpRequest, session: Session) -> HttpResponse:
    session.touch()
    sessions.do(session.acting.list_again)
    return _begun(request, session)


@posted
@of_session
def end(request: HttpRequest, session: Session) -> HttpResponse:
    sessions.do(lambda: session.end(by_person=True))
    return _begun(request, session)


def _arguments(session: Session, name: str, typed: QueryDict) -> dict[str, Any]:
    found = page.tool_named(session, name)
    if not session.is_open or found is None:
        raise BadArguments("The tool is not in the list any more: nothing was called." if session.is_open else OVER)
    try:
        if "json" not in typed and page.form_fields(found.input_schema) is not None:
            return argument_form.arguments(found.input_schema, typed)
        arguments = canonical.loads(typed.get("json", ""))
    except argument_form.BadInput as error:
        raise BadArguments(str(error)) from error
    except canonical.NotJson as error:
        raise BadArguments(f"That is not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise BadArguments('Arguments are a JSON object, such as {"text": "hello"}.')
    return arguments


def _begun(request: HttpRequest, session: Session, name: str = "") -> HttpResponse:
    if page.is_part(request):
        return HttpResponse(status=204, headers={"HX-Trigger": LOOK})
    to = ("mcp:inspector-tool", [session.id, name]) if name else ("mcp:inspector-session", [session.id])
    return HttpResponseRedirect(reverse(to[0], args=to[1]))


def _refused(request: HttpRequest, session: Session, name: str, problem: str) -> HttpResponse:
    if page.is_part(request):
        # htmx shows only answers that say that all is well.
        shown = {"session": session, **page.pane(session, name, request.POST), "problem": problem}
        return render(request, "mcp/inspector/_tool.html", shown)
    shown = {**page.whole(session, name, request.POST), "problem": problem}
    return render(request, "mcp/inspector/session.html", shown, status=422)
