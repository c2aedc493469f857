"""The page on which a person says what a conversation uses: instructions, tools and limits, and what it asks about."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages as notes
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.accounts.access import person, signed_in
from hitlchat.agent import conversations, limits, presets, routes, tool_sets
from hitlchat.agent.conversations import LONGEST_INSTRUCTIONS, BadConversation
from hitlchat.agent.limits import MOST_TEMPERATURE, MOST_TOKENS, MOST_TURNS, BadLimits
from hitlchat.agent.models import Conversation
from hitlchat.agent.tool_sets import LONGEST_TOOL_NAME, BadTools
from hitlchat.base.sentences import translatable
from hitlchat.chat.drafts import ROUTE, ChoosingForm
from hitlchat.gate import oversight
from hitlchat.gate.actor import Caller, actor_of
from hitlchat.gate.models import Asks, Tool
from hitlchat.gate.tools import tools_for

FIELDS: Final = ("instructions", *limits.NAMES)
SAVED: Final = gettext_noop("Saved. Applies from the next answer.")
SAVED_FOR_ALL: Final = gettext_noop("Saved. Applies from the next answer and to new conversations.")
# Before the name of a tool set, among the choices of tools.
SET: Final = "set/"


class Which(models.TextChoices):
    ALL = "all", gettext_noop("All tools, now and in the future")
    PICKED = "picked", gettext_noop("Picked one by one")
    GONE = "gone", ""


@dataclass(frozen=True)
class Pick:
    """A tool that can be ticked. Without a `risk` there is none of this name at the moment."""

    name: str
    is_ticked: bool
    risk: int | None = None


def picks(tools: Iterable[Tool], ticked: Collection[str]) -> list[Pick]:
    """Return a line for each of `tools`, and for each that is ticked and not there."""
    found = [Pick(tool.name, tool.name in ticked, tool.risk_level) for tool in tools]
    names = {each.name for each in found}
    return [*found, *(Pick(name, is_ticked=True) for name in sorted(set(ticked) - names))]


def asks_labels(words: Iterable[str]) -> list[tuple[str, str]]:
    """Return the words on what is asked about as choices, in the language of the page."""
    return [(word, _(Asks(word).label)) for word in words]


class LimitsForm(ChoosingForm):
    """Limits as they are typed; empty fields leave them open."""

    temperature = forms.FloatField(
        required=False,
        label="Temperature",
        min_value=0,
        max_value=MOST_TEMPERATURE,
        widget=forms.NumberInput({"step": "any"}),
        help_text="From 0 (most likely words) to 2. Not sent to reasoning models.",
    )
    max_tokens = forms.IntegerField(
        required=False,
        label="Tokens per answer",
        min_value=1,
        max_value=MOST_TOKENS,
        help_text="The most tokens of an answer. A truncated answer runs no calls.",
    )
    max_turns = forms.IntegerField(
        required=False,
        label="Turns per run",
        min_value=1,
        max_value=MOST_TURNS,
        help_text="The run stops after this many model requests without a final answer.",
    )


class UsesForm(LimitsForm):
    """Instructions, tools and limits as they are typed; empty fields leave them to the installation."""

    asks = forms.ChoiceField(
        required=False,
        label="Asks",
        help_text="Calls that need approval in this conversation. It never asks less than the tools do.",
    )
    route = forms.ChoiceField(required=False, label="Model")
    instructions = forms.CharField(
        required=False,
        label="Instructions",
        max_length=LONGEST_INSTRUCTIONS,
        widget=forms.Textarea({"rows": 5, "class": "grows"}),
        help_text="The model reads these first in this conversation.",
    )
    which = forms.ChoiceField(required=False, label="Tools", help_text="The assistant can use and find only these.")
    begin_so = forms.BooleanField(required=False, label="Use for my new conversations")

    def __init__(self, conversation: Conversation, data: Any = None) -> None:
        initial = {"asks": presets.asks_word(oversight.strictness_of(conversation.pk)), "which": _which(conversation)}
        super().__init__(data, initial=initial | {name: getattr(conversation, name) for name in FIELDS})
        self.fields["instructions"].widget.attrs["placeholder"] = settings.MODEL_INSTRUCTIONS
        self.choose_from("which", _choices(conversation))
        models = routes.choices(conversation)
        if models.is_plain:
            del self.fields["route"]
        else:
            self.choose_from("route", models.options)
            self.initial["route"] = "" if models.missing else models.value
        self.choose_from("asks", asks_labels(conversations.asks_choices(conversation)))
        # Those that are not there at the moment may stay.
        self.before = tool_sets.names(conversation.tools) or []
        self.tools = self.before if data is None else [*dict.fromkeys(data.getlist("tools"))]
        owner = Caller("chat", conversation.owner_id, "")
        self.offered = picks(tools_for(owner).order_by("name"), self.tools)

    def clean(self) -> dict[str, Any]:
        there = {each.name for each in self.offered if each.risk is not None}
        missing = [name for name in self.tools if name not in there and name not in self.before]
        if missing and self.cleaned_data.get("which") == Which.PICKED:
            self.add_error("which", translatable(f"There is no tool named {missing[0][:LONGEST_TOOL_NAME]!r}."))
        return self.cleaned_data

    def route_wanted(self) -> dict[str, Any]:
        """Return the endpoint and model, where others are chosen than the conversation has."""
        if not self.cleaned_data.get("route") or "route" not in self.changed_data:
            return {}
        return self.chosen_route()

    def usual_route(self) -> dict[str, Any]:
        """Return the endpoint and model that new conversations are to begin with: what the installation has is left to
        it, so that they change with it. Nothing, where what was chosen is gone.
        """
        chosen = self.cleaned_data.get("route")
        if chosen == "":
            return {}
        if chosen is None or chosen == routes.choices(None).value:
            return {"endpoint": None}
        return self.chosen_route()

    def tools_wanted(self) -> dict[str, Any]:
        """Return `tools` or `tool_set` as they are chosen; nothing, where they are to stay as they are."""
        match self.cleaned_data["which"]:
            case "" | Which.GONE:
                return {}
            case Which.ALL:
                return {"tools": None}
            case Which.PICKED:
                return {"tools": self.tools}
            case chosen:
                return {"tool_set": chosen.removeprefix(SET)}


def _which(conversation: Conversation) -> str:
    """Return the choice that stands for what the conversation has now."""
    if (chosen := conversation.tool_set) is not None:
        return Which.GONE if chosen.removed_at is not None else SET + chosen.name
    return Which.ALL if conversation.tools is None else Which.PICKED


def _choices(conversation: Conversation) -> list[tuple[str, str]]:
    found = [(each.value, _(str(each.label))) for each in (Which.ALL, Which.PICKED)]
    found += [(SET + row.name, row.name) for row in tool_sets.rows()]
    if (chosen := conversation.tool_set) is not None and chosen.removed_at is not None:
        found.append((Which.GONE.value, _("{name} (removed)").format(name=chosen.name)))
    return found


@signed_in.form
def uses(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Show what the conversation uses; then change it."""
    own = get_object_or_404(
        conversations.own(person(request)).select_related("endpoint", "tool_set"), pk=conversation_id
    )
    form = UsesForm(own, request.POST if request.method == "POST" else None)
    if form.is_valid() and _saved(request, own, form):
        notes.success(request, SAVED_FOR_ALL if form.cleaned_data["begin_so"] else SAVED)
        return redirect("conversation-uses", own.pk)
    context = {"section": "chat", "conversation": own, "form": form, "usual": _usual()}
    return render(request, "chat/uses.html", context, status=422 if form.errors else 200)


