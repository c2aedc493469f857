"""The pages on which administrators see people and change what they are, and where everyone sees themselves."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from hitlchat.accounts import roles
from hitlchat.accounts.access import administrators_only, person
from hitlchat.accounts.models import Role, Token
from hitlchat.accounts.roles import with_roles
from hitlchat.gate.actor import actor_of
from hitlchat.gate.transition import note
from hitlchat.people import changing, inviting, rules
from hitlchat.people.forms import Search
from hitlchat.people.rules import Refused

administrator_only = administrators_only("Only administrators may see and change people.")


def told(request: HttpRequest) -> list[str]:
    """What was just done."""
    return [str(each) for each in messages.get_messages(request)]


def everyone(q: str = "", role: str = "", state: str = "") -> QuerySet[Any]:
    """By name, each with `role` and `token_count`, narrowed to what fits all that is given."""
    unexpired = Q(tokens__expires_at=None) | Q(tokens__expires_at__gt=timezone.now())
    rows = with_roles(User.objects.annotate(token_count=Count("tokens", filter=unexpired)))
    if q:
        names = ("username", "first_name", "last_name", "email")
        rows = rows.filter(Q(*[(f"{name}__icontains", q) for name in names], _connector=Q.OR))
    if role:
        rows = rows.filter(role=role)
    if state:
        rows = rows.filter(is_active=state == "active")
    return rows.order_by("-is_active", "username")


ON_A_PAGE = 50


@administrator_only
@require_safe
def people(request: HttpRequest) -> HttpResponse:
    search = Search(request.GET)
    wanted = search.wanted
    rows = Paginator(everyone(**wanted).prefetch_related("groups"), ON_A_PAGE)
    context = {
        "section": "people",
        "search": search,
        "wanted": wanted,
        "is_narrowed": any(wanted.values()),
        "rows": rows.get_page(request.GET.get("page")),
        "total": User.objects.count(),
        "invitations": inviting.still_open().select_related("invited_by"),
        "groups": roles.named_groups(),
        "told": told(request),
    }
    return render(request, "people/list.html", context)


@administrator_only
@require_safe
def one(request: HttpRequest, user_id: int) -> HttpResponse:
    return _page(request, user_id)


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def role(request: HttpRequest, user_id: int) -> HttpResponse:
    """GET says what would follow, POST does it."""
    wanted = request.POST.get("role") or request.GET.get("role", "")
    if wanted not in Role.values:
        return redirect("people:one", user_id)
    if request.method == "POST":
        try:
            user = changing.change_role(user_id, Role(wanted), actor_of(request), request.POST.get("seen", ""))
        except Refused as refused:
            return _page(request, user_id, str(refused))
        messages.success(request, f"{user.get_username()} is {Role(wanted).label.lower()} from now on.")
        return redirect("people:one", user_id)
    return _confirm(request, user_id, "people/role.html", to=Role(wanted), meaning_then=roles.MEANING[Role(wanted)])


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def deactivate(request: HttpRequest, user_id: int) -> HttpResponse:
    if request.method == "POST":
        try:
            user = changing.deactivate(user_id, actor_of(request), request.POST.get("seen", ""))
        except Refused as refused:
            return _page(request, user_id, str(refused))
        messages.success(request, f"{user.get_username()} is deactivated and signed out everywhere.")
        return redirect("people:one", user_id)
    return _confirm(request, user_id, "people/deactivate.html")


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def reactivate(request: HttpRequest, user_id: int) -> HttpResponse:
    if request.method == "POST":
        try:
            user = changing.reactivate(user_id, actor_of(request), request.POST.get("seen", ""))
        except Refused as refused:
            return _page(request, user_id, str(refused))
        messages.success(request, f"{user.get_username()} can sign in again.")
        return redirect("people:one", user_id)
    return _confirm(request, user_id, "people/reactivate.html")


def _page(request: HttpRequest, user_id: int, problem: str = "") -> HttpResponse:
    user = _found(user_id)
    context = {
        **_facts(user),
        "section": "people",
        "problem": problem,
        "is_oneself": user == person(request),
        "roles": [(each, roles.MEANING[each]) for each in Role],
        "groups": user.groups.filter(pk__in=roles.named_groups()),
        "told": told(request),
    }
    return render(request, "people/person.html", context, status=409 if problem else 200)


def _confirm(request: HttpRequest, user_id: int, template: str, **more: Any) -> HttpResponse:
    user = _found(user_id)
    if user == person(request):
        return redirect("people:one", user_id)
    return render(request, template, {**_facts(user), "section": "people", **more})


def _facts(user: User) -> dict[str, Any]:
    return {
        "whom": user,
        "held": roles.role_of(user),
        "meaning": roles.MEANING[roles.role_of(user)],
        "seen": rules.state(user),
        "tokens": Token.valid().filter(user=user).count(),
        "not_started": changing.not_started(user),
        "invited": inviting.still_open().filter(invited_by=user).count(),
    }


def _found(user_id: int) -> User:
    found = User.objects.filter(pk=user_id).first()
    if found is None:
        raise Http404("There is no such person.")
    return found


@sensitive_post_parameters()
@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """One's own role, and a new password."""
    user = person(request)
    form = PasswordChangeForm(user, request.POST if request.method == "POST" else None)
    form.fields["old_password"].widget.attrs.pop("autofocus", None)
    if form.is_valid():
        form.save()
        update_session_auth_hash(request, user)
        about = {"person": user.get_username(), "person_id": user.pk}
        note(None, "person.password_changed", actor=actor_of(request), data=about)
        messages.success(request, "Your password is changed. You are signed out everywhere else.")
        return redirect("people:account")
    role = roles.role_of(user)
    context = {
        "section": "account",
        "form": form,
        "role": role,
        "meaning": roles.MEANING[role],
        "groups": user.groups.filter(pk__in=roles.named_groups()),
        "told": told(request),
    }
    return render(request, "people/account.html", context, status=422 if form.errors else 200)


@never_cache
@require_safe
def deactivated(request: HttpRequest) -> HttpResponse:
    """Where open pages go whose person was deactivated."""
    if request.user.is_authenticated:
        return redirect("chat")
    return render(request, "people/deactivated.html")
