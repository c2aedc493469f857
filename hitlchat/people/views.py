"""Pages on which administrators see, group, invite and change people, and where everyone sees themselves."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final
from uuid import UUID
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import Group, User
from django.core.paginator import Paginator
from django.core.validators import ProhibitNullCharactersValidator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from hitlchat.accounts import roles
from hitlchat.accounts.access import administrators_only, person, signed_in
from hitlchat.accounts.models import Role, Token
from hitlchat.accounts.preferences import LANGUAGES, THEMES, chosen_language
from hitlchat.accounts.sign_in import FirstAdministratorForm
from hitlchat.base.problems import Conflict
from hitlchat.base.sentences import translated
from hitlchat.gate import absences, ruling
from hitlchat.gate.absences import BadAbsence
from hitlchat.gate.actor import Actor, actor_of
from hitlchat.gate.loosening import NotConfirmed
from hitlchat.gate.models import Absence
from hitlchat.gate.transition import note
from hitlchat.people import membership
from hitlchat.people.membership import is_plain

ACTIVITIES: Final = {
    "deactivate": (membership.deactivate, gettext_noop("{name} is deactivated and signed out everywhere.")),
    "reactivate": (membership.reactivate, gettext_noop("{name} can sign in again.")),
}
# As browsers send and take it.
MOMENT: Final = "%Y-%m-%dT%H:%M"

administrator_only = administrators_only("Only administrators may see and change people.")


class InvitationForm(forms.Form):
    role = forms.ChoiceField(choices=Role.choices, initial=Role.MEMBER, widget=forms.RadioSelect)
    note = forms.CharField(
        label="For whom",
        max_length=120,
        required=False,
        help_text="A name or an e-mail address, as a note for you. Nothing is sent.",
    )


class JoinForm(FirstAdministratorForm):
    def clean_username(self) -> str:
        name = str(self.cleaned_data["username"])
        if not is_plain(name):
            raise forms.ValidationError("Contains characters that are invisible or look like others.")
        if membership.name_is_taken(name):
            raise forms.ValidationError("This name is taken.")
        return name


class Search(forms.Form):
    """Filters of the list of people; what does not fit narrows nothing."""

    q = forms.CharField(required=False, max_length=150, validators=[ProhibitNullCharactersValidator()])
    role = forms.ChoiceField(
        required=False,
        choices=[("", gettext_lazy("Any role")), *[(role, gettext_lazy(label)) for role, label in Role.choices]],
    )
    state = forms.ChoiceField(
        required=False,
        choices=[
            ("", gettext_lazy("Active or not")),
            ("active", gettext_lazy("Active")),
            ("deactivated", gettext_lazy("Deactivated")),
        ],
    )

    @property
    def wanted(self) -> dict[str, Any]:
        self.is_valid()
        return {name: self.cleaned_data.get(name) or "" for name in self.fields}


def _moment(**given: Any) -> forms.DateTimeField:
    return forms.DateTimeField(widget=forms.DateTimeInput({"type": "datetime-local"}, format=MOMENT), **given)


class AbsenceForm(forms.Form):
    """Who decides for a person while they are away. Its moments are in the zone that is sent with them."""

    delegate: "forms.ModelChoiceField[User]" = forms.ModelChoiceField(
        label="Who decides meanwhile",
        queryset=User.objects.none(),
        to_field_name="username",
        empty_label=gettext_lazy("Choose a person"),
    )
    since = _moment(label=gettext_noop("From"), required=False, help_text=gettext_noop("Empty: from now on."))
    until = _moment(label=gettext_noop("Until"))
    time_zone = forms.ChoiceField(
        label="Time zone",
        choices=lambda: [(name, name) for name in sorted(available_timezones() | {settings.TIME_ZONE})],
        initial=settings.TIME_ZONE,
    )

    def __init__(self, person: User, actor: Actor, data: Any = None) -> None:
        super().__init__(data, auto_id="away_%s")
        self.person, self.actor = person, actor
        others = User.objects.filter(is_active=True).exclude(pk__in=[person.pk, actor.user_id])
        self.fields["delegate"].queryset = others.order_by("username")  # type: ignore[attr-defined]
        if data is None:
            self.fields["time_zone"].widget.attrs["data-browser-zone"] = ""

    def save(self) -> bool:
        """Return whether it was made; if not, the form says at its fields why."""
        zone = self.data.get("time_zone", "")
        with timezone.override(zone if zone in available_timezones() else settings.TIME_ZONE):
            if not self.is_valid():
                return False
        given = self.cleaned_data
        name = given["delegate"].get_username()
        try:
            absences.begin(self.person.pk, name, given["since"], given["until"], self.actor)
        except BadAbsence as refused:
            for field, words in refused.errors.items():
                self.add_error(field, words)
        return not self.errors


@administrator_only.reads
def people(request: HttpRequest) -> HttpResponse:
    search = Search(request.GET)
    wanted = search.wanted
    rows = Paginator(membership.everyone(**wanted).prefetch_related("groups"), 50)
    context = {
        "section": "people",
        "search": search,
        "wanted": wanted,
        "is_narrowed": any(wanted.values()),
        "rows": rows.get_page(request.GET.get("page")),
        "total": User.objects.count(),
        "invitations": membership.open_invitations().select_related("invited_by"),
        "groups": roles.named_groups(),
    }
    return render(request, "people/list.html", context)


@administrator_only.form
def role(request: HttpRequest, user_id: int) -> HttpResponse:
    text = request.POST.get("role") or request.GET.get("role", "")
    if text not in Role.values:
        return redirect("people:one", user_id)
    to = Role(text)
    if request.method != "POST":
        return _confirm(request, user_id, "people/role.html", to=to, meaning_then=roles.MEANING[to])
    change = partial(membership.change_role, user_id, to)
    return _changed(request, user_id, change, _("{name} is now {role}.").replace("{role}", _(to.label.lower())))


@administrator_only.form
def activity(request: HttpRequest, user_id: int, to: str) -> HttpResponse:
    if request.method != "POST":
        return _confirm(request, user_id, f"people/{to}.html")
    change, done = ACTIVITIES[to]
    return _changed(request, user_id, partial(change, user_id), _(done))


@sensitive_post_parameters()
@signed_in.form
def account(request: HttpRequest) -> HttpResponse:
    user = person(request)
    form = PasswordChangeForm(user, request.POST if request.method == "POST" else None)
    form.fields["old_password"].widget.attrs.pop("autofocus", None)
    if form.is_valid():
        form.save()
        update_session_auth_hash(request, user)
        note(None, "person.password_changed", actor=actor_of(request), data=membership.about(user))
        messages.success(request, "Your password is changed. You are signed out everywhere else.")
        return redirect("people:account")
    return _account(request, form)


def _account(
    request: HttpRequest, form: PasswordChangeForm | None = None, away_form: AbsenceForm | None = None
) -> HttpResponse:
    user = person(request)
    form = form or PasswordChangeForm(user)
    role = roles.role_of(user)
    context = {
        "section": "account",
        "form": form,
        "role": role,
        "meaning": roles.MEANING[role],
        "groups": user.groups.filter(pk__in=roles.named_groups()),
        "themes": THEMES.items(),
        "languages": LANGUAGES.items(),
        "chosen_language": chosen_language(request),
        **_away(user, actor_of(request), away_form),
    }
    is_wrong = form.errors or away_form is not None
    return render(request, "people/account.html", context, status=422 if is_wrong else 200)


@signed_in.posts
def own_delegation(request: HttpRequest) -> HttpResponse:
    form = AbsenceForm(person(request), actor_of(request), request.POST)
    if not form.save():
        return _account(request, away_form=form)
    messages.success(request, "Saved: somebody else decides in your place.")
    return redirect("people:account")


@administrator_only.posts
def delegation(request: HttpRequest, user_id: int) -> HttpResponse:
    form = AbsenceForm(get_object_or_404(User, pk=user_id), actor_of(request), request.POST)
    if not form.save():
        return _page(request, user_id, away_form=form)
    messages.success(request, "Saved: somebody else decides in their place.")
    return redirect("people:one", user_id)


@signed_in.posts
def end_delegation(request: HttpRequest, absence_id: UUID) -> HttpResponse:
    person_id = Absence.objects.filter(pk=absence_id).values_list("person_id", flat=True).first()
    absences.end(absence_id, actor_of(request))
    messages.success(request, "Ended: nobody else decides in this place any more.")
    own = person_id == person(request).pk
    return redirect("people:account") if own else redirect("people:one", person_id)


@require_safe
def deactivated(request: HttpRequest) -> HttpResponse:
    """Return where open pages go whose person was deactivated."""
    if request.user.is_authenticated:
        return redirect("chat")
    return render(request, "people/deactivated.html")


@administrator_only.posts
def new_group(request: HttpRequest) -> HttpResponse:
    try:
        made = membership.create_group(request.POST.get("name", ""), actor_of(request))
    except Conflict as refused:
        messages.warning(request, _("No group was created.") + f" {translated(str(refused))}")
        return redirect("people:list")
    return redirect("people:group", made.pk)


@administrator_only.posts
def change_group(request: HttpRequest, group_id: int, what: str, user_id: int = 0) -> HttpResponse:
    sent, actor = request.POST, actor_of(request)
    try:
        match what:
            case "rename":
                membership.rename_group(group_id, sent.get("name", ""), actor, sent.get("seen", ""))
            case "add":
                membership.add_to_group(group_id, sent.get("person", ""), actor)
            case _:
                membership.remove_from_group(group_id, user_id, actor)
    except Conflict as refused:
        return _group_page(request, group_id, str(refused))
    return redirect("people:group", group_id)


@administrator_only.form
def delete_group(request: HttpRequest, group_id: int) -> HttpResponse:
    if request.method != "POST":
        found = get_object_or_404(roles.named_groups(), pk=group_id)
        return render(request, "people/delete_group.html", _facts_of_group(found))
    try:
        confirmed = request.POST.get("confirm_lowering") == "on"
        gone = membership.delete_group(group_id, actor_of(request), request.POST.get("seen", ""), confirmed=confirmed)
    except (NotConfirmed, Conflict) as refused:
        return _group_page(request, group_id, str(refused))
    messages.success(request, _("The group {name} is deleted.").format(name=gone.name))
    return redirect("people:list")


@administrator_only.form
def invite(request: HttpRequest) -> HttpResponse:
    """The link is in the answer to the POST that made it, only."""
    form = InvitationForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            role = Role(form.cleaned_data["role"])
            made, secret = membership.invite(role, form.cleaned_data["note"], actor_of(request))
        except Conflict as refused:
            form.add_error(None, str(refused))
        else:
            scheme = "https" if settings.HTTPS else request.scheme
            link = f"{scheme}://{request.get_host()}{reverse('people:join', args=[secret])}"
            return render(request, "people/invited.html", {"made": made, "link": link})
    context = {"section": "people", "form": form, "roles": [(each, roles.MEANING[each]) for each in Role]}
    return render(request, "people/invite.html", context, status=422 if form.errors else 200)


@administrator_only.form
def revoke(request: HttpRequest, invitation_id: int) -> HttpResponse:
    if request.method != "POST":
        found = get_object_or_404(membership.open_invitations(), pk=invitation_id)
        return render(request, "people/revoke_invitation.html", {"section": "people", "invitation": found})
    try:
        membership.revoke_invitation(invitation_id, actor_of(request))
    except Conflict as refused:
        messages.info(request, str(refused))
    else:
        messages.success(request, "The invitation is revoked: its link no longer works.")
    return redirect("people:list")


@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """Make the account and sign in; the link is used up by the POST, never by looking at it."""
    invitation = membership.find_invitation(secret)
    if invitation is None:
        return render(request, "people/link_used.html", status=410)
    if request.user.is_authenticated:
        return render(request, "people/signed_in_already.html", status=409)
    form = JoinForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            user = membership.redeem(secret, form.cleaned_data["username"], form.cleaned_data["password"])
        except Conflict as refused:
            form.add_error(None, str(refused))
        else:
            login(request, user, backend="django.contrib.auth.backends.ModelBackend")
            return redirect("chat")
    role = Role(invitation.role)
    context = {"form": form, "invitation": invitation, "meaning": roles.MEANING[role]}
    return render(request, "people/join.html", context, status=422 if form.errors else 200)


def _changed(request: HttpRequest, user_id: int, change: Callable[[Actor, str], User], done: str) -> HttpResponse:
    """Make a change whose consequences the page before showed."""
    try:
        user = change(actor_of(request), request.POST.get("seen", ""))
    except Conflict as refused:
        return _page(request, user_id, str(refused))
    messages.success(request, done.replace("{name}", user.get_username()))
    return redirect("people:one", user_id)


def _page(request: HttpRequest, user_id: int, problem: str = "", away_form: AbsenceForm | None = None) -> HttpResponse:
    user = get_object_or_404(User, pk=user_id)
    context = {
        **_facts(user),
        **_away(user, actor_of(request), away_form),
        "problem": problem,
        "is_oneself": user == person(request),
        "roles": [(each, roles.MEANING[each]) for each in Role],
        "groups": user.groups.filter(pk__in=roles.named_groups()),
    }
    return render(request, "people/person.html", context, status=409 if problem else 422 if away_form else 200)


def _confirm(request: HttpRequest, user_id: int, template: str, **more: Any) -> HttpResponse:
    user = get_object_or_404(User, pk=user_id)
    if user == person(request):
        return redirect("people:one", user_id)
    return render(request, template, {**_facts(user), **more})


def _facts(user: User) -> dict[str, Any]:
    role = roles.role_of(user)
    return {
        "section": "people",
        "whom": user,
        "current_role": role,
        "meaning": roles.MEANING[role],
        "seen": membership.state(user),
        "tokens": Token.valid().filter(user=user).count(),
        "not_started": membership.not_started(user),
        "invited": membership.open_invitations().filter(invited_by=user).count(),
    }


def _away(person: User, actor: Actor, form: AbsenceForm | None = None) -> dict[str, Any]:
    """Return the context of _away.html."""
    return {
        "away_form": form or AbsenceForm(person, actor),
        "away": absences.open_ones(person=person),
        "stands_in": absences.open_ones(delegate=person),
        "away_of": person,
    }


def _group_page(request: HttpRequest, group_id: int, problem: str = "") -> HttpResponse:
    found = get_object_or_404(roles.named_groups(), pk=group_id)
    context = _facts_of_group(found) | {
        "others": User.objects.filter(is_active=True).exclude(groups=found).order_by("username"),
        "problem": problem,
    }
    return render(request, "people/group.html", context, status=409 if problem else 200)


def _facts_of_group(group: Group) -> dict[str, Any]:
    return {
        "section": "people",
        "group": group,
        "people": group.user_set.order_by("username"),
        "named_by_a_rule": membership.is_named_by_a_rule(group),
        "decides_about": ruling.naming(group.pk),
    }


app_name = "people"
urlpatterns = [
    path("people/", people, name="list"),
    path("people/invite", invite, name="invite"),
    path("people/invitations/<int:invitation_id>/revoke", revoke, name="revoke-invitation"),
    path("people/groups", new_group, name="new-group"),
    path("people/groups/<int:group_id>", administrator_only.reads(_group_page), name="group"),
    path("people/groups/<int:group_id>/rename", change_group, {"what": "rename"}, name="rename-group"),
    path("people/groups/<int:group_id>/delete", delete_group, name="delete-group"),
    path("people/groups/<int:group_id>/add", change_group, {"what": "add"}, name="add-to-group"),
    path(
        "people/groups/<int:group_id>/remove/<int:user_id>",
        change_group,
        {"what": "remove"},
        name="remove-from-group",
    ),
    path("people/<int:user_id>", administrator_only.reads(_page), name="one"),
    path("people/<int:user_id>/delegation", delegation, name="delegation"),
    path("people/<int:user_id>/role", role, name="role"),
    path("people/<int:user_id>/deactivate", activity, {"to": "deactivate"}, name="deactivate"),
    path("people/<int:user_id>/reactivate", activity, {"to": "reactivate"}, name="reactivate"),
    path("join/<str:secret>", join, name="join"),
    path("account/delegation", own_delegation, name="own-delegation"),
    path("delegations/<uuid:absence_id>/end", end_delegation, name="end-delegation"),
    path("account", account, name="account"),
    path("deactivated", deactivated, name="deactivated"),
]
