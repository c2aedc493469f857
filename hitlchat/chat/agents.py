"""The pages on which authors set up agent tools: what each is told, may call, asks and costs, and when it is asked."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_http_methods, require_safe

from hitlchat.accounts.access import only
from hitlchat.accounts.roles import may_author
from hitlchat.agent import agents, routes
from hitlchat.agent.agents import BadAgent, Draft
from hitlchat.agent.models import AgentTool
from hitlchat.gate import spec
from hitlchat.gate import tools as catalog
from hitlchat.gate.actor import actor_of
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.loosening import NotConfirmed
from hitlchat.gate.models import HitlMode

authors_only = only(may_author, gettext_noop("Only people who may write tools set up agents."))
AS_CALLER = gettext_noop("The model of the conversation that calls it")


class AgentForm(forms.Form):
    """An agent as it is typed."""

    name = forms.CharField(max_length=64, help_text="As models call it: letters, digits, _ and -.")
    title = forms.CharField(required=False, max_length=spec.LONGEST["title"])
    description = forms.CharField(
        label="What it is good for",
        max_length=agents.LONGEST["description"],
        widget=forms.Textarea({"rows": 2, "class": "grows"}),
        help_text="Models read it to know when to call it.",
    )
    instructions = forms.CharField(
        max_length=agents.LONGEST["instructions"],
        widget=forms.Textarea({"rows": 6, "class": "grows"}),
        help_text="What the agent is told before each task.",
    )
    tools = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple())
    route = forms.ChoiceField(required=False, label="Model")
    max_turns = forms.IntegerField(
        required=False, label="Turns", help_text="After so many it is stopped. Empty: as for conversations."
    )
    max_tokens = forms.IntegerField(
        required=False,
        label="Tokens",
        help_text="What it may use for one task, as far as its model server counts. Empty: no limit of its own.",
    )
    hitl_mode = forms.ChoiceField(label="When it is called", choices=HitlMode.choices)
    condition = forms.CharField(
        required=False,
        max_length=spec.LONGEST["condition"],
        widget=forms.TextInput({"class": "mono", "spellcheck": "false"}),
        help_text="Asks when it holds, such as len(args['task']) > 500. Counts where policies decide.",
    )
    prompt_template = forms.CharField(
        required=False,
        label="Question of the card",
        max_length=spec.LONGEST["prompt_template"],
        help_text="With {toolName} and {args.task}.",
    )
    risk_level = forms.TypedChoiceField(
        label="Risk", coerce=int, choices=[(level, f"L{level} {word}") for level, word in enumerate(RISK_LABELS)]
    )
    deadline_seconds = forms.IntegerField(
        required=False, label="Time to answer", help_text="In seconds. Empty: as for other tools."
    )
    signed_in_only = forms.BooleanField(required=False, label="Only a signed-in person approves it")
    published = forms.BooleanField(required=False, label="Published: it can be called")
    confirm = forms.BooleanField(required=False, label="Yes, it may ask less than before")

    def __init__(self, row: AgentTool | None, data: Any = None) -> None:
        draft = Draft("") if row is None else agents.draft_of(row)
        initial: dict[str, Any] = {name: getattr(draft, name) for name in agents.FIELDS}
        initial |= {"tools": list(draft.tools), "route": _route(draft)}
        super().__init__(data, initial=initial)
        self.row = row
        self.weaker: tuple[str, ...] = ()
        own = {draft.name} if row else set()
        _choose(self.fields["tools"], [(each, each) for each in _tools(draft.tools, own)])
        _choose(self.fields["route"], _routes(_route(draft)))
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")

    def clean(self) -> dict[str, Any]:
        # All that is wrong at once; not again what a field has said itself.
        for name, said in agents.problems(self.draft()).items():
            field = "route" if name in ("endpoint", "model") else name
            if field not in self.errors:
                self.add_error(field, said)
        return self.cleaned_data

    def draft(self) -> Draft:
        """Return what is typed; of a form that is not valid, with what a field refused left out."""
        given = {name: value for name, value in self.cleaned_data.items() if name in agents.FIELDS}
        endpoint, _slash, model = self.cleaned_data.get("route", "").partition("/")
        return Draft(
            **{"name": ""} | given | {"tools": tuple(given.get("tools", ()))}, endpoint=endpoint or None, model=model
        )


def _choose(field: forms.Field, choices: list[tuple[str, str]]) -> None:
    assert isinstance(field, forms.ChoiceField)
    field.choices = choices


def _route(draft: Draft) -> str:
    return f"{draft.endpoint}/{draft.model}" if draft.endpoint else ""


def _routes(chosen: str) -> list[tuple[str, str]]:
    """Return what an agent may ask; what is chosen stays, though it may not be offered any more."""
    offered = [(each.value, each.value) for _name, group in routes.choices(None).groups for each in group]
    known = {value for value, _label in offered}
    kept = [(chosen, chosen.rstrip("/"))] if chosen and chosen not in known else []
    return [("", _(AS_CALLER)), *kept, *offered]


def _tools(chosen: tuple[str, ...], own: set[str]) -> list[str]:
    """Return the tools that it may be given: first those that it has, also where they are gone or not published."""
    rows = catalog.listed().order_by("name").filter(published=True).exclude(name__in=[*chosen, *own])
    return [*sorted(chosen), *rows.values_list("name", flat=True)]


@authors_only
@require_safe
def listed(request: HttpRequest) -> HttpResponse:
    context = {"section": "studio", "rows": [(row, agents.allowed(row)) for row in agents.standing()]}
    return render(request, "agents/list.html", context)


@authors_only
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    return _edit(request, None)


@authors_only
@require_http_methods(["GET", "HEAD", "POST"])
def one(request: HttpRequest, name: str) -> HttpResponse:
    return _edit(request, _named(name))


def _edit(request: HttpRequest, row: AgentTool | None) -> HttpResponse:
    form = AgentForm(row, request.POST if request.method == "POST" else None)
    if form.is_valid() and (saved := _save(request, form)) is not None:
        messages.success(request, _("{name} is saved.").format(name=saved.tool.name))
        return redirect("agents:one", saved.tool.name)
    context = {"section": "studio", "row": row, "form": form}
    return render(request, "agents/edit.html", context, status=422 if form.errors or form.weaker else 200)


def _save(request: HttpRequest, form: AgentForm) -> AgentTool | None:
    actor, confirmed = actor_of(request), form.cleaned_data["confirm"]
    try:
        if form.row is None:
            return agents.create(form.draft(), actor, confirmed=confirmed)
        return agents.change(form.row.tool.name, form.draft(), actor, confirmed=confirmed)
    except NotConfirmed as error:
        form.weaker = error.weaker
    except BadAgent as error:
        for name, said in error.errors.items():
            form.add_error(name if name in form.fields else None, said)
    return None


@authors_only
@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: HttpRequest, name: str) -> HttpResponse:
    """Say what removing means; then do it."""
    row = _named(name)
    if request.method != "POST":
        return render(request, "agents/remove.html", {"section": "studio", "row": row})
    agents.remove(name, actor_of(request))
    messages.success(request, _("{name} was removed.").format(name=name))
    return redirect("agents:list")


def _named(name: str) -> AgentTool:
    row = agents.standing().filter(tool__name=name).first()
    if row is None:
        raise Http404(f"There is no agent {name!r}.")
    return row


app_name = "agents"
urlpatterns = [
    path("", listed, name="list"),
    path("new", new, name="new"),
    path("at/<str:name>", one, name="one"),
    path("at/<str:name>/remove", remove, name="remove"),
]
