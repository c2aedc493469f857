"""Sign-in: the first administrator's link, lock-out after failed guesses, a fresh sign-in, the end of sessions."""

import ipaddress
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, authenticate, login
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.views import LoginView, LogoutView
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet, Subquery
from django.dispatch import Signal
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from hitlchat.accounts import preferences
from hitlchat.accounts.access import person, signed_in
from hitlchat.accounts.models import SetupLink, hashed
from hitlchat.base import database
from hitlchat.base.problems import Conflict
from hitlchat.base.statements import MOST, compiled

LIFETIME: Final = timedelta(hours=24)
# In the session: when its person last proved who they are.
SIGNED_IN_AT: Final = "signed_in_at"

# The password of an active user as it is kept, and what their session holds, until when.
State = tuple[str, str | None, datetime]

# Sent within the transaction that makes the first administrator, with the user.
administrator_made = Signal()


def needed() -> bool:
    return not User.objects.filter(is_superuser=True, is_active=True).exists()


def make_link() -> str:
    """Make a link and return its secret. Earlier links stay open, since other servers may have printed them."""
    secret = secrets.token_urlsafe(32)
    SetupLink.objects.create(digest=hashed(secret), expires_at=timezone.now() + LIFETIME)
    return secret


def is_open(secret: str) -> bool:
    links = SetupLink.objects.filter(digest=hashed(secret), expires_at__gt=timezone.now())
    return links.exists() and needed()


def redeem(secret: str, username: str, password: str) -> User:
    """Make the administrator and use the link up, together. Raises: Conflict, if it opens nothing any more."""
    with transaction.atomic():
        if not needed():
            raise Conflict(_("There is already an administrator. Sign in instead."))
        used, _each = SetupLink.objects.filter(digest=hashed(secret), expires_at__gt=timezone.now()).delete()
        if used != 1:
            raise Conflict(_("This link is no longer valid. Restart the server to get a new one."))
        SetupLink.objects.all().delete()
        user = User.objects.create_superuser(username=username, password=password)
        administrator_made.send(sender=User, user=user)
    return user


class FirstAdministratorForm(forms.ModelForm):  # type: ignore[type-arg]
    password = forms.CharField(
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=gettext_lazy("At least 10 characters."),
    )

    class Meta:
        model = User
        fields = ["username"]
        help_texts = {"username": gettext_lazy("How you sign in, and how approvals name you.")}
        widgets = {"username": forms.TextInput(attrs={"autocomplete": "username", "autofocus": True})}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if password := cleaned.get("password"):
            try:
                validate_password(password, User(username=cleaned.get("username", "")))
            except ValidationError as error:
                self.add_error("password", error)
        return cleaned


@require_http_methods(["GET", "HEAD", "POST"])
def welcome(request: HttpRequest, secret: str) -> HttpResponse:
    """Make the first administrator and sign them in; the link is used up by the POST, never by looking at it."""
    if not is_open(secret):
        return render(request, "accounts/link_used.html", {"needed": needed()}, status=410)
    form = FirstAdministratorForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            user = redeem(secret, form.cleaned_data["username"], form.cleaned_data["password"])
        except Conflict as used:
            form.add_error(None, str(used))
        else:
            login(request, user, backend="django.contrib.auth.backends.ModelBackend")
            return redirect("chat")
    return render(request, "accounts/welcome.html", {"form": form})


