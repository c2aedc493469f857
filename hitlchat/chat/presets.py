"""The pages on which administrators set up presets."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _

from hitlchat.agent import presets, routes, tool_sets
from hitlchat.agent.administering import LONGEST_DESCRIPTION
from hitlchat.agent.endpoints import ENVIRONMENT
from hitlchat.agent.models import Preset
from hitlchat.agent.presets import LONGEST_INSTRUCTIONS, Draft
from hitlchat.chat.drafts import DraftForm, DraftPages
from hitlchat.chat.uses import LimitsForm, asks_labels
from hitlchat.gate.models import Asks


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
        help_text="The least its conversations ask. People can make them ask more, never less.",
    )
    published = forms.BooleanField(required=False, label="Published: conversations can start with it")

    field_order = ("name", "description", "instructions", "starters", "route", "tool_set", "asks")

    def __init__(self, row: Preset | None, data: Any = None) -> None:
        draft, route = Draft("") if row is None else presets.draft_of(row), _route(row)
        super().__init__(row, data, draft, starters="\n".join(draft.starters), route=route)
        left_open = ("", _("Default for new conversations"))
        self.choose_from("asks", asks_labels(Asks.values))
        self.choose_from("route", [left_open, *_models(route)])
        self.choose_from("tool_set", [left_open, *((each.name, each.name) for each in tool_sets.standing())])

    def draft(self) -> Draft:
        given = {"name": ""} | self.given(presets.FIELDS) | self.chosen_route()
        instructions = given.get("instructions", "").replace("\r\n", "\n").strip()
        more = {"tool_set": given.get("tool_set") or None, "instructions": instructions}
        return Draft(**given | more | {"starters": self.lines("starters")})


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


class PresetPages(DraftPages[Preset]):
    namespace = "presets"
    templates = "presets"
    form = PresetForm
    words = "Only administrators may see and change presets."
    rows = staticmethod(presets.rows)


app_name = PresetPages.namespace
urlpatterns = PresetPages().urls
