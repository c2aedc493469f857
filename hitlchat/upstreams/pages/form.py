"""A server's form: what an administrator types, with rows of headers and variables, turned into a draft.

Arguments are lines; one that a line cannot hold, such as an empty one, stands in double quotes, as in JSON.
"""

import base64
import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from django import forms
from django.conf import settings
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext_noop

from hitlchat.accounts.access import person
from hitlchat.secrets import references, values
from hitlchat.secrets.values import Row, Value
from hitlchat.upstreams import endpoint, gallery, server_draft
from hitlchat.upstreams.models import Transport, UpstreamServer
from hitlchat.upstreams.server_draft import LONGEST_CALL_SECONDS, ServerDraft

TRANSPORTS = (
    (Transport.HTTP.value, "Streamable HTTP"),
    (Transport.STDIO.value, "Program (stdio)"),
    (Transport.SSE.value, "HTTP with SSE (older)"),
)
# A name is not needed to connect, and may come to mind later.
NAMELESS = "unnamed"
_PLAIN = (
    "name", "transport", "url", "command", "allow_private", "call_seconds", "older_protocol", "docs_url", "enabled",
)  # fmt: skip
LONGEST_HINT = 60
# A colon is no part of Base64: this is what is to be encoded.
_BASIC = re.compile(r"Basic +([^\s:]*:.*)", re.IGNORECASE)


def lines(arguments: Iterable[str]) -> str:
    """Return the arguments as lines; those that a line cannot hold as they are, in JSON."""
    written = []
    for argument in arguments:
        is_plain = argument.strip() == argument != "" and not {"\r", "\n"} & {*argument}
        is_plain = is_plain and not argument.startswith('"')
        written.append(argument if is_plain else json.dumps(argument, ensure_ascii=False))
    return "\n".join(written)


def read(text: str) -> tuple[str, ...]:
    """The arguments of `text`; empty lines are none."""
    return tuple(_argument(line.strip()) for line in text.replace("\r\n", "\n").split("\n") if line.strip())


def _argument(line: str) -> str:
    if not line.startswith('"'):
        return line
    try:
        meant = json.loads(line)
    except ValueError:
        return line
    return meant if isinstance(meant, str) else line


def encoded(value: Value) -> Value:
    """Return a value of HTTP's Basic scheme with `user:password` in Base64, others as they are. Raises: ValueError."""
    match = _BASIC.fullmatch(value.value or "")
    if match is None or value.name.lower() != "authorization":
        return value
    if any(references.names(match[1])):
        raise ValueError(
            f"{value.name}: a reference cannot be encoded here. Keep user:password in Base64 in one variable,"
            " and refer to that."
        )
    return Value(value.name, f"Basic {base64.b64encode(match[1].encode()).decode('ascii')}", value.secret)


