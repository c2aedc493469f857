"""The pages on which people say how they want to hear of what waits for them, and manage webhooks."""

import re
from functools import wraps
from typing import Any, Final
from uuid import UUID
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters

from hitlchat.accounts.access import View, administrators_only, person, signed_in
from hitlchat.accounts.roles import may_administer, named_groups
from hitlchat.base.problems import Conflict
from hitlchat.base.sentences import translated
from hitlchat.gate.actor import actor_of
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import NAME_PATTERN
from hitlchat.gate.transition import note
from hitlchat.notices import receivers, wording
from hitlchat.notices.composing import mail_is_off
from hitlchat.notices.models import Installation, Kind, Notice, Receiver, State, Wishes
from hitlchat.notices.receivers import LONGEST_URL, place_in

MOST_TOOLS: Final = 100
MINE, EVERYONE = "me", "installation"
PAGE: Final = "notices:page"


def _levels() -> list[tuple[int, str]]:
    levels = [(level, f"L{level} {_(label)}") for level, label in enumerate(RISK_LABELS)]
    return [(level, _("{level} and above").format(level=words) if level < 5 else words) for level, words in levels]


class AddressForm(forms.Form):
    address = forms.EmailField(
        label="Address",
        max_length=254,
        help_text="A code is sent there first. The address then becomes your account's.",
    )


class WishesForm(forms.Form):
    least_risk = forms.TypedChoiceField(label="From which risk on", choices=_levels, coerce=int)
    tools = forms.CharField(
        label="Only these tools",
        required=False,
        max_length=6000,
        widget=forms.TextInput,
        help_text="Comma-separated. Leave empty for all tools.",
    )
    quiet_from = forms.TimeField(
        label="Quiet from", required=False, widget=forms.TimeInput({"type": "time"}, format="%H:%M")
    )
    quiet_until = forms.TimeField(
        label="Quiet until", required=False, widget=forms.TimeInput({"type": "time"}, format="%H:%M")
    )
    time_zone = forms.ChoiceField(
        label="Time zone",
        choices=lambda: [(name, name) for name in sorted(available_timezones() | {settings.TIME_ZONE})],
    )

    def __init__(self, wishes: Wishes, data: Any = None) -> None:
        names = ("least_risk", "quiet_from", "quiet_until")
        initial: dict[str, Any] = {name: getattr(wishes, name) for name in names}
        initial |= {"tools": ", ".join(wishes.tools), "time_zone": wishes.time_zone or settings.TIME_ZONE}
        super().__init__(data, initial=initial)
        if not wishes.time_zone and data is None:
            self.fields["time_zone"].widget.attrs["data-browser-zone"] = ""

    def clean_tools(self) -> list[str]:
        names = list(dict.fromkeys(name.strip() for name in self.cleaned_data["tools"].split(",") if name.strip()))
        if len(names) > MOST_TOOLS or not all(re.fullmatch(NAME_PATTERN, name) for name in names):
            words = _("At most {most} names of tools, such as refund_order, send_email.")
            raise forms.ValidationError(words.format(most=MOST_TOOLS))
        return names

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        begins, ends = given.get("quiet_from"), given.get("quiet_until")
        if (begins is None) != (ends is None):
            missing = "quiet_until" if ends is None else "quiet_from"
            self.add_error(missing, _("Give both the start and the end of quiet hours."))
        elif begins is not None and begins == ends:
            words = _("Start and end are the same. Leave both empty for no quiet hours, or turn notices off.")
            self.add_error("quiet_until", words)
        return given


