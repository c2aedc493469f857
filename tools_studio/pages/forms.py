"""The Studio's form: what an author types, turned into a draft, with its variables and its capabilities."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from django import forms
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop
from django_ace import AceWidget

from hitlchat.accounts.access import person
from hitlchat.gate import loosening
from hitlchat.gate import spec as gate_spec
from hitlchat.gate.deciders import what_signed_in_only_means
from hitlchat.gate.loosening import Guard, guard_of
from hitlchat.gate.models import LONGEST_DEADLINE, HitlMode, Tool
from hitlchat.secrets import values
from tools_studio import capabilities, cases, spec, variables
from tools_studio.models import Category
from tools_studio.spec import LONGEST_DESCRIPTION, MOST_TAGS, AuthoringError, Draft

FLAGS = ("store", "secrets", "now", "random", "sleep", "destructive")
FETCH_MODES = (
    ("", gettext_noop("Off")),
    ("public", gettext_noop("Public")),
    ("allowlist", gettext_noop("Named hosts")),
    ("open", gettext_noop("Open")),
)
FILES_MODES = (("", gettext_noop("Off")), ("read", gettext_noop("Read")), ("write", gettext_noop("Read and write")))
PLAIN = capabilities.Fetch("public")
SPARE = values.Row(0, secret=False)

# The fields of a tool that have one field of the form each; the others are put together from several.
AS_TYPED = [name for name in spec.KEYS if name not in ("tags", "capabilities", "example", "variables")]
# Of each number of a fetch, by its field, the key in a declaration.
NUMBERS = {name: key for name, (key, *_) in capabilities.FETCH_NUMBERS.items()}
# The form's field for each dotted place in a declaration.
FIELDS = {
    "fetch": "fetch_mode",
    "fetch.mode": "fetch_mode",
    "fetch.hosts": "hosts",
    "fetch.methods": "methods",
    **{f"fetch.{key}": name for name, key in NUMBERS.items()},
    "files": "files_mode",
    "files.mode": "files_mode",
    "files.folder": "files_folder",
    "email": "email_to",
    "email.to": "email_to",
    "webhook": "webhook_targets",
    "webhook.targets": "webhook_targets",
    **{name: name for name in FLAGS},
}


def _switch(label: str, help_text: str) -> forms.BooleanField:
    return forms.BooleanField(required=False, label=label, help_text=help_text)


def _lines(label: str, help_text: str, example: str) -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 3, "placeholder": example, "spellcheck": "false", "class": "mono"})
    return forms.CharField(required=False, label=label, help_text=help_text, widget=area)


def _limit(label: str, help_text: str) -> forms.CharField:
    # The declaration's own reading refuses what is no number, in the same words as everywhere.
    digits = forms.TextInput(attrs={"inputmode": "decimal"})
    return forms.CharField(required=False, label=label, help_text=help_text, widget=digits)


def declared(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capabilities that the form declares, valid or not; `data` is cleaned, initial or posted."""
    granted: dict[str, Any] = {name: True for name in FLAGS if data.get(name)}
    if mode := data.get("fetch_mode"):
        granted["fetch"] = {
            "mode": mode,
            "hosts": str(data.get("hosts") or "").split(),
            # A posted form would give the last one alone.
            "methods": data.getlist("methods") if isinstance(data, QueryDict) else list(data.get("methods") or []),
            **{
                key: _number(data.get(name), getattr(PLAIN, name))
                for name, (key, *_) in capabilities.FETCH_NUMBERS.items()
            },
        }
    if mode := data.get("files_mode"):
        folder = str(data.get("files_folder") or "").strip() or str(data.get("name") or "").lower()
        granted["files"] = {"mode": mode, "folder": folder}
    if data.get("email"):
        granted["email"] = {"to": str(data.get("email_to") or "").split()}
    if data.get("webhook"):
        granted["webhook"] = {"targets": str(data.get("webhook_targets") or "").split()}
    return granted


def _number(typed: object, default: float) -> object:
    """Return the number, or a text that is none, which parsing the declaration refuses."""
    text = str(typed if typed is not None else "").strip()
    if not text:
        return default
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


