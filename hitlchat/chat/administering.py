"""The pages on which administrators set up model endpoints, tool sets and presets, and authors set up agent tools."""

from dataclasses import replace
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from hitlchat.accounts.roles import may_author
from hitlchat.agent import agents, endpoints, model_client, presets, routes, second, tool_sets
from hitlchat.agent.administering import LONGEST_DESCRIPTION, BadDraft, InUse
from hitlchat.agent.endpoints import ENVIRONMENT
from hitlchat.agent.models import AgentTool, Api, KeyHeader, ModelEndpoint, Preset, Reading, SecondReader, ToolSet
from hitlchat.agent.presets import LONGEST_INSTRUCTIONS
from hitlchat.base.problems import Invalid
from hitlchat.chat.drafts import ChoosingForm, DraftForm, DraftPages
from hitlchat.chat.uses import LimitsForm, Pick, asks_labels, picks
from hitlchat.gate import spec, tools
from hitlchat.gate.actor import Actor, actor_of
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.models import Asks, HitlMode


class EndpointForm(DraftForm):
    """An endpoint as it is typed. The key is never shown again; one that is left empty stays."""

    flows = endpoints
    name = forms.CharField(max_length=64, help_text="Letters, digits, dots, _ and -.")
    base_url = forms.CharField(
        label="Address",
        max_length=2000,
        widget=forms.TextInput({"placeholder": "https://api.example.com/v1", "inputmode": "url", "class": "mono"}),
        help_text="Address of the OpenAI-compatible API, such as http://127.0.0.1:11434/v1 for Ollama. For Azure, "
        "end it with ?api-version=….",
    )
    key = forms.CharField(
        required=False,
        widget=forms.PasswordInput({"class": "mono", "spellcheck": "false"}),
        help_text="Stored encrypted and never shown again. Or a reference to the server's environment, such as "
        "${MISTRAL_API_KEY}.",
    )
    no_key = forms.BooleanField(required=False, label="Delete the stored key")
    key_header = forms.ChoiceField(
        label="Send the key as", choices=[(value, gettext_lazy(label)) for value, label in KeyHeader.choices]
    )
    api = forms.ChoiceField(
        label="API to use",
        choices=[(value, gettext_lazy(label)) for value, label in Api.choices],
        help_text="All servers support Chat Completions. With the Responses API, OpenAI models show summaries of "
        "their reasoning and continue it in the next turn.",
    )
    model = forms.CharField(
        label="Default model", max_length=200, widget=forms.TextInput({"class": "mono", "spellcheck": "false"})
    )
    other_models = forms.CharField(
        required=False,
        label="Other models",
        widget=forms.Textarea({"rows": 3, "class": "mono grows", "spellcheck": "false"}),
        help_text="One per line. Conversations can choose these, too.",
    )
    context_length = forms.IntegerField(
        required=False,
        label="Context length",
        help_text="In tokens. Shows how full a conversation is; before it is full, the older part is summarized.",
    )
    input_price = forms.DecimalField(required=False, label="Input price")
    output_price = forms.DecimalField(required=False, label="Output price")
    images = forms.BooleanField(required=False, label="Images")
    parallel_calls = forms.BooleanField(required=False, label="Parallel calls")
    reasoning = forms.BooleanField(
        required=False,
        label="Reasoning",
        help_text="Token limits are sent as max_completion_tokens; the Responses API is asked for reasoning summaries.",
    )
    allow_private = forms.BooleanField(
        required=False,
        label="The host name may lead to a private address",
        help_text="For a host name in your own network. Addresses such as 10.0.0.5 and localhost need no permission.",
    )
    enabled = forms.BooleanField(required=False, label="Enabled: conversations can choose it")

    def __init__(self, row: ModelEndpoint | None, data: Any = None) -> None:
        draft = endpoints.Draft("") if row is None else endpoints.draft_of(row)
        super().__init__(row, data, draft, key=None, other_models="\n".join(draft.other_models))
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")
        self.fields["key"].widget.attrs["autocomplete"] = "new-password"
        for name in ("input_price", "output_price"):
            self.fields[name].widget.attrs |= {"min": "0", "step": "any"}
            if (price := getattr(draft, name)) is not None:
                # Without the zeros that the database adds.
                self.initial[name] = f"{price.normalize():f}"

    def problems(self) -> dict[str, str]:
        found = endpoints.problems(self.draft(), self.row)
        if (found or self.errors) and self.cleaned_data.get("key"):
            found.setdefault("key", gettext_noop("Enter the key again: pages never show it."))
        return found

    def draft(self) -> endpoints.Draft:
        key = self.cleaned_data.get("key") or (None if self.row and not self.cleaned_data.get("no_key") else "")
        more = {"other_models": self.lines("other_models"), "key": key}
        return replace(endpoints.Draft(""), **self.given(endpoints.FIELDS) | more)


