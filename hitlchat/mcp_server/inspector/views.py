"""The pages of the Inspector: what a session does shows in its page once it has come about."""

import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial, wraps
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

import mcp_types as types
from django import forms
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import Resolver404, resolve, reverse
from django.utils import timezone
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_http_methods, require_safe

from hitlchat.accounts.access import HtmxRequest, person
from hitlchat.accounts.models import TokenKind, hashed
from hitlchat.accounts.roles import may_administer
from hitlchat.base import canonical
from hitlchat.gate.actor import Actor, Caller
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.tools import tools_for
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.inspector.session import MODES, PARTS, Call, Session, TooMany, Wish, sessions, shown
from hitlchat.mcp_server.models import WithoutElicitation
from hitlchat.mcp_server.server import PATH
from tools_studio import argument_form

# As long as a session may last, and a little more: its token ends also when the process could not end it.
LASTS: Final = timedelta(minutes=65)
NAME: Final = "Inspector, for one session"
MOST_NAMES: Final = 100
MOST_FIELDS: Final = 60
GIVEN: Final = "given"
# In the words of the form of a new token.
WAYS: Final = (
    (WithoutElicitation.DENY.value, gettext_noop("Refuse it")),
    (WithoutElicitation.INBOX.value, gettext_noop("Ask me here, and let it wait")),
    (WithoutElicitation.URL.value, gettext_noop("Give it a link")),
)
ANSWERS: Final = ("accept", "decline", "cancel")
NOWHERE: Final = gettext_noop(
    "This process does not know the port at which it listens, so that it cannot connect to itself."
)
SECRET: Final = re.compile(r"hitl_mcp_[A-Za-z0-9_-]{20,100}")
EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  what it stands for


class BadArguments(ValueError):
    """The text cannot be read as arguments; the message says why."""


class SessionForm(forms.Form):
    """Form of a new session."""

    era = forms.ChoiceField(choices=[(era, era) for era in MODES], initial="2026-07-28")
    elicits = forms.TypedChoiceField(
        choices=[("yes", ""), ("no", "")], coerce=lambda value: value == "yes", initial="yes"
    )
    token = forms.ChoiceField(choices=[("made", ""), (GIVEN, "")], initial="made")
    secret = forms.CharField(required=False, max_length=200)
    tools = forms.CharField(required=False, max_length=10_000)
    ceiling = forms.TypedChoiceField(choices=[*enumerate(RISK_LABELS)], coerce=int, initial=5)
    without_elicitation = forms.ChoiceField(choices=WAYS, initial=WithoutElicitation.DENY.value)
    attended = forms.BooleanField(required=False)

    def __init__(self, user: User, data: QueryDict | None = None) -> None:
        super().__init__(data)
        self._user = user
        if not may_administer(user):
            del self.fields["attended"]

    def clean_secret(self) -> str:
        secret = str(self.cleaned_data["secret"])
        if self.cleaned_data.get("token") == GIVEN and not SECRET.fullmatch(secret):
            raise forms.ValidationError("Give a token of kind MCP: it begins with hitl_mcp_.")
        return secret

    def clean_tools(self) -> list[str] | None:
        names = re.split(r"[\s,]+", str(self.cleaned_data["tools"]).strip())
        if names == [""] or self.cleaned_data.get("token") == GIVEN:
            return None
        if len(names) > MOST_NAMES:
            raise forms.ValidationError(f"Give at most {MOST_NAMES} names, not {len(names)}.")
        caller = Caller("mcp", self._user.pk, self._user.get_username())
        known = {tool.name for tool in tools_for(caller, frozenset(names))}
        if unknown := [name for name in names if name not in known]:
            raise forms.ValidationError(f"There is no published tool “{unknown[0][:64]}”.")
        return names

    def make_wish(self, url: str, host: str) -> Wish:
        """Return the wish of a valid form, with a token made now unless one is given."""
        chosen, user = self.cleaned_data, self._user
        secret, is_temporary = chosen["secret"], chosen["token"] != GIVEN
        if is_temporary:
            session = Actor(user.pk, "session")
            limits = {name: chosen[name] for name in ("tools", "ceiling", "without_elicitation")}
            by = session if chosen.get("attended") else None
            until = timezone.now() + LASTS
            secret = tokens.make(user, TokenKind.MCP, session, NAME, until, attended_by=by, **limits)
        return Wish(user.pk, chosen["era"], chosen["elicits"], url, host, is_temporary, secret)


