"""The Studio's form: what an author types, turned into a draft."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django_ace import AceWidget

from hitlchat.gate import loosening
from hitlchat.gate.deciders import what_signed_in_only_means
from hitlchat.gate.loosening import Guard, guard_of
from hitlchat.gate.models import DEFAULT_PROMPT, LONGEST_DEADLINE, HitlMode, Tool
from tools_studio import columns, examples, powers_form, variable_rows
from tools_studio.authoring import Draft
from tools_studio.drafts import MOST_TAGS
from tools_studio.models import Category
from tools_studio.powers_form import PowersForm, declared
from tools_studio.variable_rows import Row
from tools_studio.variables import Kept


class ToolForm(PowersForm):
    """`example` are the arguments to keep with the draft, as far as its signature takes them."""

    name = forms.CharField(max_length=64, help_text="Letters, digits, _ and -: the model calls it by this name.")
    title = forms.CharField(max_length=120, required=False, help_text="For people, in lists.")
    description = forms.CharField(
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="What the model is told. Empty: the docstring of run().",
    )
    category = forms.ChoiceField(choices=Category.choices, initial=Category.CUSTOM)
    tags = forms.CharField(
        required=False, help_text=f"At most {MOST_TAGS}, with commas between them, such as invoices, finance."
    )
    group = forms.CharField(max_length=64, initial="tools", help_text="Tools of one group share one store.")
    code = forms.CharField(
        strip=False,
        widget=AceWidget(
            mode="python",
            useStrictCSP=True,
            width=None,
            height=None,
            toolbar=False,
            useworker=False,
            showprintmargin=False,
            tabsize=4,
            attrs={"form": "tool-form"},
        ),
    )
    # Only a place for errors: the rows are read as they were posted, see variable_rows.
    variables = forms.CharField(required=False)
    hitl_mode = forms.ChoiceField(label="HITL mode", choices=HitlMode.choices, widget=forms.RadioSelect, required=False)
    condition = forms.CharField(
        required=False,
        max_length=2000,
        label="Ask when",
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": 'float(args["amount"]) > 100', "class": "mono"}),
        help_text="A Python expression over args. Where it is true the call asks.",
    )
    prompt_template = forms.CharField(
        required=False,
        max_length=500,
        label="Approval prompt",
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": DEFAULT_PROMPT}),
        help_text="With {toolName}, {args} or {args.NAME} filled in.",
    )
    deadline_seconds = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=LONGEST_DEADLINE,
        label="Seconds to answer",
        help_text="Empty: the default.",
    )
    signed_in_only = forms.BooleanField(required=False, label="A signed-in person must decide")
    lower_anyway = forms.BooleanField(required=False, label="Yes, less oversight than before")
    # The version that the page was made from: a newer one is not overwritten unseen.
    made_from = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, tool: Tool | None = None, draft: Draft, **kwargs: Any
    ) -> None:
        super().__init__(data, initial=initial(draft, tool), **kwargs)
        self.tool = tool
        self.example = draft.example
        self.asks_to_lower = False
        standing: Mapping[str, Kept] = columns.kept(tool.script) if tool else {}
        shown = variable_rows.of(draft.variables, standing) if data is None else variable_rows.typed(data, standing)
        self.rows: list[Row] = shown
        self.fields["signed_in_only"].help_text = what_signed_in_only_means()
        # A new tool may leave it open: its risk decides then.
        self.fields["hitl_mode"].required = tool is not None
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if self.tool and not cleaned.get("lower_anyway"):
            self._ask_to_lower(self.tool, cleaned)
        return cleaned

    def _ask_to_lower(self, tool: Tool, cleaned: dict[str, Any]) -> None:
        mode, condition = cleaned.get("hitl_mode"), cleaned.get("condition", "").replace("\r\n", "\n")
        before = guard_of(tool)
        after = Guard(mode or before.mode, condition, cleaned["signed_in_only"])
        if loosening.asks_otherwise(before, after):
            self.asks_to_lower = True
            self.add_error("condition", "Calls that ask now may run unseen. Confirm it below, then save.")
        if loosening.lowers(before, after):
            self.asks_to_lower = True
            self.add_error(
                "hitl_mode", "This tool would be asked about less often than now. Confirm it below, then save."
            )
        if loosening.trusts(before, after):
            self.asks_to_lower = True
            self.add_error("signed_in_only", "The word of an MCP client would be enough. Confirm it below, then save.")

    def draft(self) -> Draft:
        """The draft of a valid form."""
        data = self.cleaned_data
        code = data["code"].replace("\r\n", "\n")
        return Draft(
            name=data["name"],
            title=data["title"],
            description=data["description"].replace("\r\n", "\n"),
            group=data["group"],
            category=data["category"],
            tags=tags(data["tags"]),
            code=code,
            capabilities=declared(data),
            hitl_mode=data["hitl_mode"] or None,
            condition=data["condition"].replace("\r\n", "\n"),
            prompt_template=data["prompt_template"].replace("\r\n", "\n"),
            deadline_seconds=data["deadline_seconds"],
            signed_in_only=data["signed_in_only"],
            example=examples.fitting(self.example, code),
            variables=variable_rows.variables(self.data),
        )

    def show(self, problems: dict[str, str]) -> None:
        """Put an AuthoringError's problems at their fields."""
        for name, text in problems.items():
            if name == "capabilities":
                place, _, message = text.partition(": ")
                self.refuse(place, message or text)
            else:
                self.add_error(name if name in self.fields else None, text)


def tags(typed: str) -> tuple[str, ...]:
    """`Finance, invoices,` is two tags, in small letters."""
    words = (word.strip().lower() for word in typed.split(","))
    return tuple(dict.fromkeys(word for word in words if word))


def initial(draft: Draft, tool: Tool | None) -> dict[str, Any]:
    """The form's values for a draft."""
    return {
        "name": draft.name,
        "title": draft.title,
        "description": draft.description,
        "group": draft.group,
        "category": draft.category,
        "tags": ", ".join(draft.tags),
        "code": draft.code,
        "hitl_mode": draft.hitl_mode or "",
        "condition": draft.condition,
        "prompt_template": draft.prompt_template,
        "deadline_seconds": draft.deadline_seconds,
        "signed_in_only": draft.signed_in_only,
        "made_from": tool.script.version if tool else None,
        **powers_form.initial(draft.capabilities),
    }
