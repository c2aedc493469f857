"""The pages of the Inspector: what a session does shows in its page once it has come about."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from hitlchat.accounts.access import person
from hitlchat.base import canonical
from hitlchat.mcp_server.inspector import connecting, page
from hitlchat.mcp_server.inspector.connecting import Connecting
from hitlchat.mcp_server.inspector.sessions import Session, TooMany, Wish, sessions
from tools_studio import argument_form

View = Callable[..., HttpResponseBase]

NOWHERE = "This process does not know the port at which it listens, so that it cannot connect to itself."


def of_session(view: Callable[..., HttpResponseBase]) -> View:
    """Gives the view the session of the path; says so when it is not here."""

    @login_required
    @wraps(view)
    def guarded(request: HttpRequest, session_id: UUID, *args: Any, **kwargs: Any) -> HttpResponseBase:
        found = sessions.find(session_id, person(request).pk)
        if found is not None:
            return view(request, found, *args, **kwargs)
        return render(request, "mcp/inspector/away.html", {"is_part": page.is_part(request)}, status=404)

    return guarded


def posted(view: View) -> View:
    """A POST does it. Who comes by GET has signed in again in between, say, and is led to the page with the button."""

    @require_http_methods(["GET", "HEAD", "POST"])
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "POST":
            return view(request, *args, **kwargs)
        name = "mcp:inspector-session" if "session_id" in kwargs else "mcp:inspector"
        return HttpResponseRedirect(reverse(name, args=[each for each in [kwargs.get("session_id")] if each]))

    return guarded


@require_GET
@login_required
def index(request: HttpRequest) -> HttpResponse:
    initial = {"era": "2026-07-28", "elicits": "yes", "token": "made", "ceiling": 5, "without_elicitation": "deny"}
    return _index(request, Connecting(person(request), initial=initial))


@posted
@login_required
def connect(request: HttpRequest) -> HttpResponse:
    form = Connecting(person(request), request.POST)
    if not form.is_valid():
        return _index(request, form, status=422)
    chosen, owner = form.cleaned_data, person(request).pk
    try:
        sessions.check(owner)
        where = connecting.address(request)
        session = sessions.begin(Wish(owner, chosen["era"], chosen["elicits"], form.get_pass(), where))
    except TooMany as error:
        return _index(request, form, str(error), status=409)
    except connecting.Unreachable:
        return _index(request, form, NOWHERE, status=409)
    return HttpResponseRedirect(reverse("mcp:inspector-session", args=[session.id]))


@require_GET
@of_session
def session_page(request: HttpRequest, session: Session) -> HttpResponse:
    return _session(request, session, request.GET.get("tool", ""))


@require_GET
@of_session
def live(request: HttpRequest, session: Session) -> HttpResponse:
    """Return what changed since the page last looked; 204 if nothing did.

    A session that is over always says so: that is what ends the looking.
    """
    said = request.GET.get("seen", "0")
    seen = int(said) if said.isdigit() and len(said) < 10 else 0
    if session.is_open and seen and seen >= session.recording.last:
        return HttpResponse(status=204)
    return render(request, "mcp/inspector/_changes.html", page.since(session, seen))


@require_GET
@of_session
def tool(request: HttpRequest, session: Session, name: str) -> HttpResponse:
    if not page.is_part(request):
        return _session(request, session, name)
    return render(request, "mcp/inspector/_tool.html", {"session": session, **page.pane(session, name)})


def _index(request: HttpRequest, form: Connecting, problem: str = "", status: int = 200) -> HttpResponse:
    own = sessions.of(person(request).pk)
    return render(request, "mcp/inspector/index.html", {"form": form, "problem": problem, "own": own}, status=status)


def _session(request: HttpRequest, session: Session, open_tool: str) -> HttpResponse:
    return render(request, "mcp/inspector/session.html", page.whole(session, open_tool))


ANSWERS = ("accept", "decline", "cancel")
LOOK = "inspector-look"
OVER = "The session is over: nothing was called."


class BadArguments(ValueError):
    """The text makes no arguments; why, in a sentence."""


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
