"""The page of a person's own tokens: listed with what each can do now, made, revoked; and at which clients they sit."""

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from hitlchat.accounts.access import administrators_only, person
from hitlchat.accounts.models import Token, TokenKind
from hitlchat.accounts.roles import may_administer
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import RISK_LABELS
from hitlchat.mcp_server import personal
from hitlchat.mcp_server.listing import visible
from hitlchat.mcp_server.models import McpToken, WithoutElicitation
from hitlchat.mcp_server.pages import connect
from hitlchat.mcp_server.pages.connect import address
from hitlchat.mcp_server.tokens import Access


@dataclass(frozen=True)
class Listed:
    """`count`: of the tools that it can use now; `works` and `idle`: those chosen that it can use, and cannot."""

    token: Token
    limits: McpToken | None
    has_expired: bool
    count: int = 0
    works: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()


def listed(user: User) -> list[Listed]:
    """The newest first."""
    risks = dict(visible(Access(0, user.pk, user.get_username())).values_list("name", "risk_level"))
    return [_listed(each, risks) for each in personal.held(user)]


def _listed(held: personal.Held, risks: dict[str, int]) -> Listed:
    limits = held.limits
    if limits is None:
        return Listed(held.token, None, held.has_expired)
    able = {name for name, risk in risks.items() if risk <= limits.ceiling}
    if limits.tools is None:
        return Listed(held.token, limits, held.has_expired, len(able))
    works = tuple(name for name in limits.tools if name in able)
    idle = tuple(name for name in limits.tools if name not in able)
    return Listed(held.token, limits, held.has_expired, len(works), works, idle)


KINDS = (
    (TokenKind.MCP.value, "MCP: for clients at /mcp"),
    (TokenKind.API.value, "API: acts as you, cannot decide"),
    (TokenKind.APPROVER.value, "Approver: may also decide"),
)
PERIODS = (
    ("7", "In 7 days"),
    ("30", "In 30 days"),
    ("90", "In 90 days"),
    ("365", "In a year"),
    ("date", "On a date of your choice"),
    ("never", "Never"),
)
USUAL_DAYS = 90
LONGEST_DAYS = 3650
MOST_NAMED = 5
CEILINGS = [(level, f"L{level} {label}") for level, label in enumerate(RISK_LABELS)]


