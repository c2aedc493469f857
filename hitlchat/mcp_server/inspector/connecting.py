"""The form that a session begins with."""

import re
from typing import Any, Final

from django import forms
from django.contrib.auth.models import User
from django.http import HttpRequest

from hitlchat.accounts.roles import may_administer
from hitlchat.gate.actor import Caller
from hitlchat.gate.card import RISK_LABELS
from hitlchat.gate.tools import tools_for
from hitlchat.mcp_server.inspector import sessions
from hitlchat.mcp_server.inspector.sessions import MODES, Pass
from hitlchat.mcp_server.inspector.wire import Address
from hitlchat.mcp_server.models import WithoutElicitation
from hitlchat.mcp_server.serving import PATH

MOST_NAMES: Final = 100
GIVEN: Final = "given"
# In the words of the form of a new token.
WAYS: Final = (
    (WithoutElicitation.DENY.value, "Refuse it"),
    (WithoutElicitation.INBOX.value, "Ask me here, and let it wait"),
    (WithoutElicitation.URL.value, "Give it a link"),
)
_SECRET: Final = re.compile(r"hitl_mcp_[A-Za-z0-9_-]{20,100}")
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  what it stands for


class Unreachable(Exception):
    """The process does not know where it listens."""


class Connecting(forms.Form):
    """Errors stand at the fields."""

    era = forms.ChoiceField(choices=[(era, era) for era in MODES])
    elicits = forms.TypedChoiceField(choices=[("yes", ""), ("no", "")], coerce=lambda value: value == "yes")
    token = forms.ChoiceField(choices=[("made", ""), (GIVEN, "")])
    secret = forms.CharField(required=False, max_length=200)
    tools = forms.CharField(required=False, max_length=10_000)
    ceiling = forms.TypedChoiceField(choices=[*enumerate(RISK_LABELS)], coerce=int)
    without_elicitation = forms.ChoiceField(choices=WAYS)
    attended = forms.BooleanField(required=False)

    def __init__(self, user: User, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._user = user
        if not may_administer(user):
            del self.fields["attended"]

    def clean_secret(self) -> str:
        secret = str(self.cleaned_data["secret"])
        if self.cleaned_data.get("token") == GIVEN and not _SECRET.fullmatch(secret):
            raise forms.ValidationError("Give a token of kind MCP: it begins with hitl_mcp_.")
        return secret

    def clean_tools(self) -> list[str] | None:
        names = re.split(r"[\s,]+", str(self.cleaned_data["tools"]).strip())
        if names == [""] or self.cleaned_data.get("token") == GIVEN:
            return None
        if len(names) > MOST_NAMES:
            raise forms.ValidationError(f"Give at most {MOST_NAMES} names, not {len(names)}.")
        caller = Caller("mcp", self._user.pk, self._user.get_username())
        known = {tool.name for tool in tools_for(caller, frozenset(names))}
        if unknown := [name for name in names if name not in known]:
            raise forms.ValidationError(f"There is no published tool “{unknown[0][:64]}”.")
        return names

    def get_pass(self) -> Pass:
        """Return the token of a valid form: the one given, or one made now."""
        chosen = self.cleaned_data
        if chosen["token"] == GIVEN:
            return sessions.given(chosen["secret"])
        limits = {name: chosen[name] for name in ("tools", "ceiling", "without_elicitation")}
        return sessions.temporary(self._user, attended=bool(chosen.get("attended")), **limits)


def address(request: HttpRequest) -> Address:
    """Return the address of our own server: the port at which this request came in. Raises: Unreachable."""
    host, port = str(request.META.get("SERVER_NAME", "")), str(request.META.get("SERVER_PORT", "0"))
    if not port.isdigit() or port == "0":
        raise Unreachable
    host = _EVERYWHERE.get(host, host)
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return Address(f"http://{name}:{port}{PATH}", request.get_host())