class ServerForm(forms.Form):
    """`entry`: the id of what it was prefilled from in the gallery; what that vouches for is looked up there."""

    name = forms.CharField(
        max_length=64, help_text="Letters, digits, dots, _ and -. It prefixes the names of its tools: name_tool."
    )
    transport = forms.ChoiceField(choices=TRANSPORTS, widget=forms.RadioSelect, label="Transport")
    url = forms.CharField(
        required=False,
        label="Address",
        widget=forms.TextInput(attrs={"placeholder": "https://example.com/mcp", "inputmode": "url", "class": "mono"}),
        help_text="Address of the MCP endpoint. Put secrets in a header, or in the query as ${NAME}.",
    )
    # Only places for errors: the rows are read as they were posted.
    headers = forms.CharField(required=False)
    env = forms.CharField(required=False)
    allow_private = forms.BooleanField(
        required=False,
        label="The host name may lead to a private address",
        help_text="For a host name in your own network. Addresses such as 10.0.0.5 and localhost need no permission.",
    )
    command = forms.CharField(
        required=False,
        label="Program",
        widget=forms.TextInput(attrs={"placeholder": "npx", "class": "mono"}),
        help_text="Name or full path. No shell is used.",
    )
    args = forms.CharField(
        required=False,
        strip=False,
        label="Arguments",
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono grows", "spellcheck": "false"}),
        help_text="One per line, exactly as the program gets them. Use double quotes, as in JSON, for empty ones and "
        "ones with line breaks. ${NAME} is replaced.",
    )
    docs_url = forms.CharField(
        required=False,
        label="Documentation",
        widget=forms.TextInput(attrs={"placeholder": "https://…", "inputmode": "url"}),
        help_text="Documentation of the tools. A server without any counts as riskier.",
    )
    docs_lacking = forms.BooleanField(
        required=False,
        label=("Someone has read it and found it insufficient"),
        help_text="This also counts as riskier.",
    )
    call_seconds = forms.IntegerField(
        label="Seconds for a call",
        min_value=1,
        max_value=LONGEST_CALL_SECONDS,
        help_text="A call without an answer ends after this time, and its outcome is unknown.",
    )
    older_protocol = forms.BooleanField(
        required=False,
        label="Use the older protocol (2025-11-25 and before)",
        help_text="For a server whose newest revision is broken.",
    )
    enabled = forms.BooleanField(required=False, label="Enabled: stay connected")
    entry = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)
    # When the page was made: what somebody saved since is not overwritten unseen.
    made_from = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)

    def __init__(
        self,
        request: HttpRequest,
        *,
        draft: ServerDraft | None = None,
        saved: UpstreamServer | None = None,
        bound: bool = False,
    ) -> None:
        draft = draft or ServerDraft("")
        initial = {
            **{name: getattr(draft, name) for name in _PLAIN},
            "args": lines(draft.args),
            "docs_lacking": not draft.docs_adequate,
            "entry": draft.gallery_entry,
            "made_from": saved.updated_at.isoformat() if saved else "",
        }
        super().__init__(request.POST if bound else None, initial=initial)
        self.request, self.saved = request, saved
        self.header_rows, self.headers_given = self._rows("header", draft.headers, saved and saved.headers)
        self.env_rows, self.env_given = self._rows("env", draft.env, saved and saved.env)
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")

    @property
    def programs_allowed(self) -> bool:
        return bool(settings.MCP_ALLOW_STDIO)

    @property
    def entry_id(self) -> str:
        """Return the gallery's id; of a server that is saved, the saved one."""
        return self.saved.gallery_entry if self.saved else str(self["entry"].value() or "")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for field in ("headers", "env"):
            try:
                given = tuple(map(encoded, getattr(self, f"{field}_given")))
            except ValueError as error:
                self.add_error(field, str(error))
            else:
                setattr(self, f"{field}_given", given)
        if endpoint.is_own_address(cleaned.get("url", ""), self.request):
            self.add_error("url", endpoint.SENTENCE)
        # All that is wrong at once; not again what a field has said itself.
        problems = server_draft.problems(self.draft(), self.saved)
        self.show({name: text for name, text in problems.items() if name not in self.errors})
        return cleaned

    def draft(self) -> ServerDraft:
        """The draft of a valid form; of one that is not, with what is right anywhere in place of what is wrong."""
        given = {name: self.cleaned_data[name] for name in _PLAIN if name in self.cleaned_data}
        given["name"] = given.get("name") or NAMELESS
        given |= {"args": self.arguments, "docs_adequate": not self.cleaned_data["docs_lacking"]}
        given |= {"headers": self.headers_given, "env": self.env_given}
        return gallery.vouched(ServerDraft(**given), self.entry_id)

    @property
    def arguments(self) -> tuple[str, ...]:
        return read(str(self["args"].value() or ""))

    @property
    def argument_hints(self) -> list[str]:
        """Return a sentence about each argument that was probably meant as two."""
        joined = (arg for arg in self.arguments if arg.startswith("-") and "=" not in arg and len(arg.split()) > 1)
        cut = (arg if len(arg) < LONGEST_HINT else arg[:LONGEST_HINT] + "…" for arg in joined)
        return [f"“{arg}” is one argument, with the space in it. Did you mean two lines?" for arg in cut]

    def typed(self) -> ServerDraft:
        """Return the draft as far as it is typed, right or wrong: to be judged, never to be kept."""
        names = ("transport", "url", "command", "docs_url")
        texts: dict[str, Any] = {name: str(self[name].value() or "").strip() for name in names}
        draft = ServerDraft(
            "typed",
            **texts,
            args=self.arguments,
            headers=self.headers_given,
            env=self.env_given,
            docs_adequate=not self["docs_lacking"].value(),
        )
        return gallery.vouched(draft, self.entry_id)

    def show(self, errors: dict[str, str]) -> None:
        for name, text in errors.items():
            self.add_error(name if name in self.fields else None, text)

    def overtaken(self, saved_at: datetime) -> None:
        """Say that somebody else has saved the server meanwhile; saving once more replaces that."""
        data = self.request.POST.copy()
        data["made_from"] = saved_at.isoformat()
        self.data = data
        self.add_error(
            None,
            gettext_noop(
                "Someone else changed this server while you had its page open. Your entries are below. "
                "Saving again replaces the other change."
            ),
        )

    def _rows(
        self, kind: Literal["header", "env"], given: tuple[Value, ...], stored: Any
    ) -> tuple[list[Row], tuple[Value, ...]]:
        before = server_draft.read_values(stored or ())
        if self.is_bound and isinstance(self.data, QueryDict):
            return values.posted(self.data, kind, before, person(self.request).pk)
        return values.rows(given, before), given


def confirmed_in(request: HttpRequest) -> str:
    """The command line that the person has agreed to; a browser writes its line ends in a way of its own."""
    return request.POST.get("confirmed", "").replace("\r\n", "\n")
