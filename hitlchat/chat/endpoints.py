"""The pages on which administrators set up model endpoints, list their models, and test them."""

from dataclasses import replace
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hitlchat.accounts.access import administrators_only
from hitlchat.agent import endpoints, model_client, routes
from hitlchat.agent.endpoints import ENVIRONMENT, BadEndpoint, Draft, InUse
from hitlchat.agent.models import Api, KeyHeader, ModelEndpoint
from hitlchat.gate.actor import actor_of

administrator_only = administrators_only("Only administrators may see and change model endpoints.")
LIST = "models:list"


class EndpointForm(forms.Form):
    """An endpoint as it is typed. The key is never shown again; one that is left empty stays."""

    name = forms.CharField(max_length=64, help_text="How people find it: letters, digits, dots, _ and -.")
    base_url = forms.CharField(
        label="Address",
        max_length=2000,
        widget=forms.TextInput({"placeholder": "https://api.example.com/v1", "inputmode": "url", "class": "mono"}),
        help_text="Of its OpenAI-compatible API, such as http://127.0.0.1:11434/v1 for Ollama. For Azure, with "
        "?api-version=… at its end.",
    )
    key = forms.CharField(
        required=False,
        widget=forms.PasswordInput({"class": "mono", "spellcheck": "false"}),
        help_text="Kept sealed, and never shown again. Or a reference such as ${MISTRAL_API_KEY} to the environment "
        "of the server.",
    )
    no_key = forms.BooleanField(required=False, label="Forget the key that is stored")
    key_header = forms.ChoiceField(label="The key is sent as", choices=KeyHeader.choices)
    api = forms.ChoiceField(
        label="It is asked by",
        choices=Api.choices,
        help_text="All servers have Chat Completions. With the Responses API, models of OpenAI tell summaries of what "
        "they think, and go on with their thoughts in the next turn.",
    )
    model = forms.CharField(
        label="Usual model", max_length=200, widget=forms.TextInput({"class": "mono", "spellcheck": "false"})
    )
    other_models = forms.CharField(
        required=False,
        label="Other models",
        widget=forms.Textarea({"rows": 3, "class": "mono grows", "spellcheck": "false"}),
        help_text="One on each line. Conversations may choose these too.",
    )
    context_length = forms.IntegerField(
        required=False,
        label="Context length",
        help_text="In tokens. Shows how far a conversation fills it; before it is full, the older part is summed up.",
    )
    input_price = forms.DecimalField(required=False, label="Price of input")
    output_price = forms.DecimalField(required=False, label="Price of output")
    images = forms.BooleanField(required=False, label="It takes images")
    parallel_calls = forms.BooleanField(required=False, label="It may ask for several calls at once")
    reasoning = forms.BooleanField(
        required=False,
        label="Its model reasons before it answers",
        help_text="Limits are then sent as max_completion_tokens, and the Responses API is asked for summaries of its "
        "thoughts.",
    )
    allow_private = forms.BooleanField(
        required=False,
        label="Its name may lead to a private address",
        help_text="For a name of your own network. Addresses such as 10.0.0.5 and localhost need no permission.",
    )
    enabled = forms.BooleanField(required=False, label="Enabled: conversations may choose it")

    def __init__(self, row: ModelEndpoint | None, data: Any = None) -> None:
        draft = Draft("") if row is None else endpoints.draft_of(row)
        initial: dict[str, Any] = {name: getattr(draft, name) for name in endpoints.FIELDS}
        initial |= {"other_models": "\n".join(draft.other_models)}
        super().__init__(data, initial=initial)
        self.row = row
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")
        self.fields["key"].widget.attrs["autocomplete"] = "new-password"
        for name in ("input_price", "output_price"):
            self.fields[name].widget.attrs |= {"min": "0", "step": "any"}

    def clean(self) -> dict[str, Any]:
        # All that is wrong at once; not again what a field has said itself.
        for name, said in endpoints.problems(self.draft(), self.row).items():
            if name not in self.errors:
                self.add_error(name, said)
        if self.errors and self.cleaned_data.get("key"):
            self.add_error("key", gettext_noop("Type the key once more: no page has it."))
        return self.cleaned_data

    def draft(self) -> Draft:
        """Return what is typed; of a form that is not valid, with what a field refused left out."""
        given = {name: self.cleaned_data[name] for name in endpoints.FIELDS if name in self.cleaned_data}
        lines = given.get("other_models", "").splitlines()
        key = self.cleaned_data.get("key") or (None if self.row and not self.cleaned_data.get("no_key") else "")
        return replace(Draft(""), **given | {"other_models": tuple(filter(None, map(str.strip, lines))), "key": key})


