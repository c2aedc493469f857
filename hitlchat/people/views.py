"""The pages on which administrators see, group, invite and change people, and where everyone sees themselves."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import Group, User
from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hitlchat.accounts import roles
from hitlchat.accounts.access import administrators_only, person
from hitlchat.accounts.models import Role, Token
from hitlchat.accounts.roles import with_roles
from hitlchat.accounts.views import THEMES
from hitlchat.gate import ruling
from hitlchat.gate.actor import actor_of
from hitlchat.gate.transition import note
from hitlchat.people import changing, grouping, inviting
from hitlchat.people.changing import Refused
from hitlchat.people.forms import GroupForm, InvitationForm, JoinForm, Search

administrator_only = administrators_only("Only administrators may see and change people.")


def told(request: HttpRequest) -> list[str]:
    """Return what was just done."""
    return [str(each) for each in messages.get_messages(request)]


def everyone(q: str = "", role: str = "", state: str = "") -> QuerySet[Any]:
    """Return people by name, each with `role` and `token_count`, narrowed to what fits all that is given."""
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
        "seen": changing.state(user),
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
        "themes": THEMES.items(),
        "told": told(request),
    }
    return render(request, "people/account.html", context, status=422 if form.errors else 200)


@require_safe
def deactivated(request: HttpRequest) -> HttpResponse:
    """Return where open pages go whose person was deactivated."""
    if request.user.is_authenticated:
        return redirect("chat")
    return render(request, "people/deactivated.html")


@administrator_only
@require_POST
def create_view(request: HttpRequest) -> HttpResponse:
    try:
        made = grouping.create(request.POST.get("name", ""), actor_of(request))
    except Refused as refused:
        messages.warning(request, f"No group was made. {refused}")
        return redirect("people:list")
    return redirect("people:group", made.pk)


@administrator_only
@require_http_methods(["GET", "HEAD"])
def group(request: HttpRequest, group_id: int) -> HttpResponse:
    return _group_page(request, group_id)


@administrator_only
@require_POST
def rename_view(request: HttpRequest, group_id: int) -> HttpResponse:
    name, seen = request.POST.get("name", ""), request.POST.get("seen", "")
    return _do(request, group_id, lambda: grouping.rename(group_id, name, actor_of(request), seen))


@administrator_only
@require_POST
def add_view(request: HttpRequest, group_id: int) -> HttpResponse:
    return _do(request, group_id, lambda: grouping.add(group_id, request.POST.get("person", ""), actor_of(request)))


@administrator_only
@require_POST
def remove_view(request: HttpRequest, group_id: int, user_id: int) -> HttpResponse:
    return _do(request, group_id, lambda: grouping.remove(group_id, user_id, actor_of(request)))


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def delete_view(request: HttpRequest, group_id: int) -> HttpResponse:
    if request.method != "POST":
        found = get_object_or_404(roles.named_groups(), pk=group_id)
        people = found.user_set.order_by("username")
        context = {"section": "people", "group": found, "people": people}
        context |= {"named_by_a_rule": grouping.is_named_by_a_rule(found), "decides_about": ruling.naming(found.pk)}
        return render(request, "people/delete_group.html", context)
    try:
        gone = grouping.delete(group_id, actor_of(request), request.POST.get("seen", ""))
    except Refused as refused:
        return _group_page(request, group_id, str(refused))
    messages.success(request, f"The group {gone.name} is deleted.")
    return redirect("people:list")


def _do(request: HttpRequest, group_id: int, act: Callable[[], Group]) -> HttpResponse:
    try:
        act()
    except Refused as refused:
        return _group_page(request, group_id, str(refused))
    return redirect("people:group", group_id)


def _group_page(request: HttpRequest, group_id: int, problem: str = "") -> HttpResponse:
    found = get_object_or_404(roles.named_groups(), pk=group_id)
    context = {
        "section": "people",
        "group": found,
        "form": GroupForm(initial={"name": found.name}),
        "people": found.user_set.order_by("username"),
        "others": User.objects.filter(is_active=True).exclude(groups=found).order_by("username"),
        "named_by_a_rule": grouping.is_named_by_a_rule(found),
        "decides_about": ruling.naming(found.pk),
        "problem": problem,
        "told": told(request),
    }
    return render(request, "people/group.html", context, status=409 if problem else 200)


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def invite(request: HttpRequest) -> HttpResponse:
    """The link is in the answer to the POST that made it, only."""
    form = InvitationForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            role = Role(form.cleaned_data["role"])
            made, secret = inviting.invite(role, form.cleaned_data["note"], actor_of(request))
        except Refused as refused:
            form.add_error(None, str(refused))
        else:
            return render(request, "people/invited.html", {"made": made, "link": _link(request, secret)})
    context = {"section": "people", "form": form, "roles": [(each, roles.MEANING[each]) for each in Role]}
    return render(request, "people/invite.html", context, status=422 if form.errors else 200)


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, invitation_id: int) -> HttpResponse:
    found = inviting.still_open().filter(pk=invitation_id).first()
    if request.method != "POST":
        if found is None:
            raise Http404("This invitation is not open.")
        return render(request, "people/revoke_invitation.html", {"section": "people", "invitation": found})
    try:
        inviting.revoke(invitation_id, actor_of(request))
    except Refused as refused:
        messages.info(request, str(refused))
    else:
        messages.success(request, "The invitation is revoked: its link opens nothing any more.")
    return redirect("people:list")


@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """Make the account and sign in; the link is used up by the POST, never by looking at it."""
    invitation = inviting.find(secret)
    if invitation is None:
        return render(request, "people/link_used.html", status=410)
    if request.user.is_authenticated:
        return render(request, "people/signed_in_already.html", status=409)
    form = JoinForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            user = inviting.redeem(secret, form.cleaned_data["username"], form.cleaned_data["password"])
        except Refused as refused:
            form.add_error(None, str(refused))
        else:
            login(request, user, backend="django.contrib.auth.backends.ModelBackend")
            return redirect("chat")
    role = Role(invitation.role)
    context = {"form": form, "invitation": invitation, "meaning": roles.MEANING[role]}
    return render(request, "people/join.html", context, status=422 if form.errors else 200)


def _link(request: HttpRequest, secret: str) -> str:
    scheme = "https" if settings.HTTPS else request.scheme
    return f"{scheme}://{request.get_host()}{reverse('people:join', args=[secret])}"