class WebhookForm(forms.Form):
    name = forms.CharField(max_length=60, help_text="For example “on-call channel”.")
    url = forms.CharField(
        label="Address",
        max_length=LONGEST_URL,
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false", "inputmode": "url"}),
        help_text="Begins with https://. Stored encrypted; only its host is shown again.",
    )
    kind = forms.ChoiceField(
        label="Format",
        choices=[
            (Kind.WEBHOOK, gettext_lazy("Signed JSON (Standard Webhooks)")),
            (Kind.SLACK, gettext_lazy("Slack, and compatible receivers")),
        ],
    )
    whose = forms.ChoiceField(label="For")
    least_risk = forms.TypedChoiceField(label="From which risk on", choices=_levels, coerce=int, initial=0)
    tells_decided = forms.BooleanField(
        label="Also notify when a call is decided or expires", required=False, initial=True
    )
    allow_private = forms.BooleanField(
        label="On this machine or a private network",
        required=False,
        help_text="Allows a private address, also without https.",
    )

    def __init__(self, person: User, data: Any = None) -> None:
        super().__init__(data)
        self._person = person
        whose = self.fields["whose"]
        assert isinstance(whose, forms.ChoiceField)
        whose.choices = [(MINE, _("Me: calls I can decide"))]
        if may_administer(person):
            groups = [(f"group-{group.pk}", _("Group {name}").format(name=group.name)) for group in named_groups()]
            whose.choices = [*whose.choices, (EVERYONE, _("The installation: every call that waits")), *groups]
        if not (may_administer(person) and settings.NOTICE_ALLOW_PRIVATE):
            del self.fields["allow_private"]

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        if "url" in given:
            try:
                place_in(given["url"], allow_private=given.get("allow_private", False))
            except Conflict as refused:
                self.add_error("url", translated(str(refused)))
        return given

    @property
    def receiver(self) -> Receiver:
        """Return the receiver as filled in; not stored, and without its address."""
        # The form may lack `allow_private`, which then is off.
        given = {name: value for name, value in self.cleaned_data.items() if name not in ("whose", "url")}
        whose = self.cleaned_data["whose"]
        group = Group.objects.get(pk=whose.removeprefix("group-")) if whose.startswith("group-") else None
        return Receiver(person=self._person if whose == MINE else None, group=group, **given)


def explained(view: View) -> View:
    """Take a signed-in person's POST; where it is refused, the page says why."""

    @signed_in.posts
    @wraps(view)
    def posted(request: HttpRequest, **path: Any) -> HttpResponseBase:
        try:
            return view(request, **path)
        except Conflict as refused:
            return notices_page(request, problem=str(refused))

    return posted


@signed_in.reads
def log(request: HttpRequest) -> HttpResponse:
    return render(request, "notices/_log.html", _logged(person(request)))


@explained
def email(request: HttpRequest) -> HttpResponse:
    form = AddressForm(request.POST)
    if not form.is_valid():
        return notices_page(request, address_form=form)
    user, address = person(request), form.cleaned_data["address"]
    try:
        asks = receivers.ask_for(user, address, actor_of(request))
    except Conflict as refused:
        return notices_page(request, address_form=form, problem=str(refused))
    own = Receiver.objects.filter(person=user, kind=Kind.EMAIL)
    own.update(tells_decided="tells_decided" in request.POST)
    words = _("A code was sent to {address}.") if asks else _("Notices go to {address}.")
    messages.success(request, words.format(address=address))
    return redirect(PAGE)


@explained
def confirm(request: HttpRequest) -> HttpResponse:
    row = receivers.confirm(person(request), request.POST.get("code", "")[:40], actor_of(request))
    messages.success(request, _("Notices now go to {address}.").format(address=row.place))
    return redirect(PAGE)


@explained
def email_off(request: HttpRequest) -> HttpResponse:
    row = receivers.address_of(person(request))
    if row is not None:
        receivers.switch(row, actor_of(request), on=False)
        messages.success(request, _("E-mail notices are off."))
    Wishes.objects.filter(person=person(request)).update(pending="")
    return redirect(PAGE)


@explained
def email_test(request: HttpRequest) -> HttpResponse:
    row = receivers.address_of(person(request))
    if row is None:
        return redirect(PAGE)
    receivers.test(row, person(request), actor_of(request))
    return redirect(f"{reverse(PAGE)}#log")


@explained
def wishes(request: HttpRequest) -> HttpResponse:
    user = person(request)
    row = Wishes.objects.filter(person=user).first() or Wishes(person=user)
    form = WishesForm(row, request.POST)
    if not form.is_valid():
        return notices_page(request, wishes_form=form)
    given: dict[str, Any] = form.cleaned_data
    Wishes.objects.update_or_create(person=user, defaults=given)
    hours = {name: f"{at:%H:%M}" if (at := given[name]) else None for name in ("quiet_from", "quiet_until")}
    data = {**given, **hours, "for": user.get_username()}
    note(None, "notice.wishes_changed", actor=actor_of(request), data=data)
    messages.success(request, _("Saved."))
    return redirect(PAGE)


@administrators_only("Only administrators may say whether notices carry arguments.").posts
def arguments(request: HttpRequest) -> HttpResponse:
    allowed = request.POST.get("arguments") == "yes"
    receivers.allow_arguments(actor_of(request), allowed=allowed)
    carries = _("Notices now carry arguments, without secrets.")
    messages.success(request, carries if allowed else _("Notices no longer carry arguments."))
    return redirect(PAGE)