def page(
    request: HttpRequest, _answer: HttpResponse | None = None, _given: dict[str, Any] | None = None
) -> HttpResponse:
    """Show the page of a lock-out, the same whether there is such a person or not."""
    seconds = int(settings.AXES_COOLOFF_TIME.total_seconds())
    response = render(request, "accounts/locked_out.html", {"minutes": seconds // 60}, status=429)
    response["Retry-After"] = str(seconds)
    return response


def address(request: HttpRequest) -> str | None:
    """Return the client's address. A header counts only as far as TRUSTED_PROXIES added it, counted from the end."""
    peer: str | None = request.META.get("REMOTE_ADDR")
    seen = [*request.headers.get("X-Forwarded-For", "").split(","), peer or ""]
    at = seen[max(-len(seen), -1 - settings.TRUSTED_PROXIES)].strip()
    try:
        return str(ipaddress.ip_address(at))
    except ValueError:
        return peer


class SignInAgain(forms.Form):
    password = forms.CharField(
        strip=False, widget=forms.PasswordInput({"autocomplete": "current-password", "autofocus": True})
    )

    def __init__(self, request: HttpRequest, data: Any = None) -> None:
        super().__init__(data)
        self.request, self.user = request, person(request)

    def clean_password(self) -> str:
        given: str = self.cleaned_data["password"]
        found = authenticate(self.request, username=self.user.get_username(), password=given)
        if not isinstance(found, User) or found.pk != self.user.pk:
            raise ValidationError(_("This is not your password."))
        return given


@sensitive_post_parameters()
@signed_in.form
def again(request: HttpRequest) -> HttpResponse:
    """Ask for the password again, then go on to `next` on this server, or else to the start."""
    form = SignInAgain(request, request.POST if request.method == "POST" else None)
    onward = request.POST.get("next") or request.GET.get("next", "")
    if form.is_valid():
        # Whoever had the session's key before has it no longer.
        request.session.cycle_key()
        note_sign_in(request=request)
        is_here = url_has_allowed_host_and_scheme(onward, {request.get_host()}, require_https=request.is_secure())
        return redirect(onward if is_here else "chat")
    context = {"form": form, "next": onward}
    return render(request, "accounts/sign_in_again.html", context, status=422 if form.errors else 200)


def note_sign_in(*, request: Any, **_: Any) -> None:
    """Note that the person behind this request has just proved who they are."""
    if request is not None:
        request.session[SIGNED_IN_AT] = database.now().isoformat()


def signed_in_at(session: SessionBase) -> datetime | None:
    """Return when that was last; None for a session from before it was noted."""
    noted = session.get(SIGNED_IN_AT)
    return datetime.fromisoformat(noted) if isinstance(noted, str) else None


def stored(session_key: str | None) -> SessionBase:
    """Return the session as stored now; a long-lived connection has that of when it was opened."""
    found: SessionBase = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return found


def signed_in_user(session: SessionBase) -> User | None:
    """The active user of this session; None after sign-out, a changed password or deactivation."""
    user_id = session.get(SESSION_KEY)
    user = _active(user_id).one() if user_id else None
    if user is None or session.get(HASH_SESSION_KEY) != user.get_session_auth_hash():
        return None
    return user


class SessionCheck:
    """Whether a session still lets its person in, for whoever asks again and again: it costs one statement, or with
    many others a part of two, while the session and its person are as they were.
    """

    def __init__(self, session_key: str | None, user_id: int) -> None:
        self.key, self.user_id = session_key or "", user_id
        self._found: State | None = None

    def holds(self) -> bool:
        return self.holds_by(_state(self.key, self.user_id).one())

    def holds_by(self, row: "State | None") -> bool:
        """Return whether it holds, by what is stored now."""
        if row is None or row[1] is None or row[2] <= timezone.now():
            return False
        if row != self._found:
            user = signed_in_user(stored(self.key))
            self._found = row if user is not None and user.pk == self.user_id else None
        return self._found is not None


def ended(checks: Sequence[SessionCheck]) -> list[SessionCheck]:
    """Return those that do not hold."""
    found = []
    for at in range(0, len(checks), MOST):
        some = checks[at : at + MOST]
        sessions = {key: (data, until) for key, data, until in _sessions([each.key for each in some])}
        passwords = dict(_passwords([each.user_id for each in some]))
        for each in some:
            is_there = each.key in sessions and each.user_id in passwords
            row = (passwords[each.user_id], *sessions[each.key]) if is_there else None
            if not each.holds_by(row):
                found.append(each)
    return found


@compiled
def _active(user_id: int) -> QuerySet[User]:
    return User.objects.filter(pk=user_id, is_active=True)


@compiled
def _state(session_key: str, user_id: int) -> QuerySet[User, State]:
    session = Session.objects.filter(pk=session_key)
    rows = User.objects.filter(pk=user_id, is_active=True)
    rows = rows.annotate(data=Subquery(session.values("session_data")), until=Subquery(session.values("expire_date")))
    return rows.values_list("password", "data", "until")


@compiled
def _sessions(keys: list[str]) -> QuerySet[Session, tuple[str, str, datetime]]:
    return Session.objects.filter(pk__in=keys).values_list("pk", "session_data", "expire_date")


@compiled
def _passwords(user_ids: list[int]) -> QuerySet[User, tuple[int, str]]:
    return User.objects.filter(pk__in=user_ids, is_active=True).values_list("pk", "password")


def is_still_active(user_id: int) -> bool:
    return User.objects.filter(pk=user_id, is_active=True).exists()


def end_all(user_id: int) -> int:
    """End every session of this person, and return how many. None of them works again once the person is active."""
    # Whose a session is stands inside of it.
    every = Session.objects.filter(expire_date__gt=timezone.now()).iterator()
    theirs = [each.pk for each in every if each.get_decoded().get(SESSION_KEY) == str(user_id)]
    return Session.objects.filter(pk__in=theirs).delete()[0]


urlpatterns = [
    path("welcome/<str:secret>", welcome, name="welcome"),
    path(
        "sign-in",
        LoginView.as_view(template_name="accounts/sign_in.html", redirect_authenticated_user=True),
        name="sign-in",
    ),
    path("sign-in/again", again, name="sign-in-again"),
    path("sign-out", LogoutView.as_view(), name="sign-out"),
    path("theme", preferences.choose, {"what": "theme"}, name="choose-theme"),
    path("language", preferences.choose, {"what": "language"}, name="choose-language"),
]