class TokenForm(forms.Form):
    """`wanted`, `expires_at` and `limits` are what to make of it, once it is valid."""

    name = forms.CharField(
        max_length=80,
        widget=forms.TextInput(attrs={"placeholder": "Claude on my laptop", "autocomplete": "off"}),
        help_text="So that you know later which one to revoke.",
    )
    kind = forms.ChoiceField(choices=KINDS, widget=forms.RadioSelect, initial=TokenKind.MCP.value)
    expires = forms.ChoiceField(choices=PERIODS, initial=str(USUAL_DAYS))
    until = forms.DateField(
        required=False,
        label="Last day",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text="It is valid until the end of that day.",
        error_messages={"invalid": "Expected a date such as 2027-01-31."},
    )
    which = forms.ChoiceField(
        required=False,
        choices=(("all", "All tools, and those to come"), ("some", "Only these")),
        widget=forms.RadioSelect,
        initial="all",
        label="Tools",
    )
    tools = forms.MultipleChoiceField(required=False)
    ceiling = forms.TypedChoiceField(
        required=False,
        choices=CEILINGS,
        coerce=int,
        initial=5,
        label="Highest risk",
        help_text="Tools of a higher risk are neither listed nor run for this token.",
    )
    without_elicitation = forms.ChoiceField(
        required=False,
        choices=WithoutElicitation.choices,
        widget=forms.RadioSelect,
        initial=WithoutElicitation.DENY.value,
        label="When a call has to be approved and its client cannot ask you",
    )

    attended_by_person = forms.BooleanField(
        required=False,
        label="A person sits at this client",
        help_text="Never for a script, nor for an agent that runs without anybody.",
    )

    def __init__(self, user: User, data: Any = None, **more: Any) -> None:
        super().__init__(data, **more)
        if not may_administer(user):
            del self.fields["attended_by_person"]
        self.offered = list(visible(Access(0, user.pk, user.get_username())).order_by("name"))
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
        if self.is_for_mcp and cleaned.get("which") == "some" and "tools" not in self.errors and not cleaned["tools"]:
            self.add_error("tools", "Choose at least one tool, or let it use all.")
        if self.is_for_mcp and cleaned.get("which") == "some" and not {"tools", "ceiling"} & set(self.errors):
            self._check_ceiling(set(cleaned["tools"]), 5 if cleaned["ceiling"] == "" else cleaned["ceiling"])
        return cleaned

    @property
    def is_for_mcp(self) -> bool:
        return self.cleaned_data.get("kind") == TokenKind.MCP

    @property
    def wanted(self) -> TokenKind:
        return TokenKind(self.cleaned_data["kind"])

    @property
    def attended(self) -> bool:
        """Return whether an administrator says so of it."""
        return self.is_for_mcp and bool(self.cleaned_data.get("attended_by_person"))

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
            "ceiling": 5 if cleaned["ceiling"] == "" else cleaned["ceiling"],
            "without_elicitation": cleaned["without_elicitation"] or WithoutElicitation.DENY,
        }

    def _check_ceiling(self, chosen: set[str], ceiling: int) -> None:
        above = [tool for tool in self.offered if tool.name in chosen and tool.risk_level > ceiling]
        if above:
            which = ", ".join(f"{tool.name} is L{tool.risk_level}" for tool in above[:MOST_NAMED])
            more = f", and {len(above) - MOST_NAMED} more are" if len(above) > MOST_NAMED else ""
            said = f"{which}{more}, above the ceiling L{ceiling}. Choose a higher one, or untick what is above it."
            self.add_error("tools", said)

    def _check_day(self, day: Any) -> None:
        today = timezone.localdate()
        if day is None:
            self.add_error("until", "Give the last day on which it is valid.")
        elif not today <= day <= today + timedelta(days=LONGEST_DAYS):
            self.add_error("until", f"Expected a day from today to {LONGEST_DAYS // 365} years from now.")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def tokens_page(request: HttpRequest) -> HttpResponse:
    user = person(request)
    form = TokenForm(user, request.POST if request.method == "POST" else None)
    if not form.is_bound:
        return _page(request, form)
    if not form.is_valid():
        return _page(request, form, status=422)
    session, name = Actor(user.pk, "session"), form.cleaned_data["name"]
    by = session if form.attended else None
    secret = personal.make(user, form.wanted, session, name, form.expires_at, attended_by=by, **form.limits)
    url = address(request)
    made = {
        "secret": secret,
        "name": name,
        "is_for_mcp": form.wanted == TokenKind.MCP,
        "clients": connect.clients(url, secret),
        "url": url,
    }
    return render(request, "mcp/made.html", made)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    user = person(request)
    try:
        found = personal.one(user, token_id)
        if request.method == "POST":
            withdrawn = personal.revoke(user, token_id, Actor(user.pk, "session"))
            messages.success(request, _told(found.token.name or f"Token {token_id}", withdrawn))
            return redirect("mcp:tokens")
    except personal.NoSuchToken:
        raise Http404("You have no such token.") from None
    return render(request, "mcp/revoke.html", {"held": found, "waiting": personal.waiting(found.token)})


@administrators_only("Whether a person sits at an MCP client is for administrators to say.")
@require_http_methods(["POST"])
def mark(request: HttpRequest, token_id: int) -> HttpResponse:
    """`attended`: 1 or 0."""
    said = request.POST.get("attended")
    if said not in ("0", "1"):
        return HttpResponseBadRequest("attended: expected 1 or 0.")
    try:
        token = personal.mark(token_id, Actor(person(request).pk, "session"), attended=said == "1")
    except personal.NoSuchToken:
        raise Http404("There is no such MCP token.") from None
    except personal.OnlyAdministrators as error:
        raise PermissionDenied(str(error)) from error
    name = token.name or f"Token {token_id}"
    effect = (
        "The word of its client counts from now on." if token.attended else "The word of its client counts no more."
    )
    messages.success(request, f"{name} of {token.user.get_username()}: {effect}")
    return redirect("mcp:tokens")


def _told(name: str, withdrawn: int) -> str:
    more = "" if not withdrawn else f" {withdrawn} call{' was' if withdrawn == 1 else 's were'} withdrawn."
    return f"{name} is revoked.{more}"


def _page(request: HttpRequest, form: TokenForm, status: int = 200) -> HttpResponse:
    user = person(request)
    context: dict[str, Any] = {
        "form": form,
        "held": listed(user),
        "clients": list(personal.of_clients()) if may_administer(user) else None,
        "highest_said": settings.HITL_ELICITATION_MAX_RISK,
        "section": "tokens",
        "told": [str(each) for each in messages.get_messages(request)],
        "inbox_seconds": settings.MCP_INBOX_SECONDS,
    }
    return render(request, "mcp/tokens.html", context, status=status)