class ToolForm(forms.Form):
    """`example` are the arguments to keep with the draft, as far as its signature takes them."""

    fetch_mode = forms.ChoiceField(choices=FETCH_MODES, required=False, label="Network", widget=forms.RadioSelect)
    hosts = _lines("Hosts, one per line", "An exact host, a host and port, or *.example.com.", "api.example.com")
    methods = forms.MultipleChoiceField(
        choices=[(each, each) for each in capabilities.FETCH_METHODS],
        required=False,
        label="Methods",
        widget=forms.CheckboxSelectMultiple,
    )
    max_bytes = _limit("Largest answer, in bytes", f"At most {capabilities.MOST_BYTES:,}.")
    timeout_seconds = _limit("Seconds for a request", f"At most {capabilities.MOST_SECONDS:g}.")
    redirects = _limit("Redirects to follow", f"At most {capabilities.MOST_REDIRECTS}; 0 follows none.")
    email = _switch("E-mail", "Sends plain text messages to the recipients below, and to nobody else.")
    email_to = _lines(
        "Recipients, one per line", "An address, @example.com for everyone there, or * for anyone.", "ops@example.com"
    )
    webhook = _switch("Webhook", "Sends JSON to an address kept in a variable. The code never sees a secret address.")
    webhook_targets = _lines(
        "Names of variables, one per line", "Variables that hold the addresses. Add them under Variables.", "ALERTS_URL"
    )
    store = _switch("Store", "Keeps small values between calls. All tools of the group share them.")
    files_mode = forms.ChoiceField(choices=FILES_MODES, required=False, label="Files", widget=forms.RadioSelect)
    files_folder = forms.CharField(
        required=False,
        label="Folder",
        help_text=("Tools that name the same folder share it. Leave empty to use the tool's name."),
    )
    secrets = _switch("Secrets", "Lets the code read its secrets. fetch(auth=…) and webhook(…) work without this.")
    now = _switch("Clock", "Reads the date and the time.")
    random = _switch("Random numbers", "Uses unpredictable random numbers.")
    sleep = _switch("Waiting", "Pauses for a few seconds, for example between two tries.")
    destructive = _switch(
        "Permanently deletes data",
        "A warning rather than a capability: the level becomes L5, and approvers must confirm their review.",
    )
    name = forms.CharField(max_length=64, help_text="Letters, digits, _ and -. Models call the tool by this name.")
    title = forms.CharField(max_length=gate_spec.LONGEST["title"], required=False, help_text="For people, in lists.")
    description = forms.CharField(
        required=False,
        max_length=LONGEST_DESCRIPTION,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Models read this. Leave empty to use the docstring of run().",
    )
    category = forms.ChoiceField(choices=[(each, _(each)) for each in Category.values], initial=Category.CUSTOM)
    tags = forms.CharField(
        required=False, help_text=f"At most {MOST_TAGS}, comma-separated, such as invoices, finance."
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
    # Only a place for errors: the rows are read as they were posted.
    variables = forms.CharField(required=False)
    hitl_mode = forms.ChoiceField(label="Approval", choices=HitlMode.choices, widget=forms.RadioSelect, required=False)
    condition = forms.CharField(
        required=False,
        max_length=gate_spec.LONGEST["condition"],
        label="Ask when",
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": 'float(args["amount"]) > 100', "class": "mono"}),
        help_text="A Python expression over args and caller. If it is true, the call needs approval.",
    )
    prompt_template = forms.CharField(
        required=False,
        max_length=gate_spec.LONGEST["prompt_template"],
        label="Approval prompt",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="{toolName}, {args} and {args.NAME} are replaced. Leave empty for the title and the arguments.",
    )
    deadline_seconds = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=LONGEST_DEADLINE,
        label="Seconds to answer",
        help_text="Leave empty for the default.",
    )
    signed_in_only = forms.BooleanField(required=False, label="A signed-in person must decide")
    lower_anyway = forms.BooleanField(required=False, label="I understand that fewer calls will be reviewed")
    # The version that the page was made from: a newer one is not overwritten unseen.
    made_from = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)

    def __init__(
        self, request: HttpRequest, data: QueryDict | None = None, *, tool: Tool | None = None, draft: Draft
    ) -> None:
        super().__init__(data, initial=initial(draft, tool))
        self.tool = tool
        self.example = draft.example
        self.asks_to_lower = self.asks_by_other_rule = False
        # What a person has not confirmed yet, in words.
        self.weaker: tuple[str, ...] = ()
        stored = spec.stored_variables(tool.script).values() if tool else ()
        if data is None:
            self.declared = draft.variables
            self.rows = values.rows(draft.variables, stored, variables.resolve(stored).missing, spare=SPARE)
        else:
            self.rows, self.declared = values.posted(data, "variable", stored, person(request).pk, spare=SPARE)
        self.fields["signed_in_only"].help_text = what_signed_in_only_means()
        # A new tool may leave it open: its risk decides then.
        self.fields["hitl_mode"].required = tool is not None
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name, value in declared(cleaned).items():
            try:
                capabilities.parse({name: value})
            except capabilities.CapabilityError as error:
                self.refuse(error)
        if self.tool is None or cleaned.get("lower_anyway"):
            return cleaned
        mode, condition = cleaned.get("hitl_mode"), cleaned.get("condition", "").replace("\r\n", "\n")
        before = guard_of(self.tool)
        after = Guard(mode or before.hitl_mode, condition, cleaned["signed_in_only"])
        if loosening.asks_otherwise(before, after):
            self.asks_to_lower = self.asks_by_other_rule = True
            self.add_error("condition", "Calls that ask now may run unseen. Confirm it below, then save.")
        if loosening.lowers(before, after):
            self.asks_to_lower = True
            words = "This tool would be asked about less often than now. Confirm it below, then save."
            self.add_error("hitl_mode", words)
        if loosening.trusts(before, after):
            self.asks_to_lower = True
            self.add_error("signed_in_only", "The word of an MCP client would be enough. Confirm it below, then save.")
        return cleaned

    def draft(self) -> Draft:
        values = {name: self.cleaned_data[name] for name in AS_TYPED}
        # A browser sends each line's end as two characters.
        typed = {key: each.replace("\r\n", "\n") if isinstance(each, str) else each for key, each in values.items()}
        # `Finance, invoices,` is two tags.
        tags = (tag.strip().lower() for tag in self.cleaned_data["tags"].split(","))
        return Draft(
            **typed | {"hitl_mode": typed["hitl_mode"] or None},
            tags=tuple(dict.fromkeys(filter(None, tags))),
            capabilities=declared(self.cleaned_data),
            example=cases.fitting(self.example, typed["code"]),
            variables=self.declared,
        )

    def refuse(self, error: capabilities.CapabilityError) -> None:
        """Show the error of a declaration at the form's field for its dotted place."""
        self.add_error(FIELDS.get(error.field), error.sentence)

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Show at its fields why a draft could not be saved in this block, or what to confirm first."""
        try:
            yield
        except loosening.NotConfirmed as error:
            self.weaker = error.weaker
        except AuthoringError as error:
            for name, text in error.errors.items():
                if name == "capabilities" and error.capability is not None:
                    self.refuse(error.capability)
                else:
                    self.add_error(name if name in self.fields else None, text)


def initial(draft: Draft, tool: Tool | None) -> dict[str, Any]:
    granted = capabilities.parse(draft.capabilities)
    fetch, files = granted.fetch or PLAIN, granted.files
    return {
        **{name: getattr(draft, name) for name in AS_TYPED},
        "hitl_mode": draft.hitl_mode or "",
        "tags": ", ".join(draft.tags),
        "made_from": tool.script.version if tool else None,
        **{name: getattr(granted, name) for name in FLAGS},
        "fetch_mode": granted.fetch.mode if granted.fetch else "",
        "hosts": "\n".join(fetch.hosts),
        "methods": list(fetch.methods),
        "max_bytes": str(fetch.max_bytes),
        "timeout_seconds": f"{fetch.timeout_seconds:g}",
        "redirects": str(fetch.redirects),
        "files_mode": files.mode if files else "",
        "files_folder": files.folder if files else "",
        "email": bool(granted.email),
        "email_to": "\n".join(granted.email),
        "webhook": bool(granted.webhook),
        "webhook_targets": "\n".join(granted.webhook),
    }