class SecondForm(ChoosingForm):
    """Whether a second model reads calls that wait, which one, and what its caution does."""

    mode = forms.ChoiceField(
        label="Second opinion", choices=[(value, gettext_lazy(label)) for value, label in Reading.choices]
    )
    route = forms.ChoiceField(required=False, label="Model that reads")

    def __init__(self, row: SecondReader, data: Any = None) -> None:
        models = routes.choices(row)
        super().__init__(data, initial={"mode": row.mode, "route": models.value})
        self.choose_from("route", models.options)


class EndpointPages(DraftPages[ModelEndpoint]):
    namespace = "models"
    templates = "models"
    form = EndpointForm
    words = "Only administrators may see and change model endpoints."
    saved = "one"
    rows = staticmethod(endpoints.rows)

    @property
    def urls(self) -> list[URLPattern]:
        return [
            *super().urls,
            self.posted("at/<str:name>/test", self.test, "test"),
            self.posted("at/<str:name>/models", self.list_models, "models"),
            self.posted("at/<str:name>/offer", self.offer, "offer"),
            self.posted("at/<str:name>/begin", self.begin, "begin"),
            self.posted("second-opinion", self.second_opinion, "second"),
        ]

    def about_all(self) -> dict[str, Any]:
        reader = second.chosen()
        return super().about_all() | {
            "environment": model_client.endpoint(),
            "environment_is_default": routes.default() is None,
            "reader": reader,
            "second": SecondForm(reader),
        }

    def about(self, row: ModelEndpoint | None) -> dict[str, Any]:
        return {"reference": endpoints.reference_of(row) if row else "", "currency": settings.MODEL_CURRENCY}

    def store(self, form: DraftForm, actor: Actor) -> Any:
        try:
            return super().store(form, actor)
        except InUse as error:
            raise BadDraft({"enabled": str(error)}) from error

    def test(self, request: HttpRequest, name: str) -> HttpResponse:
        if name == ENVIRONMENT:
            return self.show_all(request, trial=routes.test(None))
        row = self.named(name)
        return self.show(request, row, trial=routes.test(row))

    def list_models(self, request: HttpRequest, name: str) -> HttpResponse:
        """Show what the server lists, to be chosen from."""
        row = self.named(name)
        return self.show(request, row, listing=routes.listing(row))

    def offer(self, request: HttpRequest, name: str) -> HttpResponse:
        """Offer those that were chosen of the list, and those of before that are not in it."""
        row = self.named(name)
        before = [each for each in row.other_models if each not in request.POST.getlist("listed")]
        draft = replace(endpoints.draft_of(row), other_models=(*before, *request.POST.getlist("model")))
        try:
            endpoints.change(row.pk, draft, actor_of(request))
            messages.success(request, _("{name} is saved.").format(name=row.name))
        except BadDraft as error:
            messages.error(request, str(error))
        return self.to("one", row)

    def begin(self, request: HttpRequest, name: str) -> HttpResponse:
        try:
            endpoints.begin_with(None if name == ENVIRONMENT else self.named(name).pk, actor_of(request))
        except Invalid as error:
            return self.show_all(request, problem=str(error))
        messages.success(request, gettext_noop("New conversations use it from now on."))
        return redirect("models:list")

    def second_opinion(self, request: HttpRequest) -> HttpResponse:
        """Turn the second opinion on or off."""
        form = SecondForm(second.chosen(), request.POST)
        if not form.is_valid():
            return self.show_all(request, second=form, problem=gettext_noop("Choose a model that is offered."))
        route = form.chosen_route()
        draft = second.Draft(form.cleaned_data["mode"], route["endpoint"] or "", route["model"])
        try:
            row = second.choose(draft, actor_of(request))
        except Invalid as error:
            return self.show_all(request, second=form, problem=str(error))
        off, on = _("The second opinion is off."), _("A second model reads each call that waits from now on.")
        messages.success(request, off if row.mode == Reading.OFF else on)
        return redirect("models:list")


