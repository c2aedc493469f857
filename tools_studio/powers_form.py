"""The part of the Studio's form that grants capabilities: each off until ticked, with its settings beside it."""

from collections.abc import Mapping
from typing import Any

from django import forms

from tools_studio import capabilities
from tools_studio.capabilities import FETCH_METHODS, MOST_BYTES, MOST_REDIRECTS, MOST_SECONDS, CapabilityError, Fetch

FLAGS = ("store", "secrets", "now", "random", "sleep", "destructive")
METHODS = tuple((method, method) for method in FETCH_METHODS)
FETCH_MODES = (("", "Off"), ("public", "Public"), ("allowlist", "Named hosts"), ("open", "Open"))
FILES_MODES = (("", "Off"), ("read", "Read"), ("write", "Read and write"))
PLAIN = Fetch("public")

# The form's field for each dotted place in a declaration.
FIELDS = {
    "fetch": "fetch_mode",
    "fetch.mode": "fetch_mode",
    "fetch.hosts": "hosts",
    "fetch.methods": "methods",
    "fetch.maxBytes": "max_bytes",
    "fetch.timeoutSeconds": "timeout_seconds",
    "fetch.redirects": "redirects",
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


def _limit(label: str, help_text: str, initial: float) -> forms.CharField:
    # What is no number is said by the declaration's own reading, in the same words as everywhere.
    digits = forms.TextInput(attrs={"inputmode": "decimal"})
    return forms.CharField(required=False, label=label, help_text=help_text, initial=f"{initial:g}", widget=digits)


class PowersForm(forms.Form):
    fetch_mode = forms.ChoiceField(choices=FETCH_MODES, required=False, label="Network", widget=forms.RadioSelect)
    hosts = _lines("Hosts, one a line", "An exact host, a host and port, or *.example.com.", "api.example.com")
    methods = forms.MultipleChoiceField(
        choices=METHODS, required=False, label="Methods", initial=FETCH_METHODS, widget=forms.CheckboxSelectMultiple
    )
    max_bytes = forms.CharField(
        required=False,
        label="Largest answer, in bytes",
        help_text=f"At most {MOST_BYTES:,}.",
        initial=str(PLAIN.max_bytes),
        widget=forms.TextInput(attrs={"inputmode": "numeric"}),
    )
    timeout_seconds = _limit("Seconds for a request", f"At most {MOST_SECONDS:g}.", PLAIN.timeout_seconds)
    redirects = _limit("Redirects to follow", f"At most {MOST_REDIRECTS}; 0 follows none.", PLAIN.redirects)
    email = _switch("E-mail", "Sends plain text messages to the recipients below, and to nobody else.")
    email_to = _lines(
        "Recipients, one a line", "An address, @example.com for everyone there, or * for anyone.", "ops@example.com"
    )
    webhook = _switch("Webhook", "Sends JSON to an address kept in a variable. The code never sees a secret address.")
    webhook_targets = _lines(
        "Names of variables, one a line", "Those that hold the addresses; add them under Variables.", "ALERTS_URL"
    )
    store = _switch("Store", "Keeps small values between calls. All tools of the group share them.")
    files_mode = forms.ChoiceField(choices=FILES_MODES, required=False, label="Files", widget=forms.RadioSelect)
    files_folder = forms.CharField(
        required=False, label="Folder", help_text="Tools that name the same folder share it. Empty: the tool's name."
    )
    secrets = _switch("Secrets", "Lets the code read its secrets. fetch(auth=…) and webhook(…) work without it.")
    now = _switch("Clock", "Reads the date and the time.")
    random = _switch("Chance", "Uses random numbers that nobody can foresee.")
    sleep = _switch("Waiting", "Pauses for some seconds, such as between two tries.")
    destructive = _switch(
        "Destroys what cannot be brought back",
        "Not a power but a warning: the level becomes L5, and whoever approves has to confirm a review.",
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name, value in declared(cleaned).items():
            try:
                capabilities.parse({name: value})
            except CapabilityError as error:
                self.refuse(error.field, str(error).removeprefix(f"{error.field}: "))
        return cleaned

    def refuse(self, place: str, message: str) -> None:
        """Show what is wrong with a declaration at the field that its dotted place belongs to."""
        self.add_error(FIELDS.get(place), message)


def declared(data: Mapping[str, Any]) -> dict[str, Any]:
    """The declaration that the form's values make, valid or not; `data` is cleaned, initial, or as it was posted."""
    granted: dict[str, Any] = {name: True for name in FLAGS if data.get(name)}
    if mode := data.get("fetch_mode"):
        granted["fetch"] = {
            "mode": mode,
            "hosts": str(data.get("hosts") or "").split(),
            "methods": _several(data, "methods"),
            "maxBytes": _number(data.get("max_bytes"), PLAIN.max_bytes),
            "timeoutSeconds": _number(data.get("timeout_seconds"), PLAIN.timeout_seconds),
            "redirects": _number(data.get("redirects"), PLAIN.redirects),
        }
    if mode := data.get("files_mode"):
        folder = str(data.get("files_folder") or "").strip() or str(data.get("name") or "").lower()
        granted["files"] = {"mode": mode, "folder": folder}
    if data.get("email"):
        granted["email"] = {"to": str(data.get("email_to") or "").split()}
    if data.get("webhook"):
        granted["webhook"] = {"targets": str(data.get("webhook_targets") or "").split()}
    return granted


def initial(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The form's values for a sound declaration."""
    granted = capabilities.parse(raw)
    fetch, files = granted.fetch, granted.files
    shown = fetch or PLAIN
    return {
        **{name: getattr(granted, name) for name in FLAGS},
        "fetch_mode": fetch.mode if fetch else "",
        "hosts": "\n".join(shown.hosts),
        "methods": list(shown.methods),
        "max_bytes": str(shown.max_bytes),
        "timeout_seconds": f"{shown.timeout_seconds:g}",
        "redirects": str(shown.redirects),
        "files_mode": files.mode if files else "",
        "files_folder": files.folder if files else "",
        "email": bool(granted.email),
        "email_to": "\n".join(granted.email),
        "webhook": bool(granted.webhook),
        "webhook_targets": "\n".join(granted.webhook),
    }


def _several(data: Mapping[str, Any], name: str) -> list[Any]:
    """All values of a field; a posted form would otherwise give the last one alone."""
    getlist = getattr(data, "getlist", None)
    return list(getlist(name) if getlist else data.get(name) or [])


def _number(typed: object, default: float) -> object:
    """A number, or the text that is none, for the declaration's reading to refuse."""
    text = str(typed if typed is not None else "").strip()
    if not text:
        return default
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
