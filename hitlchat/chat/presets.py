"""The pages on which administrators set up presets, and their cards where a conversation begins."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from hitlchat.accounts.access import administrators_only
from hitlchat.agent import presets, routes, tool_sets
from hitlchat.agent.endpoints import ENVIRONMENT
from hitlchat.agent.models import Preset
from hitlchat.agent.presets import LONGEST_DESCRIPTION, LONGEST_INSTRUCTIONS, BadPreset, Draft
from hitlchat.chat.uses import LimitsForm, asks_labels
from hitlchat.gate.actor import actor_of
from hitlchat.gate.models import Asks

administrator_only = administrators_only("Only administrators may see and change presets.")
LIST = "presets:list"


class PresetForm(LimitsForm):
    """A preset as it is typed; empty fields leave it to who begins a conversation."""

    name = forms.CharField(max_length=64, help_text="On its card, such as “Order desk”.")
    description = forms.CharField(
        required=False, max_length=LONGEST_DESCRIPTION, help_text="One line on its card: what it is for."
    )
    instructions = forms.CharField(
        required=False,
        label="Instructions",
        max_length=LONGEST_INSTRUCTIONS,
        widget=forms.Textarea({"rows": 5, "class": "grows"}),
        help_text="What the model is told beforehand.",
    )
    starters = forms.CharField(
        required=False,
        label="Starter prompts",
        widget=forms.Textarea({"rows": 3, "class": "grows"}),
        help_text="One on each line, up to six. Each is a button on its card.",
    )
    route = forms.ChoiceField(required=False, label="Model")
    tool_set = forms.ChoiceField(required=False, label="Tools")
    asks = forms.ChoiceField(
        label="Asks",
        help_text="What its conversations ask about at least. Their people can have them ask more, never less.",
    )
    published = forms.BooleanField(required=False, label="Published: conversations can begin with it")

    field_order = ("name", "description", "instructions", "starters", "route", "tool_set", "asks")

    def __init__(self, row: Preset | None, data: Any = None) -> None:
        draft = Draft("") if row is None else presets.draft_of(row)
        initial: dict[str, Any] = {name: getattr(draft, name) for name in presets.FIELDS}
        initial |= {"starters": "\n".join(draft.starters), "route": _route(row)}
        super().__init__(data, initial=initial)
        self.row = row
        left_open = ("", _("As new conversations begin"))
        route, held, told = (self.fields[name] for name in ("route", "tool_set", "asks"))
        assert isinstance(route, forms.ChoiceField)
        assert isinstance(held, forms.ChoiceField)
        assert isinstance(told, forms.ChoiceField)
        told.choices = asks_labels(Asks.values)
        route.choices = [left_open, *_models(initial["route"])]
        held.choices = [left_open, *((each.name, each.name) for each in tool_sets.standing())]

    def clean(self) -> dict[str, Any]:
        for name, said in presets.problems(self.draft()).items():
            field = "route" if name in ("endpoint", "model") else name
            if field not in self.errors:
                self.add_error(field, said)
        return self.cleaned_data

    def draft(self) -> Draft:
        """Return what is typed; of a form that is not valid, with what a field refused left out."""
        given = {name: self.cleaned_data[name] for name in self.cleaned_data.keys() & set(presets.FIELDS)}
        endpoint, _slash, model = self.cleaned_data.get("route", "").partition("/")
        lines = given.get("starters", "").splitlines()
        given |= {"endpoint": endpoint or None, "model": model, "tool_set": given.get("tool_set") or None}
        instructions = given.get("instructions", "").replace("\r\n", "\n").strip()
        starters = tuple(filter(None, map(str.strip, lines)))
        return Draft(**{"name": "", **given, "instructions": instructions, "starters": starters})


def _route(row: Preset | None) -> str:
    """Return its endpoint and model, as choices name them."""
    if row is None or not row.chooses_model:
        return ""
    endpoint = row.endpoint.name if row.endpoint else ENVIRONMENT
    usual = row.endpoint.model if row.endpoint else next(iter(routes.choices(None).groups))[1][0].model
    return f"{endpoint}/{row.model or usual}"


def _models(now: str) -> list[tuple[str, Any]]:
    found = [(name, [(each.value, each.model) for each in choices]) for name, choices in routes.choices(None).groups]
    known = {value for _name, group in found for value, _model in group}
    return [*found, *([(now, now)] if now and now not in known else [])]


@dataclass(frozen=True)
class Card:
    """A published preset where a conversation begins."""

    name: str
    description: str
    starters: tuple[str, ...]
    chooses_model: bool


def cards() -> list[Card]:
    """Return the presets with which a conversation can begin."""
    return [Card(row.name, row.description, presets.starters(row), row.chooses_model) for row in presets.published()]


@administrator_only
@require_safe
def listed(request: HttpRequest) -> HttpResponse:
    return render(request, "presets/list.html", {"section": "servers", "rows": presets.rows()})


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    return _edit(request, None)


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def one(request: HttpRequest, name: str) -> HttpResponse:
    return _edit(request, _named(name))


def _edit(request: HttpRequest, row: Preset | None) -> HttpResponse:
    form = PresetForm(row, request.POST if request.method == "POST" else None)
    if form.is_valid() and (saved := _save(request, form)) is not None:
        messages.success(request, _("{name} is saved.").format(name=saved.name))
        return redirect(LIST)
    context = {"section": "servers", "row": row, "form": form}
    return render(request, "presets/edit.html", context, status=422 if form.errors else 200)


def _save(request: HttpRequest, form: PresetForm) -> Preset | None:
    try:
        if form.row is None:
            return presets.create(form.draft(), actor_of(request))
        return presets.change(form.row.pk, form.draft(), actor_of(request))
    except BadPreset as error:
        for name, said in error.errors.items():
            form.add_error(name if name in form.fields else None, said)
    return None


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: HttpRequest, name: str) -> HttpResponse:
    """Say what deleting means; then do it."""
    row = _named(name)
    if request.method != "POST":
        return render(request, "presets/remove.html", {"section": "servers", "row": row})
    presets.remove(row.pk, actor_of(request))
    messages.success(request, _("{name} was removed.").format(name=row.name))
    return redirect(LIST)


def _named(name: str) -> Preset:
    return get_object_or_404(presets.rows(), name=name)


app_name = "presets"
urlpatterns = [
    path("", listed, name="list"),
    path("new", new, name="new"),
    path("at/<str:name>", one, name="one"),
    path("at/<str:name>/remove", remove, name="remove"),
]
