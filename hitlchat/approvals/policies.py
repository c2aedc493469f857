"""The pages of the rules: what is in force, what a made-up call would meet, who decides about a tool, and what models
read about calls that were declined, edited, late or refused.
"""

from typing import Any, Final

from asgiref.sync import async_to_sync
from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from hitlchat.accounts.access import HtmxRequest, administrators_only, person, signed_in
from hitlchat.accounts.roles import may_administer, may_author, may_decide_for_others, named_groups
from hitlchat.base import canonical
from hitlchat.base.problems import required
from hitlchat.base.sentences import translatable
from hitlchat.base.visible import see
from hitlchat.gate import oversight, results, ruling, simulation, who
from hitlchat.gate.actor import actor_of
from hitlchat.gate.loosening import NotConfirmed
from hitlchat.gate.models import DecidedBy, ModelText, Outcome, Tool
from hitlchat.gate.models.tools import LONGEST_TEXT, MOST_PEOPLE
from hitlchat.gate.oversight import Rules
from hitlchat.gate.policies.bundled import KINDS
from hitlchat.gate.ruling import BadRules
from hitlchat.gate.schema import BadArguments
from hitlchat.gate.simulation import HEADINGS, coverage, lines
from hitlchat.gate.tools import listed

MOST_PEOPLE_SHOWN: Final = 200
MOST_NAMED: Final = 20
MOST_TOOLS: Final = 500
RULES: Final = (
    *("decided_by", "group", "second", "third", "quorum"),
    *("not_the_requester", "escalate_to", "escalate_after_seconds"),
)
VERDICTS: Final = {
    "allow": _("Would run without asking"),
    "ask": _("Would ask a person"),
    "refuse": _("Would be refused"),
}

_texts_only = administrators_only("Only administrators may see and change the texts for models.")


class MadeUpCall(forms.Form):
    """Built for the person who asks: their tools, the callers they may be, and other people for administrators."""

    tool = forms.ChoiceField(label=_("Tool"))
    kind = forms.ChoiceField(label=_("Called by"))
    person = forms.CharField(label=_("For"), max_length=150, help_text=_("A username."))
    arguments = forms.CharField(label=_("Arguments"), strip=False, widget=forms.Textarea(attrs={"rows": 6}))
    outside = forms.BooleanField(label=_("A value comes from outside (args_from_outside)"), required=False)

    def __init__(self, user: User, data: QueryDict | None = None, *, chosen: str = "") -> None:
        # Drafts, which only their tests in the Studio may call, come last.
        tools = listed().order_by("-published", "name")
        self.user, self.offered = user, list(tools if may_author(user) else tools.filter(published=True))
        first = next((tool for tool in self.offered if tool.name == chosen), self.offered[0] if self.offered else None)
        begin = (
            {"tool": first.name, "arguments": canonical.pretty(simulation.example(first), indent=2)} if first else {}
        )
        super().__init__(data, initial={"person": user.get_username(), **begin})
        tool, kind = self.fields["tool"], self.fields["kind"]
        assert isinstance(tool, forms.ChoiceField)
        assert isinstance(kind, forms.ChoiceField)
        tool.choices = [
            (each.name, each.name if each.published else translatable(f"{each.name} (draft: only tests in the Studio)"))
            for each in self.offered
        ]
        kind.choices = [(value, name) for value, name in KINDS.items() if value != "studio" or may_author(user)]
        if not may_administer(user):
            del self.fields["person"]

    @property
    def people(self) -> list[str]:
        if "person" not in self.fields:
            return []
        names = User.objects.filter(is_active=True).order_by("username").values_list("username", flat=True)
        # What has hidden characters cannot be told apart there.
        return [name for name in names[:MOST_PEOPLE_SHOWN] if see(name).plain == name]

    def clean_person(self) -> User:
        found = User.objects.filter(username=self.cleaned_data["person"]).first()
        return required(found, forms.ValidationError(_("Nobody has this name.")))

    def simulated(self) -> simulation.Simulated | None:
        """None when the call cannot be made up like this; the form says why."""
        given, user = self.cleaned_data, self.cleaned_data.get("person", self.user)
        try:
            judge = async_to_sync(simulation.simulate)
            return judge(given["tool"], given["arguments"], user, given["kind"], args_from_outside=given["outside"])
        except simulation.NoSuchTool as error:
            self.add_error("tool", str(error))
        except BadArguments as error:
            self.add_error("arguments", str(error))
        return None


