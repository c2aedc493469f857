"""Pages about the built-in MCP server: a person's own tokens, and how to connect a client."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.urls import path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop, ngettext
from mcp_types.version import LATEST_MODERN_VERSION

from hitlchat.accounts.access import administrators_only, person, signed_in
from hitlchat.accounts.models import Token, TokenKind
from hitlchat.accounts.roles import may_administer
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import Tool
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.inspector import views as inspector
from hitlchat.mcp_server.listing import visible
from hitlchat.mcp_server.models import WithoutElicitation
from hitlchat.mcp_server.server import PATH
from hitlchat.mcp_server.tokens import Access, OwnToken
from hitlchat.upstreams.models import Exposure

KINDS = (
    (TokenKind.MCP.value, gettext_noop("MCP: for clients at /mcp")),
    (TokenKind.API.value, gettext_noop("API: acts as you, cannot decide")),
    (TokenKind.APPROVER.value, gettext_noop("Approver: may also decide")),
)
PERIODS = (
    ("7", gettext_lazy("In 7 days")),
    ("30", gettext_lazy("In 30 days")),
    ("90", gettext_lazy("In 90 days")),
    ("365", gettext_lazy("In a year")),
    ("date", gettext_lazy("On a date of your choice")),
    ("never", gettext_lazy("Never")),
)
USUAL_DAYS = 90
LONGEST_DAYS = 3650
MOST_NAMED = 5
NAME_ON_CONNECT = "Made on the Connect page"
DAYS_ON_CONNECT = timedelta(days=90)
UNKNOWN = "<token>"
NAME_AT_CLIENT = "hitlchat"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Snippet:
    """A text to copy, and `where` it belongs."""

    where: str
    text: str


@dataclass(frozen=True)
class Client:
    """An MCP client. `asks`: whether it can ask its user about a call; `about`: what else to know."""

    id: str
    name: str
    asks: str
    about: str
    snippets: tuple[Snippet, ...]


class TokenForm(forms.Form):
    """The form of a new token. Once valid, `expires_at` and `limits` say what to make."""

    name = forms.CharField(
        max_length=80,
        widget=forms.TextInput(attrs={"placeholder": "Claude on my laptop", "autocomplete": "off"}),
        help_text="To tell your tokens apart.",
    )
    kind = forms.ChoiceField(choices=KINDS, widget=forms.RadioSelect, initial=TokenKind.MCP.value)
    expires = forms.ChoiceField(choices=PERIODS, initial=str(USUAL_DAYS))
    until = forms.DateField(
        required=False,
        label="Last day",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text="Valid until the end of that day.",
        error_messages={"invalid": "Expected a date such as 2027-01-31."},
    )
    which = forms.ChoiceField(
        required=False,
        choices=(("all", gettext_noop("All tools, now and in the future")), ("some", gettext_noop("Only these"))),
        widget=forms.RadioSelect,
        initial="all",
        label="Tools",
    )
    tools = forms.MultipleChoiceField(required=False)
    ceiling = forms.TypedChoiceField(
        required=False,
        choices=lambda: [(level, f"L{level} {_(label)}") for level, label in enumerate(RISK_LABELS)],
        coerce=int,
        initial=5,
        empty_value=5,  # type: ignore[arg-type]  # the stubs know texts alone
        label="Highest risk",
        help_text="Tools of a higher risk are neither listed nor run for this token.",
    )
    without_elicitation = forms.TypedChoiceField(
        required=False,
        choices=WithoutElicitation.choices,
        widget=forms.RadioSelect,
        initial=WithoutElicitation.DENY.value,
        empty_value=WithoutElicitation.DENY,
        label="When a call needs approval and its client cannot ask you",
    )

    attended_by_person = forms.BooleanField(
        required=False,
        label="Trusted client",
        help_text="Never for a script or an agent that runs unattended.",
    )

    def __init__(self, user: User, data: Any = None, **more: Any) -> None:
        super().__init__(data, **more)
        if not may_administer(user):
            del self.fields["attended_by_person"]
        self.offered = list(_offered(user).order_by("name"))
        chosen = self.fields["tools"]
        assert isinstance(chosen, forms.MultipleChoiceField)
        chosen.choices = [(tool.name, tool.name) for tool in self.offered]
        chosen.error_messages["invalid_choice"] = "%(value)s is no longer offered. Choose again."

    @property
    def chosen(self) -> list[str]:
        return self.data.getlist("tools") if self.is_bound else []  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("expires") == "date" and "until" not in self.errors:
            self._check_day(cleaned.get("until"))
        if self.is_for_mcp and cleaned.get("which") == "some" and "tools" not in self.errors:
            if not cleaned["tools"]:
                self.add_error("tools", _("Choose at least one tool, or allow all."))
            elif "ceiling" not in self.errors:
                self._check_ceiling(set(cleaned["tools"]), cleaned["ceiling"])
        return cleaned

    @property
    def is_for_mcp(self) -> bool:
        return self.cleaned_data.get("kind") == TokenKind.MCP

    @property
    def expires_at(self) -> datetime | None:
        period = self.cleaned_data["expires"]
        if period == "never":
            return None
        if period != "date":
            return timezone.now() + timedelta(days=int(period))
        return timezone.make_aware(datetime.combine(self.cleaned_data["until"], time(23, 59, 59)))

    @property
    def limits(self) -> dict[str, Any]:
        """Columns of McpToken; none for tokens of another kind."""
        if not self.is_for_mcp:
            return {}
        cleaned = self.cleaned_data
        return {
            "tools": sorted(cleaned["tools"]) if cleaned["which"] == "some" else None,
            "ceiling": cleaned["ceiling"],
            "without_elicitation": cleaned["without_elicitation"],
        }

    def _check_ceiling(self, chosen: set[str], ceiling: int) -> None:
        above = [tool for tool in self.offered if tool.name in chosen and tool.risk_level > ceiling]
        if above:
            named = _("{tool} is L{level}")
            which = ", ".join(named.format(tool=tool.name, level=tool.risk_level) for tool in above[:MOST_NAMED])
            if len(above) > MOST_NAMED:
                which += _(", and {count} more are").format(count=len(above) - MOST_NAMED)
            problem = _("{tools}, above the limit L{level}. Choose a higher limit, or untick the tools above it.")
            self.add_error("tools", problem.format(tools=which, level=ceiling))

    def _check_day(self, day: Any) -> None:
        today = timezone.localdate()
        if day is None:
            self.add_error("until", _("Enter the last day on which the token is valid."))
        elif not today <= day <= today + timedelta(days=LONGEST_DAYS):
            problem = _("Expected a day from today to {years} years from now.")
            self.add_error("until", problem.format(years=LONGEST_DAYS // 365))


@signed_in.form
def tokens_page(request: HttpRequest) -> HttpResponse:
    user = person(request)
    form = TokenForm(user, request.POST if request.method == "POST" else None)
    if not form.is_valid():
        context = {
            "form": form,
            "rows": list(_rows(user)),
            "clients": list(tokens.client_tokens()) if may_administer(user) else None,
            "highest_said": settings.HITL_ELICITATION_MAX_RISK,
            "section": "tokens",
            "inbox_seconds": settings.MCP_INBOX_SECONDS,
        }
        return render(request, "mcp/tokens.html", context, status=422 if form.errors else 200)
    session, name = Actor(user.pk, "session"), form.cleaned_data["name"]
    is_trusted = form.is_for_mcp and form.cleaned_data.get("attended_by_person")
    kind, by = TokenKind(form.cleaned_data["kind"]), session if is_trusted else None
    secret = tokens.make(user, kind, session, name, form.expires_at, trusted_by=by, **form.limits)
    url = address(request)
    made = {"secret": secret, "name": name, "is_for_mcp": form.is_for_mcp, "url": url}
    return render(request, "mcp/made.html", made | {"clients": clients(url, secret)})


@signed_in.form
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    user = person(request)
    found = tokens.token_of(user, token_id)
    if request.method == "POST":
        withdrawn = tokens.revoke(user, token_id, Actor(user.pk, "session"))
        message = _("{name} is revoked.").format(name=_name(found.token))
        if withdrawn:
            more = ngettext(" {count} call was withdrawn.", " {count} calls were withdrawn.", withdrawn)
            message += more.format(count=withdrawn)
        messages.success(request, message)
        return redirect("mcp:tokens")
    return render(request, "mcp/revoke.html", {"own": found, "waiting": tokens.waiting_calls(found.token)})


@administrators_only("Only administrators decide which MCP clients are trusted.").posts
def mark(request: HttpRequest, token_id: int) -> HttpResponse:
    """Mark a token, or end its mark: `attended` is 1 or 0."""
    wanted = request.POST.get("attended")
    if wanted not in ("0", "1"):
        return HttpResponseBadRequest("attended: expected 1 or 0.")
    token = tokens.trust(token_id, Actor(person(request).pk, "session"), trusted=wanted == "1")
    effect = _("The client is now trusted.") if token.attended else _("The client is no longer trusted.")
    message = _("{name} of {person}: {effect}")
    messages.success(request, message.format(name=_name(token), person=token.user.get_username(), effect=effect))
    return redirect("mcp:tokens")


@signed_in.form
def connect(request: HttpRequest) -> HttpResponse:
    """Show how to connect. A POST makes a token, whose text is in this one answer."""
    user = person(request)
    secret = ""
    if request.method == "POST":
        until = timezone.now() + DAYS_ON_CONNECT
        secret = tokens.make(user, TokenKind.MCP, Actor(user.pk, "session"), NAME_ON_CONNECT, until)
    url = address(request)
    context = {
        "url": url,
        "secret": secret,
        "name": NAME_ON_CONNECT,
        "days": DAYS_ON_CONNECT.days,
        "clients": clients(url, secret or UNKNOWN),
        "count": _offered(user).count(),
        "mode": Exposure.current().mode,
        "highest_said": settings.HITL_ELICITATION_MAX_RISK,
        "inbox_seconds": settings.MCP_INBOX_SECONDS,
    }
    return render(request, "mcp/connect.html", context)


def clients(url: str, token: str) -> tuple[Client, ...]:
    """Return the set-up of each client. `token`: its text, or a placeholder."""
    bearer = f"Bearer {token}"
    first = (_claude_code(url, bearer), _claude_desktop(url, bearer), _vs_code(url, token))
    return (*first, _cursor(url, bearer), _inspector(url, bearer), _curl(url, bearer))


def address(request: HttpRequest) -> str:
    """Return the address of the MCP server, under the name by which this browser knows it."""
    scheme = "https" if settings.HTTPS else request.scheme
    return f"{scheme}://{request.get_host()}{PATH}"


def _offered(user: User) -> QuerySet[Tool]:
    """Return the tools that a token of this person can use, if nothing limits it."""
    return visible(Access(0, user.pk, user.get_username()))


def _name(token: Token) -> str:
    return token.name or _("Token {number}").format(number=token.pk)


def _rows(user: User) -> Iterator[OwnToken]:
    """Yield the tokens of this person with what each can do now, the newest first."""
    risks = dict(_offered(user).values_list("name", "risk_level"))
    for own in tokens.tokens_of(user):
        if own.limits is None:
            yield own
            continue
        able = {name for name, risk in risks.items() if risk <= own.limits.ceiling}
        chosen = own.limits.tools
        works = tuple(name for name in chosen or () if name in able)
        idle = tuple(name for name in chosen or () if name not in able)
        yield replace(own, count=len(able if chosen is None else works), works=works, idle=idle)


app_name = "mcp"


def _claude_code(url: str, bearer: str) -> Client:
    command = f'claude mcp add --transport http {NAME_AT_CLIENT} {url} \\\n  --header "Authorization: {bearer}"'
    about = gettext_noop(
        "Add --scope user before the name for all projects. Approval questions appear in a dialog in the terminal."
    )
    snippet = Snippet(gettext_noop("In a terminal"), command)
    return Client("claude-code", "Claude Code", gettext_noop("Can ask"), about, (snippet,))


def _claude_desktop(url: str, bearer: str) -> Client:
    # Spaces in arguments are mangled on Windows, so the one in the header stands in a variable.
    arguments = ["-y", "mcp-remote", url, "--transport", "http-only", "--header", "Authorization:${AUTH_HEADER}"]
    if urlsplit(url).scheme == "http" and urlsplit(url).hostname not in LOOPBACK:
        arguments.append("--allow-http")
    server = {"command": "npx", "args": arguments, "env": {"AUTH_HEADER": bearer}}
    about = gettext_noop(
        "The configuration file supports only programs, so mcp-remote (npm, needs Node.js) makes the "
        "connection. Open Settings, Developer, Edit Config, then restart Claude Desktop. Connectors sign "
        "in with OAuth, which this server does not offer."
    )
    snippet = Snippet("claude_desktop_config.json", _json({"mcpServers": {NAME_AT_CLIENT: server}}))
    return Client("claude-desktop", "Claude Desktop", gettext_noop("May not be able to ask"), about, (snippet,))


def _vs_code(url: str, token: str) -> Client:
    name, description = f"{NAME_AT_CLIENT}-token", f"Token for {NAME_AT_CLIENT}"
    prompt = {"type": "promptString", "id": name, "description": description, "password": True}
    server = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer ${{input:{name}}}"}}
    about = gettext_noop(
        "The file is often committed, so it does not contain the token: VS Code asks for it once and stores it."
    )
    file = _json({"servers": {NAME_AT_CLIENT: server}, "inputs": [prompt]})
    snippet = Snippet(".vscode/mcp.json, or MCP: Open User Configuration", file)
    secret = Snippet(gettext_noop("When it asks for the token"), token)
    return Client("vs-code", "VS Code", gettext_noop("Can ask"), about, (snippet, secret))


def _cursor(url: str, bearer: str) -> Client:
    server = {"url": url, "headers": {"Authorization": bearer}}
    snippet = Snippet("~/.cursor/mcp.json", _json({"mcpServers": {NAME_AT_CLIENT: server}}))
    about = gettext_noop("In a project, .cursor/mcp.json. Do not commit the token; use ${env:NAME} instead.")
    return Client("cursor", "Cursor", gettext_noop("Can ask"), about, (snippet,))


def _inspector(url: str, bearer: str) -> Client:
    program = "npx @modelcontextprotocol/inspector"
    server = f'--transport http \\\n  --header "Authorization: {bearer}"'
    where = gettext_noop("In a terminal; it prints the address of its page")
    page = Snippet(where, f"{program} --server-url {url} {server}")
    cli = Snippet(gettext_noop("Without a page"), f"{program} --cli {url} {server} \\\n  --method tools/list")
    about = gettext_noop("The MCP project's tool for inspecting servers; needs Node.js 22. With --cli, it cannot ask.")
    return Client("inspector", "MCP Inspector", gettext_noop("Can ask on its page"), about, (page, cli))


def _curl(url: str, bearer: str) -> Client:
    prefix = "io.modelcontextprotocol"
    meta = {f"{prefix}/protocolVersion": LATEST_MODERN_VERSION, f"{prefix}/clientCapabilities": {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    headers = {
        "Authorization": bearer,
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": LATEST_MODERN_VERSION,
        "Mcp-Method": "tools/list",
    }
    lines = [f"curl {url}", *(f"-H '{name}: {value}'" for name, value in headers.items()), f"-d '{json.dumps(body)}'"]
    about = gettext_noop("Lists the tools, using the MCP version that needs no session.")
    snippet = Snippet(gettext_noop("In a terminal"), " \\\n  ".join(lines))
    return Client("curl", "curl", gettext_noop("Cannot ask"), about, (snippet,))


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


_SESSION = "inspector/<uuid:session_id>"

urlpatterns = [
    path("tokens", tokens_page, name="tokens"),
    path("tokens/<int:token_id>/revoke", revoke, name="revoke"),
    path("tokens/<int:token_id>/attended", mark, name="mark"),
    path("connect", connect, name="connect"),
    path("inspector", inspector.index, name="inspector"),
    path(_SESSION, inspector.page, name="inspector-session"),
    path(f"{_SESSION}/live", inspector.live, name="inspector-live"),
    path(f"{_SESSION}/tools/<str:name>", inspector.tool, name="inspector-tool"),
]
