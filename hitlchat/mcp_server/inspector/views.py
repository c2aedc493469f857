"""The pages of the Inspector: what a session does shows in its page once it has come about."""

from contextlib import suppress
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from django import forms
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.validators import RegexValidator
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_http_methods, require_safe
from django_htmx.http import HTMX_STOP_POLLING

from hitlchat.accounts.access import HtmxRequest, person
from hitlchat.accounts.models import Token, TokenKind, hashed
from hitlchat.accounts.roles import may_administer
from hitlchat.base import canonical
from hitlchat.base.background import background
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.mcp_server import inspector as sessions
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.inspector import MODES, PARTS, Call, Session, shown
from hitlchat.mcp_server.models import WithoutElicitation
from hitlchat.mcp_server.server import PATH
from tools_studio import argument_form

# Of the token made for a session, which ends before if its person ends it.
LASTS: Final = timedelta(hours=1)
NAME: Final = "Inspector, for one session"
# In the words of the form of a new token.
WAYS: Final = (
    (WithoutElicitation.DENY.value, gettext_noop("Refuse it")),
    (WithoutElicitation.INBOX.value, gettext_noop("Ask me here, and let it wait")),
    (WithoutElicitation.URL.value, gettext_noop("Give it a link")),
)
ANSWERS: Final = ("accept", "decline", "cancel")