class RulesForm(forms.Form):
    decided_by = forms.ChoiceField(
        label=_("Who decides"),
        choices=[(value, _(label)) for value, label in DecidedBy.choices],
        widget=forms.RadioSelect,
    )
    group = forms.ModelChoiceField(named_groups(), label=_("Group"), required=False, empty_label=_("(none)"))
    second = forms.ModelChoiceField(
        named_groups(),
        label=_("Then one of"),
        required=False,
        empty_label=_("(nobody)"),
        help_text=_("Another group that approves after the first: one person of each, all of them different people."),
    )
    third = forms.ModelChoiceField(
        named_groups(), label=_("And then one of"), required=False, empty_label=_("(nobody)")
    )
    quorum = forms.IntegerField(
        label=_("Required approvals"),
        min_value=1,
        max_value=MOST_PEOPLE,
        help_text=format_lazy(
            _("Different people, 1 to {most}; of several groups one each. One person is enough to decline."),
            most=MOST_PEOPLE,
        ),
    )
    not_the_requester = forms.BooleanField(
        label=_("Never the person it is called for"),
        required=False,
        help_text=_("Four eyes, even if that person is in the group."),
    )
    escalate_to = forms.ModelChoiceField(
        named_groups(),
        label=_("Others who may decide too, after some time"),
        required=False,
        empty_label=_("(nobody)"),
    )
    escalate_after_seconds = forms.IntegerField(
        label=_("Seconds until they may decide"),
        min_value=1,
        required=False,
        help_text=_("Counted from the time of asking."),
    )

    # On the page only once it is asked for, somewhere below: then it gets the focus.
    confirm_lowering = forms.BooleanField(
        required=False,
        label=_("I understand that fewer or other people will decide"),
        widget=forms.CheckboxInput({"autofocus": True}),
    )
    # What a person has not confirmed yet, in words.
    weaker: tuple[str, ...] = ()

    def __init__(self, rules: Rules, data: Any = None) -> None:
        super().__init__(data, initial={name: getattr(rules, name) for name in RULES})

    @property
    def rules(self) -> Rules:
        """Return the rules as filled in: chosen groups count where a group decides."""
        given = {name: self.cleaned_data[name] for name in RULES}
        given["decided_by"] = DecidedBy(given["decided_by"])
        if given["decided_by"] != DecidedBy.GROUP:
            given |= {"group": None, "second": None, "third": None}
        return Rules(**given | oversight.chain(given["second"], given["third"]))


@signed_in.reads
def page(request: HttpRequest) -> HttpResponse:
    form = MadeUpCall(person(request), chosen=request.GET.get("tool", ""))
    return render(request, "policies/page.html", _context(request, form))


@signed_in.reads
def example(request: HttpRequest) -> HttpResponse:
    """Show the field of the arguments again for another tool."""
    form = MadeUpCall(person(request), chosen=request.GET.get("tool", ""))
    return render(request, "policies/_arguments.html", {"form": form})


@signed_in.form
def simulate(request: HtmxRequest) -> HttpResponse:
    if request.method != "POST":
        # Whoever has signed in again in between comes like this.
        return redirect(reverse("policies") + "#simulate")
    form = MadeUpCall(person(request), request.POST)
    found = form.simulated() if form.is_valid() else None
    fragment = bool(request.htmx)
    template = "policies/_simulate.html" if fragment else "policies/page.html"
    context: dict[str, object] = {"form": form} if fragment else _context(request, form)
    context |= {"found": found, "verdict": VERDICTS.get(found.verdict) if found else None}
    # htmx shows no answer with another status.
    return render(request, template, context, status=200 if found or fragment else 422)