def own_url(request: HttpRequest) -> str:
    """Return the address of our own server: the port at which this request came in; empty if it is not known."""
    host, port = str(request.META.get("SERVER_NAME", "")), str(request.META.get("SERVER_PORT", "0"))
    if not port.isdigit() or port == "0":
        return ""
    host = EVERYWHERE.get(host, host)
    return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{port}{PATH}"


def of_session(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Give the view the session of the path; say so when it is not here."""

    @login_required
    @wraps(view)
    def guarded(request: HttpRequest, session_id: UUID, *args: Any, **kwargs: Any) -> HttpResponseBase:
        for found in sessions.of(person(request).pk):
            if found.id == session_id:
                return view(request, found, *args, **kwargs)
        return render(request, "mcp/inspector/away.html", status=404)

    return guarded


@require_safe
@login_required
def index(request: HttpRequest) -> HttpResponse:
    return _index(request, SessionForm(person(request)))


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def connect(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        # Who has signed in again in between, say, comes by GET.
        return HttpResponseRedirect(reverse("mcp:inspector"))
    user, url = person(request), own_url(request)
    form = SessionForm(user, request.POST)
    if not form.is_valid():
        return _index(request, form, status=422)
    if not url:
        return _index(request, form, NOWHERE, status=409)
    try:
        session = sessions.begin(user.pk, partial(form.make_wish, url, request.get_host()))
    except TooMany as error:
        return _index(request, form, str(error), status=409)
    return HttpResponseRedirect(reverse("mcp:inspector-session", args=[session.id]))


@require_safe
@of_session
def page(request: HtmxRequest, session: Session, name: str = "") -> HttpResponse:
    return _tool(request, session, name or request.GET.get("tool", ""))


@require_safe
@of_session
def live(request: HttpRequest, session: Session) -> HttpResponse:
    """Return what changed since the page last looked; 204 if nothing did.

    A session that is over always says so: that is what ends the looking.
    """
    text = request.GET.get("seen", "0")
    seen = int(text) if text.isdigit() and len(text) < 10 else 0
    if session.is_open and seen and seen >= session.recording.last:
        return HttpResponse(status=204)
    return render(request, "mcp/inspector/_changes.html", _since(session, seen))


@require_http_methods(["GET", "HEAD", "POST"])
@of_session
def act(request: HtmxRequest, session: Session, action: str, number: int = 0, name: str = "") -> HttpResponse:
    """Carry out a button of the session's page; a GET is redirected to that page.

    An answer is the client's user's: it says no more than any client's word does.
    """
    page = reverse("mcp:inspector-session", args=[session.id])
    if request.method != "POST":
        return HttpResponseRedirect(page)
    answer = request.POST.get("action", "")
    if action == "answer" and answer not in ANSWERS:
        return HttpResponse("action: expected accept, decline or cancel.", status=422)
    try:
        arguments = _arguments(session, name, request.POST) if action == "call" else {}
    except BadArguments as error:
        return _tool(request, session, name, typed=request.POST, problem=str(error))
    acts: dict[str, Callable[[], object]] = {
        "call": partial(session.call, name, arguments),
        "cancel": partial(session.cancel, number),
        "answer": partial(session.answer, number, answer),
        "ping": partial(session.start, session.ping),
        "list": partial(session.start, session.list_tools),
        "end": partial(session.end, by_person=True),
    }
    session.touch()
    sessions.do(acts[action])
    if request.htmx:
        return HttpResponse(status=204, headers={"HX-Trigger": "inspector-look"})
    return HttpResponseRedirect(reverse("mcp:inspector-tool", args=[session.id, name]) if name else page)


def _index(request: HttpRequest, form: SessionForm, problem: str = "", status: int = 200) -> HttpResponse:
    own = sessions.of(person(request).pk)
    return render(request, "mcp/inspector/index.html", {"form": form, "problem": problem, "own": own}, status=status)


def _tool(
    request: HtmxRequest, session: Session, name: str, *, typed: QueryDict | None = None, problem: str = ""
) -> HttpResponse:
    """Return the tool with its form: as a part of the page for htmx, which shows only what says that all is well."""
    context = {"session": session, "problem": problem, **_pane(session, name, typed)}
    if request.htmx:
        return render(request, "mcp/inspector/_tool.html", context)
    context |= _since(session, 0)
    return render(request, "mcp/inspector/session.html", context, status=422 if problem else 200)


def _since(session: Session, seen: int) -> dict[str, Any]:
    """Return the parts of the page, with those named that changed after this number of the recording."""
    # First, so that what happens meanwhile is drawn again rather than never.
    is_open, last = session.is_open, session.recording.last
    changed = [part for part in PARTS if session.changed[part] > seen or (part == "state" and not is_open)]
    tools = session.tools if "tools" in changed else ()
    return {
        "session": session,
        "is_open": is_open,
        "last": last,
        "changed": changed,
        "tools": None if tools is None else [_facts(each) for each in tools],
        "questions": [(each, _own_path(session, each.address)) for each in list(session.questions.values())],
        "calls": _calls(session) if "calls" in changed else [],
        "lines": [line for line in list(session.recording.lines) if seen < line.number <= last],
    }


def _calls(session: Session) -> list[tuple[Call, ToolCall | None]]:
    """Return the calls, the latest first, each with what is on record of it."""
    calls = list(reversed(list(session.calls.values())))
    own = ToolCall.objects.filter(caller_id=session.wish.owner_id).select_related("approval")
    known = own.in_bulk([call.call_id for call in calls if call.call_id])
    # Only the result says which call on record it is; till then it is one of the same token that waits.
    waiting = own.filter(mcp__token__digest=hashed(session.wish.secret), status=Status.WAITING).order_by("created_at")
    by_tool = {row.tool_name: row for row in waiting}
    asked = [question.call for question in list(session.questions.values())]
    going = [call for call in calls if call.task is not None and call not in asked]
    return [(call, by_tool.get(call.tool) if call in going else known.get(call.call_id)) for call in calls]


def _facts(tool: types.Tool) -> dict[str, Any]:
    """Return what pages show of a tool as the server lists it."""
    meta = tool.meta or {}
    parts = {"Input": tool.input_schema, "Output": tool.output_schema, "_meta": meta}
    level = meta.get("hitlchat/riskLevel")
    hints = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
    return {
        "name": tool.name,
        "title": tool.title or "",
        "description": tool.description or "",
        "risk": level if level in range(6) else None,
        "approval": str(meta.get("hitlchat/approval", "")),
        "signed_in_only": meta.get("hitlchat/signedInOnly") is True,
        "hints": [f"{name}: {canonical.pretty(value)}" for name, value in hints.items()],
        "schemas": [(title, shown(part)) for title, part in parts.items() if part],
    }


def _found(session: Session, name: str) -> types.Tool | None:
    return next((tool for tool in session.tools or () if tool.name == name), None)


def _pane(session: Session, name: str, typed: QueryDict | None) -> dict[str, Any]:
    """Return the tool of this name, with the form made from its schema: none if the schema does not fit a form."""
    found = _found(session, name)
    if found is None:
        return {"tool": None, "asked_for": name}
    fields, json = _fields(found.input_schema), _sample(found.input_schema)
    if typed is not None and "json" in typed:
        json = typed.get("json", "")
    elif typed is not None and fields is not None:
        fields = [field.typed(typed) for field in fields]
    return {"tool": _facts(found), "fields": fields, "json": json}


def _fields(schema: dict[str, Any]) -> list[argument_form.Field] | None:
    """Return None when it can only be written as JSON: schemas of upstream servers are whatever those send."""
    if len(schema.get("properties", ())) > MOST_FIELDS:
        return None
    try:
        return argument_form.fields(schema, None)
    except (AttributeError, KeyError, TypeError):
        return None


def _sample(schema: dict[str, Any]) -> str:
    """Return the defaults, as JSON to go on from."""
    parts = schema.get("properties")
    parts = parts.items() if isinstance(parts, dict) else ()
    return shown({name: part["default"] for name, part in parts if isinstance(part, dict) and "default" in part})


def _arguments(session: Session, name: str, typed: QueryDict) -> dict[str, Any]:
    """Return what the fields of the form, or `json`, make. Raises: BadArguments."""
    found = _found(session, name)
    if not session.is_open or found is None:
        over = "The session is over: nothing was called."
        raise BadArguments("The tool is not in the list any more: nothing was called." if session.is_open else over)
    try:
        if "json" not in typed and _fields(found.input_schema) is not None:
            return argument_form.arguments(found.input_schema, typed)
        arguments = canonical.loads(typed.get("json", ""))
    except argument_form.BadInput as error:
        raise BadArguments(str(error)) from error
    except canonical.NotJson as error:
        raise BadArguments(f"That is not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise BadArguments('Arguments are a JSON object, such as {"text": "hello"}.')
    return arguments


def _own_path(session: Session, address: str) -> str:
    """Return the path of an address that is an approval's page of ours, by the name that the browser knows us by."""
    try:
        parts = urlsplit(address)
        found = resolve(parts.path)
    except (ValueError, Resolver404):
        return ""
    return parts.path if parts.netloc == session.wish.host and found.url_name == "approval" else ""