class SessionForm(forms.Form):
    era = forms.ChoiceField(choices=[(era, era) for era in MODES], initial="2026-07-28")
    elicits = forms.TypedChoiceField(
        choices=[("yes", ""), ("no", "")], coerce=lambda value: value == "yes", initial="yes"
    )
    secret = forms.CharField(
        required=False,
        validators=[
            RegexValidator(r"\Ahitl_mcp_", gettext_noop("Give a token of kind MCP: it begins with hitl_mcp_.")),
            RegexValidator(
                r"\A(?!hitl_mcp_)|\A[A-Za-z0-9_-]{29,109}\Z",
                gettext_noop("This is not all of a token, or more than one: copy its whole text."),
            ),
        ],
    )
    without_elicitation = forms.ChoiceField(choices=WAYS, initial=WithoutElicitation.DENY.value)
    attended = forms.BooleanField(required=False)

    def __init__(self, user: User, data: QueryDict | None = None) -> None:
        super().__init__(data)
        if not may_administer(user):
            del self.fields["attended"]


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def index(request: HttpRequest) -> HttpResponse:
    """Show the form of a session, or begin one, which takes the place of the one before."""
    user = person(request)
    form = SessionForm(user, request.POST if request.method == "POST" else None)
    if not form.is_valid():
        context = {"form": form, "own": sessions.session_of(user.pk)}
        return render(request, "mcp/inspector/index.html", context, status=422 if form.errors else 200)
    chosen, actor = form.cleaned_data, Actor(user.pk, "session")
    _end(user)
    if not (secret := chosen["secret"]):
        by, until = actor if chosen.get("attended") else None, timezone.now() + LASTS
        limits = {"without_elicitation": chosen["without_elicitation"]}
        secret = tokens.make(user, TokenKind.MCP, actor, NAME, until, trusted_by=by, **limits)
    session = Session(user.pk, chosen["era"], chosen["elicits"], own_url(request), request.get_host(), secret)
    sessions.begin(session)
    return redirect("mcp:inspector-session", session.id)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def page(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    """Show a session, or carry out a button of its page. An answer says no more than any client's word does."""
    session, form = _session(request, session_id), request.POST
    if request.method != "POST":
        return _page(request, session)
    if "end" in form:
        _end(person(request))
        return redirect("mcp:inspector")
    number = int(sent) if (sent := form.get("number", "")[:9]).isdecimal() else -1
    if "cancel" in form:
        background.spawn(session.cancel, number)
    elif (answer := form.get("answer")) is None:
        background.spawn(session.list_tools)
    elif answer in ANSWERS:
        background.spawn(session.answer, number, answer)
    else:
        return HttpResponse("answer: expected accept, decline or cancel.", status=422)
    return _back(request, session)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def tool(request: HtmxRequest, session_id: UUID, name: str) -> HttpResponse:
    """Show a session with one of its tools, or call that."""
    session = _session(request, session_id)
    if request.method != "POST":
        return _page(request, session, name)
    try:
        arguments = _arguments(session, name, request.POST)
    except ValueError as error:
        return _page(request, session, name, typed=request.POST, problem=str(error))
    background.spawn(session.call, name, arguments)
    return _back(request, session, name)


@require_safe
@login_required
def live(request: HtmxRequest, session_id: UUID) -> HttpResponse:
    """Return what changed since the page last looked; 204 if nothing did, 286 and a note if its session is over."""
    try:
        session = _session(request, session_id)
    except Http404:
        if not request.htmx:
            raise
        return render(request, "mcp/inspector/_over.html", status=HTMX_STOP_POLLING)
    text = request.GET.get("seen", "0")
    seen = int(text) if text.isdecimal() and len(text) < 10 else 0
    if session.last <= seen:
        return HttpResponse(status=204)
    return render(request, "mcp/inspector/_changes.html", _since(session, seen, request.GET.get("tool", "")))


def own_url(request: HttpRequest) -> str:
    """Return the address of our own server: the port at which this request came in."""
    host, port = str(request.META["SERVER_NAME"]), request.META["SERVER_PORT"]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  what they stand for
    return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{port}{PATH}"


def _session(request: HttpRequest, session_id: UUID) -> Session:
    found = sessions.session_of(person(request).pk)
    if found is None or found.id != session_id:
        raise Http404("There is no such session in this process.")
    return found


def _back(request: HtmxRequest, session: Session, name: str = "") -> HttpResponse:
    """Return to the page; for htmx, have it look what is new."""
    if request.htmx:
        return HttpResponse(status=204, headers={"HX-Trigger": "inspector-look"})
    return redirect("mcp:inspector-tool", session.id, name) if name else redirect("mcp:inspector-session", session.id)


def _end(user: User) -> None:
    """End the session of this person, and the token that was made for it."""
    sessions.end(user.pk)
    for token in Token.objects.filter(user=user, kind=TokenKind.MCP, name=NAME):
        with suppress(tokens.NoSuchToken):
            tokens.revoke(user, token.pk, Actor(user.pk, "session"))


def _page(
    request: HtmxRequest, session: Session, name: str = "", *, typed: QueryDict | None = None, problem: str = ""
) -> HttpResponse:
    """Return the page with one tool; for htmx, which shows only what says that all is well, that tool alone."""
    context: dict[str, Any] = {"session": session, "name": name, "problem": problem}
    if found := session.tool(name):
        fields = _fields(found.input_schema)
        if fields is not None and typed is not None and "json" not in typed:
            fields = [field.typed(typed) for field in fields]
        listed = shown(found.model_dump(by_alias=True, mode="json", exclude_none=True))
        json = "{}" if typed is None else typed.get("json", "{}")
        context |= {"tool": found, "listed": listed, "arguments": fields, "json": json}
    if request.htmx:
        return render(request, "mcp/inspector/_tool.html", context)
    context |= _since(session, 0, name)
    return render(request, "mcp/inspector/session.html", context, status=422 if problem else 200)


def _since(session: Session, seen: int, name: str) -> dict[str, Any]:
    """Return the parts of the page with the tool of this name, and which of them changed after the number `seen`."""
    # First, so that what happens meanwhile is drawn again rather than never.
    last = session.last
    changed = [part for part in PARTS if session.changed[part] > seen]
    return {
        "session": session,
        "name": name,
        "last": last,
        "changed": changed,
        "questions": [(question, urlsplit(question.address).path) for question in list(session.questions)],
        "calls": _calls(session) if "calls" in changed else [],
        "lines": [line for line in list(session.lines) if seen < line.number <= last],
    }


def _calls(session: Session) -> list[tuple[Call, ToolCall | None]]:
    """Return the calls, the latest first, each with what is on record of it."""
    calls, in_question = list(session.calls), [question.call for question in list(session.questions)]
    own = ToolCall.objects.filter(caller_id=session.owner_id).select_related("approval")
    recorded = own.in_bulk([call.call_id for call in calls if call.call_id])
    # Only the result says which call on record it is; till then it is one of the same token that waits.
    waiting = own.filter(mcp__token__digest=hashed(session.secret), status=Status.WAITING).order_by("created_at")
    by_tool = {row.tool_name: row for row in waiting}
    going = [call for call in calls if call.state == "going" and call not in in_question]
    return [(call, by_tool.get(call.tool) if call in going else recorded.get(call.call_id)) for call in calls]


def _fields(schema: dict[str, Any]) -> list[argument_form.Field] | None:
    """Return None when it can only be written as JSON: schemas of upstream servers are whatever those send."""
    try:
        return argument_form.fields(schema, None)
    except (AttributeError, KeyError, TypeError):
        return None


def _arguments(session: Session, name: str, typed: QueryDict) -> dict[str, Any]:
    """Return what the fields of the form, or `json`, make. Raises: ValueError, which says why they make nothing."""
    if (found := session.tool(name)) is None:
        raise ValueError("The tool is no longer in the list. Nothing was called.")
    if "json" not in typed and _fields(found.input_schema) is not None:
        return argument_form.arguments(found.input_schema, typed)
    try:
        arguments = canonical.loads(typed.get("json", ""))
    except canonical.NotJson as error:
        raise ValueError(f"That is not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise ValueError('Arguments are a JSON object, such as {"text": "hello"}.')  # noqa: TRY004  it is of its user
    return arguments
