"""The form in which an administrator says who decides about one tool."""

from typing import Any

from django import forms
from django.contrib.auth.models import Group

from hitlchat.accounts.roles import named_groups
from hitlchat.gate.models import DecidedBy
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