@administrators_only("Only administrators see and change who decides calls to a tool.").form
def rules(request: HttpRequest, name: str) -> HttpResponse:
    tool = get_object_or_404(Tool, name=name)
    form = RulesForm(oversight.of(tool), request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return _rules_page(request, tool, form, status=422 if form.is_bound else 200)
    confirmed, seen = form.cleaned_data["confirm_lowering"], request.POST.get("seen", "")
    try:
        ruling.change(tool, form.rules, actor_of(request), seen=seen, confirmed=confirmed)
    except NotConfirmed as error:
        form.weaker = error.weaker
        return _rules_page(request, tool, form, status=422)
    except BadRules as bad:
        for field, words in bad.errors.items():
            form.add_error(field, words)
        return _rules_page(request, tool, form, status=422)
    except ruling.Stale as stale:
        form.add_error(None, str(stale))
        return _rules_page(request, tool, form, status=409)
    messages.success(request, _("Saved. The rules apply from now on."))
    return redirect("tool-rules", name)


@_texts_only.form
def texts(request: HttpRequest, name: str = "") -> HttpResponse:
    """Show what models read about calls of all tools, or of the one with this name."""
    tool = _texts_tool(name)
    if request.method != "POST":
        return render(request, "texts/page.html", _texts_context(tool))
    typed, confirmed = _typed_texts(request.POST), request.POST.get("confirm_lowering") == "on"
    try:
        results.save(tool, typed, actor_of(request), confirmed=confirmed)
    except NotConfirmed as error:
        context = _texts_context(tool, typed) | {"refused": False, "weaker": error.weaker}
    except results.BadTexts:
        # Each field says itself what is wrong with it.
        context = _texts_context(tool, typed)
    else:
        messages.success(request, _("Saved. Models read these texts from now on."))
        return redirect(_texts_address(tool))
    return render(request, "texts/page.html", context, status=422)


@_texts_only.posts
def texts_example(request: HttpRequest, name: str = "") -> HttpResponse:
    """Return what a model would read by what is typed at one field (`outcome`), or what is wrong with it."""
    found = results.fields(_texts_tool(name), _typed_texts(request.POST))
    field = next((each for each in found if each.outcome == request.GET.get("outcome")), None)
    if field is None:
        raise Http404("There is no such outcome.")
    return render(request, "texts/_example.html", {"field": field})


def _context(request: HttpRequest, form: MadeUpCall) -> dict[str, object]:
    published = list(listed().filter(published=True))
    context: dict[str, object] = {"section": "policies", "lines": lines(published), "form": form}
    if not (may_administer(request.user) or may_decide_for_others(request.user)):
        return context
    found = coverage(published)
    return context | {
        "covered": [each for each in found if each.can_run_unasked],
        "others": sum(len(each.tools) for each in found if not each.can_run_unasked),
        "headings": HEADINGS.values(),
    }


def _rules_page(request: HttpRequest, tool: Tool, form: RulesForm, status: int) -> HttpResponse:
    now = oversight.of(tool)
    able = list(ruling.able(now)[: MOST_NAMED + 1])
    words = who.words(now.as_json, who.REQUESTER)
    context = {
        "section": "studio",
        "tool": tool,
        "form": form,
        "seen": now.digest,
        "words": words[:1].upper() + words[1:],
        "able": able[:MOST_NAMED],
        "more_able": len(able) > MOST_NAMED,
        "has_groups": named_groups().exists(),
        "asked_before": ruling.asked_before(tool),
        "fresh": tool.care >= oversight.HIGHEST_RISK,
    }
    return render(request, "approvals/rules.html", context, status=status)


def _texts_tool(name: str) -> Tool | None:
    return get_object_or_404(Tool, name=name) if name else None


def _texts_address(tool: Tool | None) -> str:
    return reverse("tool-texts", args=[tool.name]) if tool else reverse("texts")


def _typed_texts(sent: QueryDict) -> dict[str, str]:
    return {outcome: results.tidy(sent.get(outcome, "")) for outcome in Outcome.values}


def _texts_context(tool: Tool | None, typed: dict[str, str] | None = None) -> dict[str, object]:
    context: dict[str, object] = {
        "section": "policies",
        "tool": tool,
        "fields": results.fields(tool, typed),
        "longest": LONGEST_TEXT,
        "address": _texts_address(tool),
        "refused": typed is not None,
    }
    if tool is None:
        named = set(ModelText.objects.filter(tool__isnull=False).values_list("tool__name", flat=True))
        names = Tool.objects.values_list("name", flat=True)[:MOST_TOOLS]
        context["tools"] = [(each, each in named) for each in names]
    return context
