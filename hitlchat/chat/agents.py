"""The pages on which authors set up agent tools: what each is told, may call, asks and costs, and when it is asked."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from hitlchat.accounts.roles import may_author
from hitlchat.agent import agents, routes
from hitlchat.agent.agents import Draft
from hitlchat.agent.models import AgentTool
from hitlchat.chat.drafts import DraftForm, DraftPages
from hitlchat.gate import spec
from hitlchat.gate import tools as catalog
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.loosening import NotConfirmed
from hitlchat.gate.models import HitlMode

AS_CALLER = gettext_noop("The model of the calling conversation")


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
        help_text=("The agent stops after this many. Leave empty for the limit of conversations."),
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
        draft = Draft("") if row is None else agents.draft_of(row)
        route = f"{draft.endpoint}/{draft.model}" if draft.endpoint else ""
        super().__init__(row, data, draft, tools=list(draft.tools), route=route)
        own = [draft.name] if row else []
        # Those that it has come first, also where they are gone or not published.
        rows = catalog.listed().order_by("name").filter(published=True).exclude(name__in=[*draft.tools, *own])
        tools = [*sorted(draft.tools), *rows.values_list("name", flat=True)]
        self.choose_from("tools", [(each, each) for each in tools])
        self.choose_from("route", _routes(route))
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")

    def draft(self) -> Draft:
        given = self.given(agents.FIELDS)
        return Draft(**{"name": ""} | given | {"tools": tuple(given.get("tools", ()))} | self.chosen_route())


def _routes(chosen: str) -> list[tuple[str, str]]:
    """Return what an agent may ask; what is chosen stays, though it may not be offered any more."""
    offered = [(each.value, each.value) for _name, group in routes.choices(None).groups for each in group]
    known = {value for value, _label in offered}
    kept = [(chosen, chosen.rstrip("/"))] if chosen and chosen not in known else []
    return [("", _(AS_CALLER)), *kept, *offered]


class AgentPages(DraftPages[AgentTool]):
    namespace = "agents"
    templates = "agents"
    section = "studio"
    form = AgentForm
    may = may_author
    words = gettext_noop("Only people who may write tools can set up agents.")
    saved = "one"
    name_column = "tool__name"
    rows = staticmethod(agents.standing)

    def about_all(self) -> dict[str, Any]:
        return {"rows": [(row, row.tools) for row in self.rows()]}

    def name_of(self, row: AgentTool) -> str:
        return row.tool.name

    def save(self, form: DraftForm, actor: Actor) -> Any:
        try:
            return super().save(form, actor)
        except NotConfirmed as error:
            form.weaker = error.weaker
        return None

    def store(self, form: DraftForm, actor: Actor) -> AgentTool:
        confirmed = form.cleaned_data["confirm"]
        if form.row is None:
            return agents.create(form.draft(), actor, confirmed=confirmed)
        return agents.change(form.row.tool.name, form.draft(), actor, confirmed=confirmed)

    def delete(self, row: AgentTool, actor: Actor) -> None:
        agents.remove(row.tool.name, actor)