class ToolSetForm(DraftForm):
    """A tool set as it is typed, with its tools as they are ticked."""

    flows = tool_sets
    name = forms.CharField(max_length=64, help_text="For example “Order desk”.")
    description = forms.CharField(required=False, max_length=300, help_text="One line, for the list of sets.")

    def __init__(self, row: ToolSet | None, data: Any = None) -> None:
        draft = tool_sets.blank() if row is None else tool_sets.draft_of(row)
        super().__init__(row, data, draft)
        self.tools = draft.tools if data is None else tuple(data.getlist("tools"))

    def problems(self) -> dict[str, str]:
        return tool_sets.problems(self.draft(), self.row)

    def draft(self) -> tool_sets.Draft:
        return tool_sets.Draft(**{name: self.cleaned_data.get(name, "") for name in self.fields}, tools=self.tools)

    @property
    def offered(self) -> list[Pick]:
        return picks(tool_sets.choosable(), self.tools)


class ToolSetPages(DraftPages[ToolSet]):
    namespace = "tool-sets"
    templates = "tool_sets"
    form = ToolSetForm
    words = "Only administrators may see and change tool sets."
    rows = staticmethod(tool_sets.rows)

    @property
    def urls(self) -> list[URLPattern]:
        return [*super().urls, self.posted("begin", self.begin, "begin")]

    def about_all(self) -> dict[str, Any]:
        rows = [(row, len(tool_sets.draft_of(row).tools)) for row in self.rows()]
        return {"rows": rows, "default": tool_sets.default()}

    def begin(self, request: HttpRequest) -> HttpResponse:
        """Have new conversations begin with the set that is sent; without one, with all tools."""
        name = request.POST.get("name", "")
        tool_sets.begin_with(self.named(name).pk if name else None, actor_of(request))
        messages.success(request, gettext_noop("New conversations use it from now on."))
        return redirect("tool-sets:list")


class PresetForm(LimitsForm, DraftForm):
    """A preset as it is typed; empty fields leave it to who begins a conversation."""

    flows = presets
    name = forms.CharField(max_length=64, help_text="Shown on the card, for example “Order desk”.")
    description = forms.CharField(
        required=False, max_length=LONGEST_DESCRIPTION, help_text="One line on the card: its purpose."
    )
    instructions = forms.CharField(
        required=False,
        label="Instructions",
        max_length=LONGEST_INSTRUCTIONS,
        widget=forms.Textarea({"rows": 5, "class": "grows"}),
        help_text="The model reads these first.",
    )
    starters = forms.CharField(
        required=False,
        label="Starter prompts",
        widget=forms.Textarea({"rows": 3, "class": "grows"}),
        help_text="One per line, up to six. Each is a button on the card.",
    )
    route = forms.ChoiceField(required=False, label="Model")
    tool_set = forms.ChoiceField(required=False, label="Tools")
    asks = forms.ChoiceField(
        label="Asks",
        help_text="The minimum for conversations with this preset. People can make them ask more, never less.",
    )
    published = forms.BooleanField(required=False, label="Published: conversations can start with it")

    field_order = ("name", "description", "instructions", "starters", "route", "tool_set", "asks")

    def __init__(self, row: Preset | None, data: Any = None) -> None:
        draft, route = presets.Draft("") if row is None else presets.draft_of(row), _route_of(row)
        super().__init__(row, data, draft, starters="\n".join(draft.starters), route=route)
        left_open = ("", _("Default for new conversations"))
        models = routes.choices(None)
        is_gone = route and route not in {each.value for _name, group in models.groups for each in group}
        self.choose_from("asks", asks_labels(Asks.values))
        self.choose_from("route", [left_open, *models.options, *([(route, route)] if is_gone else [])])
        self.choose_from("tool_set", [left_open, *((each.name, each.name) for each in tool_sets.rows())])

    def draft(self) -> presets.Draft:
        given = {"name": ""} | self.given(presets.FIELDS) | self.chosen_route()
        instructions = given.get("instructions", "").replace("\r\n", "\n").strip()
        more = {"tool_set": given.get("tool_set") or None, "instructions": instructions}
        return presets.Draft(**given | more | {"starters": self.lines("starters")})


class PresetPages(DraftPages[Preset]):
    namespace = "presets"
    templates = "presets"
    form = PresetForm
    words = "Only administrators may see and change presets."
    rows = staticmethod(presets.rows)


def _route_of(row: Preset | None) -> str:
    """Return its endpoint and model, as choices name them."""
    if row is None or not row.chooses_model:
        return ""
    endpoint = row.endpoint.name if row.endpoint else ENVIRONMENT
    usual = row.endpoint.model if row.endpoint else next(iter(routes.choices(None).groups))[1][0].model
    return f"{endpoint}/{row.model or usual}"