def _saved(request: HttpRequest, own: Conversation, form: UsesForm) -> bool:
    cleaned, tools = form.cleaned_data, form.tools_wanted()
    wanted = {name: cleaned[name] for name in FIELDS}
    asks = {"asks": cleaned["asks"]} if cleaned["asks"] else {}
    try:
        conversations.change(own, actor=actor_of(request), **asks, **wanted, **tools, **form.route_wanted())
    except (BadConversation, BadLimits, BadTools, routes.NotOffered) as error:
        for name, words in error.errors.items():
            field = "route" if name in ROUTE else name
            form.add_error(field if field in form.fields else "which", words)
        return False
    if cleaned["begin_so"]:
        tools = {"all_tools": True} if tools == {"tools": None} else tools
        own_route = form.usual_route()
        conversations.begin_so(person(request), actor=actor_of(request), **asks, **wanted, **tools, **own_route)
    return True


def _usual() -> list[str]:
    """Say what holds where a field is empty."""
    usual = limits.usual_ones()
    temperature, tokens = _("no temperature"), _("no limit on answer tokens")
    if usual.temperature is not None:
        temperature = _("temperature {number}").format(number=f"{usual.temperature:g}")
    if usual.max_tokens is not None:
        tokens = _("{number} tokens per answer").format(number=f"{usual.max_tokens:,}")
    return [temperature, tokens, _("{turns} turns per run").format(turns=usual.turns)]