@administrator_only
@require_safe
def listed(request: HttpRequest) -> HttpResponse:
    return _page(request)


def _page(request: HttpRequest, **more: Any) -> HttpResponse:
    where = model_client.endpoint()
    context = {
        "section": "servers",
        "rows": endpoints.standing(),
        "environment": where,
        "environment_is_default": routes.default() is None,
        **more,
    }
    return render(request, "models/list.html", context, status=422 if more.get("problem") else 200)


@sensitive_post_parameters("key")
@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    return _edit(request, None)


@sensitive_post_parameters("key")
@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def one(request: HttpRequest, name: str) -> HttpResponse:
    return _edit(request, _named(name))


def _edit(request: HttpRequest, row: ModelEndpoint | None) -> HttpResponse:
    form = EndpointForm(row, request.POST if request.method == "POST" else None)
    if form.is_valid() and (saved := _save(request, form)) is not None:
        messages.success(request, _("{name} is saved.").format(name=saved.name))
        return redirect("models:one", saved.name)
    return _show(request, row, form=form)


def _save(request: HttpRequest, form: EndpointForm) -> ModelEndpoint | None:
    try:
        if form.row is None:
            return endpoints.create(form.draft(), actor_of(request))
        return endpoints.change(form.row.pk, form.draft(), actor_of(request))
    except BadEndpoint as error:
        for name, said in error.errors.items():
            form.add_error(name if name in form.fields else None, said)
    except InUse as error:
        form.add_error("enabled", str(error))
    return None


def _show(request: HttpRequest, row: ModelEndpoint | None, **more: Any) -> HttpResponse:
    form = more.pop("form", None) or EndpointForm(row)
    context = {
        "section": "servers",
        "row": row,
        "form": form,
        "reference": endpoints.reference_of(row) if row else "",
        "currency": settings.MODEL_CURRENCY,
        **more,
    }
    return render(request, "models/edit.html", context, status=422 if form.errors else 200)


@administrator_only
@require_POST
def test(request: HttpRequest, name: str) -> HttpResponse:
    if name == ENVIRONMENT:
        return _page(request, trial=routes.test(None))
    row = _named(name)
    return _show(request, row, trial=routes.test(row))


@administrator_only
@require_POST
def models(request: HttpRequest, name: str) -> HttpResponse:
    """Show what the server lists, to be chosen from."""
    row = _named(name)
    return _show(request, row, listing=routes.listing(row))


@administrator_only
@require_POST
def offer(request: HttpRequest, name: str) -> HttpResponse:
    """Offer those that were chosen of the list, and those of before that are not in it."""
    row = _named(name)
    before = [each for each in row.other_models if each not in request.POST.getlist("listed")]
    draft = replace(endpoints.draft_of(row), other_models=(*before, *request.POST.getlist("model")))
    try:
        endpoints.change(row.pk, draft, actor_of(request))
        messages.success(request, _("{name} is saved.").format(name=row.name))
    except BadEndpoint as error:
        messages.error(request, str(error))
    return redirect("models:one", row.name)


@administrator_only
@require_POST
def begin(request: HttpRequest, name: str) -> HttpResponse:
    """Have new conversations begin with this one."""
    try:
        endpoints.begin_with(None if name == ENVIRONMENT else _named(name).pk, actor_of(request))
    except BadEndpoint as error:
        return _page(request, problem=str(error))
    messages.success(request, gettext_noop("New conversations begin with it from now on."))
    return redirect(LIST)


@administrator_only
@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: HttpRequest, name: str) -> HttpResponse:
    """Say what removing means; then do it."""
    row = _named(name)
    if request.method != "POST":
        return render(request, "models/remove.html", {"section": "servers", "row": row})
    try:
        endpoints.remove(row.pk, actor_of(request))
    except InUse as error:
        return _page(request, problem=str(error))
    messages.success(request, _("{name} was removed.").format(name=row.name))
    return redirect(LIST)


def _named(name: str) -> ModelEndpoint:
    return get_object_or_404(endpoints.standing(), name=name)


app_name = "models"
urlpatterns = [
    path("", listed, name="list"),
    path("new", new, name="new"),
    path("at/<str:name>", one, name="one"),
    path("at/<str:name>/test", test, name="test"),
    path("at/<str:name>/models", models, name="models"),
    path("at/<str:name>/offer", offer, name="offer"),
    path("at/<str:name>/begin", begin, name="begin"),
    path("at/<str:name>/remove", remove, name="remove"),
]