class AgentForm(DraftForm):
    """An agent as it is typed."""

    flows = agents
    name = forms.CharField(max_length=64, help_text="The name that models use: letters, digits, _ and -.")
    title = forms.CharField(required=False, max_length=spec.LONGEST["title"])
    description = forms.CharField(
        label="Purpose",
        max_length=agents.LONGEST["description"],
        widget=forms.Textarea({"rows": 2, "class": "grows"}),
        help_text="Models read this to know when to call the agent.",
    )
    instructions = forms.CharField(
        max_length=agents.LONGEST["instructions"],
        widget=forms.Textarea({"rows": 6, "class": "grows"}),
        help_text="The agent reads these before each task.",
    )
    tools = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple())
    route = forms.ChoiceField(required=False, label="Model")
    max_turns = forms.IntegerField(
        required=False,
        label="Turns",
        help_text="The agent stops after this many. Leave empty for the limit of conversations.",
    )
    max_tokens = forms.IntegerField(
        required=False,
        label="Tokens",
        help_text="Most tokens for one task, as counted by the model server. Leave empty for no limit.",
    )
    hitl_mode = forms.ChoiceField(
        label="When called", choices=[(value, gettext_lazy(label)) for value, label in HitlMode.choices]
    )
    condition = forms.CharField(
        required=False,
        max_length=spec.LONGEST["condition"],
        widget=forms.TextInput({"class": "mono", "spellcheck": "false"}),
        help_text="Asks if true, for example len(args['task']) > 500. Applies if policies decide.",
    )
    prompt_template = forms.CharField(
        required=False,
        label="Approval prompt",
        max_length=spec.LONGEST["prompt_template"],
        help_text="With {toolName} and {args.task}.",
    )
    risk_level = forms.TypedChoiceField(
        label="Risk",
        coerce=int,
        choices=lambda: [(level, f"L{level} {_(word)}") for level, word in enumerate(RISK_LABELS)],
    )
    deadline_seconds = forms.IntegerField(
        required=False, label="Time to answer", help_text="In seconds. Leave empty for the default."
    )
    signed_in_only = forms.BooleanField(required=False, label="Only a signed-in person can approve")
    published = forms.BooleanField(required=False, label="Published: others can call it")
    confirm = forms.BooleanField(required=False, label="I understand that it will ask less than before")

    def __init__(self, row: AgentTool | None, data: Any = None) -> None:
        draft = agents.Draft("") if row is None else agents.draft_of(row)
        route = f"{draft.endpoint}/{draft.model}" if draft.endpoint else ""
        super().__init__(row, data, draft, tools=list(draft.tools), route=route)
        # Those that it has come first, also where they are gone or not published.
        rows = tools.listed().order_by("name").filter(published=True).exclude(name__in=[*draft.tools, draft.name])
        names = [*sorted(draft.tools), *rows.values_list("name", flat=True)]
        self.choose_from("tools", [(each, each) for each in names])
        # What is chosen stays, though it may not be offered any more.
        offered = [(each.value, each.value) for _name, group in routes.choices(None).groups for each in group]
        gone = [(route, route.rstrip("/"))] if route and (route, route) not in offered else []
        self.choose_from("route", [("", _("The model of the calling conversation")), *gone, *offered])
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")

    def draft(self) -> agents.Draft:
        given = {"name": ""} | self.given(agents.FIELDS) | self.chosen_route()
        return agents.Draft(**given | {"tools": tuple(given.get("tools", ()))})


class AgentPages(DraftPages[AgentTool]):
    namespace = "agents"
    templates = "agents"
    section = "studio"
    form = AgentForm
    may = may_author
    words = gettext_noop("Only people who may write tools can set up agents.")
    saved = "one"
    name_column = "tool__name"
    rows = staticmethod(agents.rows)

    def about_all(self) -> dict[str, Any]:
        return {"rows": [(row, row.tools) for row in self.rows()]}

    def name_of(self, row: AgentTool) -> str:
        return row.tool.name

    def store(self, form: DraftForm, actor: Actor) -> AgentTool:
        confirmed = form.cleaned_data["confirm"]
        if form.row is None:
            return agents.create(form.draft(), actor, confirmed=confirmed)
        return agents.change(form.row.tool.name, form.draft(), actor, confirmed=confirmed)

    def delete(self, row: AgentTool, actor: Actor) -> None:
        agents.remove(row.tool.name, actor)