def notices_page(
    request: HttpRequest,
    *,
    problem: str = "",
    address_form: AddressForm | None = None,
    wishes_form: WishesForm | None = None,
) -> HttpResponse:
    user = person(request)
    row = Wishes.objects.filter(person=user).first() or Wishes(person=user)
    address = receivers.address_of(user)
    webhooks = [each for each in receivers.manageable(user) if not each.is_mail]
    context = {
        "section": "notices",
        "problem": problem,
        "wishes": row,
        "wishes_form": wishes_form or WishesForm(row),
        "address": address,
        "address_form": address_form or AddressForm(initial={"address": address.place if address else user.email}),
        "mail_is_off": mail_is_off(),
        "own": [each for each in webhooks if each.person_id],
        "common": [each for each in webhooks if not each.person_id],
        "arguments": Installation.row().arguments,
        "knows_its_address": bool(wording.own()),
        "unknown_address": wording.UNKNOWN,
        **_logged(user),
        "collect": settings.NOTICE_COLLECT_SECONDS,
        "interval": settings.NOTICE_INTERVAL_SECONDS,
    }
    failed = problem or (address_form and address_form.errors) or (wishes_form and wishes_form.errors)
    return render(request, "notices/page.html", context, status=422 if failed else 200)


def _logged(person: User) -> dict[str, Any]:
    """Return the last deliveries to the receivers that they manage, the latest first, and whether one is under way."""
    managed = Notice.objects.filter(receiver__in=receivers.manageable(person).values("pk"))
    rows = list(managed.select_related("receiver", "receiver__group").defer("body")[:30])
    return {"log": rows, "moving": any(each.state == State.DUE for each in rows)}


@sensitive_post_parameters("url")
@signed_in.form
def new(request: HttpRequest) -> HttpResponse:
    form = WebhookForm(person(request), request.POST if request.method == "POST" else None)
    if form.is_valid():
        receiver = form.receiver
        try:
            secret = receivers.add(receiver, form.cleaned_data["url"], actor_of(request))
        except Conflict as refused:
            form.add_error(None, str(refused))
        else:
            context = {"section": "notices", "receiver": receiver, "secret": secret, "again": False}
            return render(request, "notices/made.html", context)
    status = 422 if form.errors else 200
    return render(request, "notices/new.html", {"section": "notices", "form": form}, status=status)


@explained
def test(request: HttpRequest, receiver_id: UUID) -> HttpResponse:
    receivers.test(_theirs(request, receiver_id), person(request), actor_of(request))
    return redirect(f"{reverse(PAGE)}#log")


@explained
def switch(request: HttpRequest, receiver_id: UUID) -> HttpResponse:
    receiver, on = _theirs(request, receiver_id), request.POST.get("on") == "yes"
    receivers.switch(receiver, actor_of(request), on=on)
    messages.success(request, (_("{name} is on.") if on else _("{name} is off.")).format(name=receiver.name))
    return redirect(PAGE)


@explained
def key(request: HttpRequest, receiver_id: UUID) -> HttpResponse:
    receiver = _theirs(request, receiver_id)
    secret = receivers.new_key(receiver, actor_of(request))
    context = {"section": "notices", "receiver": receiver, "secret": secret, "again": True}
    return render(request, "notices/made.html", context)


@signed_in.form
def remove(request: HttpRequest, receiver_id: UUID) -> HttpResponse:
    """Show what removing a webhook would mean; a POST removes it."""
    receiver = _theirs(request, receiver_id)
    if request.method != "POST":
        return render(request, "notices/remove.html", {"section": "notices", "receiver": receiver})
    receivers.remove(receiver, actor_of(request))
    messages.success(request, _("{name} is removed.").format(name=receiver.name))
    return redirect(PAGE)


def _theirs(request: HttpRequest, receiver_id: UUID) -> Receiver:
    """Return a webhook that the person may manage; others do not exist for them."""
    rows = receivers.manageable(person(request)).exclude(kind=Kind.EMAIL)
    return get_object_or_404(rows, pk=receiver_id)


app_name = "notices"
urlpatterns = [
    path("", signed_in.reads(notices_page), name="page"),
    path("log", log, name="log"),
    path("email", email, name="email"),
    path("email/confirm", confirm, name="confirm"),
    path("email/off", email_off, name="email-off"),
    path("email/test", email_test, name="email-test"),
    path("wishes", wishes, name="wishes"),
    path("arguments", arguments, name="arguments"),
    path("webhooks/new", new, name="new-webhook"),
    path("webhooks/<uuid:receiver_id>/test", test, name="test-webhook"),
    path("webhooks/<uuid:receiver_id>/switch", switch, name="switch-webhook"),
    path("webhooks/<uuid:receiver_id>/key", key, name="new-key"),
    path("webhooks/<uuid:receiver_id>/remove", remove, name="remove-webhook"),
]
