"""The page on which administrators say who decides about a tool, whatever its source."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from hitlchat.accounts.access import administrators_only
from hitlchat.accounts.roles import named_groups
from hitlchat.gate import oversight, ruling, who
from hitlchat.gate.actor import actor_of
from hitlchat.gate.models import DecidedBy, Tool
from hitlchat.gate.models.tools import MOST_PEOPLE
from hitlchat.gate.oversight import Rules
from hitlchat.gate.ruling import BadRules


class RulesForm(forms.Form):
    decided_by = forms.ChoiceField(label="Who decides", choices=DecidedBy.choices, widget=forms.RadioSelect)
    group = forms.ModelChoiceField(Group.objects.none(), label="Group", required=False, empty_label="(none)")
    quorum = forms.IntegerField(
        label="How many have to approve",
        min_value=1,
        max_value=MOST_PEOPLE,
        help_text=f"Different people, 1 to {MOST_PEOPLE}. One who declines is enough to decline.",
    )
    not_the_requester = forms.BooleanField(
        label="Never the person it is called for", required=False, help_text="Four eyes, also where that one is in it."
    )
    escalate_to = forms.ModelChoiceField(
        Group.objects.none(), label="Others who may decide too, after some time", required=False, empty_label="(nobody)"
    )
    escalate_after_seconds = forms.IntegerField(
        label="After how many seconds", min_value=1, required=False, help_text="Counted from when it is asked."
    )

    def __init__(self, rules: Rules, data: Any = None) -> None:
        names = ("decided_by", "group", "quorum", "not_the_requester", "escalate_to", "escalate_after_seconds")
        super().__init__(data, initial={name: getattr(rules, name) for name in names})
        for name in ("group", "escalate_to"):
            field = self.fields[name]
            assert isinstance(field, forms.ModelChoiceField)
            field.queryset = named_groups()

    @property
    def rules(self) -> Rules:
        """As they were filled in: a group that is chosen counts where a group decides."""
        given = self.cleaned_data
        decided_by = DecidedBy(given["decided_by"])
        return Rules(
            decided_by=decided_by,
            group=given["group"] if decided_by == DecidedBy.GROUP else None,
            quorum=given["quorum"],
            not_the_requester=given["not_the_requester"],
            escalate_to=given["escalate_to"],
            escalate_after_seconds=given["escalate_after_seconds"],
        )

    def refuse(self, bad: BadRules) -> None:
        for name, said in bad.problems.items():
            self.add_error(name, said)


MOST_NAMED = 20


@administrators_only("Only administrators see and change who decides about a tool.")
@require_http_methods(["GET", "HEAD", "POST"])
def rules(request: HttpRequest, name: str) -> HttpResponse:
    tool = get_object_or_404(Tool, name=name)
    form = RulesForm(oversight.of(tool), request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return _page(request, tool, form, status=422 if form.is_bound else 200)
    actor = actor_of(request)
    try:
        ruling.change(tool, form.rules, actor, seen=request.POST.get("seen", ""))
    except ruling.BadRules as bad:
        form.refuse(bad)
        return _page(request, tool, form, status=422)
    except ruling.Stale as stale:
        form.add_error(None, str(stale))
        return _page(request, tool, form, status=409)
    messages.success(request, "It counts from now on.")
    return redirect("tool-rules", name)


def _page(request: HttpRequest, tool: Tool, form: RulesForm, status: int = 200) -> HttpResponse:
    standing = oversight.of(tool)
    able = list(ruling.able(standing)[: MOST_NAMED + 1])
    said = who.words(standing.as_json, who.REQUESTER)
    context = {
        "section": "studio",
        "tool": tool,
        "form": form,
        "seen": standing.digest,
        "said": said[:1].upper() + said[1:],
        "able": able[:MOST_NAMED],
        "more_able": len(able) > MOST_NAMED,
        "has_groups": named_groups().exists(),
        "asked_before": ruling.asked_before(tool),
        "fresh": tool.risk_level >= oversight.HIGHEST_RISK,
        "told": [str(each) for each in messages.get_messages(request)],
    }
    return render(request, "approvals/rules.html", context, status=status)
