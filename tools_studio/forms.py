"""The Studio's form: what an author types, turned into a draft."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django_ace import AceWidget

from hitlchat.gate.models import DEFAULT_PROMPT, HitlMode, Tool
from tools_studio import capabilities
from tools_studio.authoring import Draft, lowers
from tools_studio.models import Script

NEW_TOOL = '''def run(text: str) -> str:
    """Say what the tool does, in one line: the model and the approver read it.

    text: what the argument means
    """
    return text.upper()
'''


class ToolForm(forms.Form):
    name = forms.CharField(max_length=64, help_text="Letters, digits, _ and -: the model calls it by this name.")
    title = forms.CharField(max_length=120, required=False)
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
    now = forms.BooleanField(required=False, label="Clock")
    store = forms.BooleanField(required=False, label="Store")
    hosts = forms.CharField(
        required=False,
        label="Network",
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "api.example.com"}),
        help_text="Hosts that fetch may reach, one a line. Empty: no network.",
    )
    destructive = forms.BooleanField(required=False, label="Destroys what cannot be brought back")
    hitl_mode = forms.ChoiceField(choices=HitlMode.choices, widget=forms.RadioSelect, required=False)
    condition = forms.CharField(
        required=False,
        max_length=2000,
        label="Ask when",
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": 'float(args["amount"]) > 100'}),
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
        required=False, min_value=1, max_value=30 * 86400, label="Seconds to answer", help_text="Empty: the default."
    )
    lower_anyway = forms.BooleanField(required=False, label="Yes, ask less often than before")

    def __init__(self, *args: Any, tool: Tool | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tool = tool
        self.asks_to_lower = False
        # A new tool may leave it open: its risk decides then.
        self.fields["hitl_mode"].required = tool is not None
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.tool and lowers(self.tool, cleaned.get("hitl_mode")) and not cleaned.get("lower_anyway"):
            self.asks_to_lower = True
            self.add_error(
                "hitl_mode", "This tool would be asked about less often than now. Confirm it below, then save."
            )
        return cleaned

    def draft(self) -> Draft:
        """The draft of a valid form."""
        data = self.cleaned_data
        return Draft(
            name=data["name"],
            title=data["title"],
            group=data["group"],
            code=data["code"].replace("\r\n", "\n"),
            capabilities=declared(data),
            hitl_mode=data["hitl_mode"] or None,
            condition=data["condition"],
            prompt_template=data["prompt_template"],
            deadline_seconds=data["deadline_seconds"],
            example=self.tool.example if self.tool else None,
        )

    def show(self, problems: dict[str, str]) -> None:
        """Put an AuthoringError's problems at their fields."""
        for name, text in problems.items():
            field = {"capabilities": "hosts", "example": None}.get(name, name)
            self.add_error(field, text)


def declared(data: Mapping[str, Any]) -> dict[str, Any]:
    """The capabilities as the form has them, valid or not."""
    granted: dict[str, Any] = {name: True for name in ("now", "store", "destructive") if data.get(name)}
    if hosts := str(data.get("hosts", "")).split():
        granted["fetch"] = {"mode": "allowlist", "hosts": hosts}
    return granted


def initial(tool: Tool) -> dict[str, Any]:
    """The form's values for a tool that exists."""
    script: Script = tool.script
    granted = capabilities.parse(script.capabilities)
    return {
        "name": tool.name,
        "title": tool.title,
        "group": script.group,
        "code": script.code,
        "now": granted.now,
        "store": granted.store,
        "destructive": granted.destructive,
        "hosts": "\n".join(granted.hosts),
        "hitl_mode": tool.hitl_mode,
        "condition": tool.condition,
        "prompt_template": tool.prompt_template,
        "deadline_seconds": tool.deadline_seconds,
    }
