"""The pages of signing in: what a server's page says of it, where the person is sent, the way back, signing out."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_safe

from hitlchat.accounts.access import person
from hitlchat.accounts.roles import may_administer
from hitlchat.gate.actor import actor_of
from hitlchat.outbound.addresses import origin_of
from hitlchat.upstreams import server_draft
from hitlchat.upstreams.models import Registration, SignIn, Transport, UpstreamServer
from hitlchat.upstreams.oauth import clients, flow
from hitlchat.upstreams.oauth.authority import NotPossible
from hitlchat.upstreams.oauth.clients import NoClient
from hitlchat.upstreams.oauth.flow import Asking, Brought, Typed
from hitlchat.upstreams.pages.summary import administrator_only, server_named
from hitlchat.upstreams.risk.rubric import is_privileged


def scopes_of(names: str) -> list[dict[str, Any]]:
    """Return the rights that OAuth writes with spaces between; `privileged`: it reaches far beyond a single task."""
    return [{"name": name, "privileged": is_privileged(name)} for name in dict.fromkeys(names.split())]


def state_of(server: UpstreamServer) -> dict[str, Any] | None:
    """Return the sign-in with its state: none (nobody is signed in), fine, or broken, with the reason in `why`. None:
    nobody could sign in.
    """
    if server.transport == Transport.STDIO:
        return None
    if any(each.name.lower() == "authorization" for each in server_draft.read_values(server.headers)):
        return None
    found = SignIn.objects.select_related("signed_in_by").filter(pk=server.pk).first()
    if found is None or not found.mark:
        return {"state": "none", "row": found}
    why, who = found.problem, found.signed_in_by
    if found.origin != origin_of(server.url):
        why = _("The sign-in was for {origin}, and the server now has another address.").format(origin=found.origin)
    return {
        "state": "broken" if why else "fine",
        "row": found,
        "why": why,
        "who": (who.get_full_name() or who.get_username()) if who else "someone who no longer has an account here",
        "scopes": scopes_of(found.scopes_granted),
        "lacking": scopes_of(found.lacking),
    }


class ClientForm(forms.Form):
    """Settings instead of what is found out. `changed`: the form was seen, so that an empty field means so."""

    client_id = forms.CharField(
        label="Client ID",
        required=False,
        max_length=clients.LONGEST,
        help_text="Leave empty to let this installation register itself, if possible.",
    )
    client_secret = forms.CharField(
        label="Client secret",
        required=False,
        max_length=clients.LONGEST,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Only if you have one. Stored encrypted and never shown again; leave empty to keep the stored one.",
    )
    scopes = forms.CharField(
        label="Rights to ask for (scopes)",
        required=False,
        max_length=4000,
        help_text="Separated by spaces. Leave empty for those that the server asks for.",
    )
    issuer = forms.CharField(
        label="Issuer",
        required=False,
        max_length=2000,
        help_text="Address of the authorization server. Leave empty to use the one the server names.",
    )

    def typed(self, *, seen: bool) -> Typed:
        found = self.cleaned_data
        scopes = found["scopes"] if seen else None
        return Typed(found["client_id"], found["client_secret"], scopes, found["issuer"])


@sensitive_post_parameters("client_secret")
@administrator_only.form
def begin(request: HttpRequest, name: str) -> HttpResponse:
    """A page that says where the person goes now; going there is a link, so that they see it first."""
    server = server_named(name)
    if request.method != "POST":
        return redirect("servers:server", name)
    form = ClientForm(request.POST)
    if not form.is_valid():
        return _page(request, server, form, status=422)
    places = [_absolute(request, view, server.pk) for view in ("servers:callback", "servers:client")]
    asking = Asking(actor_of(request), request.session.session_key or "", *places)
    try:
        begun = flow.begin(server, asking, form.typed(seen="changed" in request.POST))
    except NoClient as error:
        return _page(request, server, form, why=str(error), wants_client=True, status=422)
    except NotPossible as error:
        return _page(request, server, form, why=str(error), status=422)
    return _page(request, server, _filled(begun.row), begun=begun, scopes=scopes_of(begun.row.scopes_asked))


@require_safe
def callback(request: HttpRequest, server_id: UUID) -> HttpResponse:
    """Return where authorization servers send people back. Nothing of its address is kept or shown."""
    if not request.user.is_authenticated or not may_administer(person(request)):
        # Not through the sign-in page: what stands in this address is for nobody else.
        raise PermissionDenied("Sign in as the administrator who started this, and start again.")
    server = get_object_or_404(UpstreamServer, pk=server_id)
    query = request.GET
    answer = (query.get("state", ""), query.get("code", ""), query.get("iss"), query.get("error", ""))
    try:
        brought = Brought(request.session.session_key or "", *answer)
        flow.finish(server_id, brought, actor_of(request))
    except NotPossible as error:
        form = _filled(SignIn.objects.filter(pk=server.pk).first() or SignIn())
        return _page(request, server, form, why=str(error), status=422)
    except LookupError as error:
        raise Http404 from error
    messages.success(request, _("You are signed in to {server}.").format(server=server.name))
    return redirect("servers:server", server.name)


@administrator_only.posts
def forget(request: HttpRequest, name: str) -> HttpResponse:
    server = server_named(name)
    try:
        trouble = flow.forget(server.pk, actor_of(request))
    except LookupError as error:
        messages.warning(request, str(error))
    else:
        words = _("Signed out of {server}: its tokens are deleted here.").format(server=server.name)
        messages.add_message(request, messages.WARNING if trouble else messages.SUCCESS, f"{words} {trouble}".strip())
    return redirect("servers:server", name)


@require_safe
def client(request: HttpRequest, server_id: UUID) -> JsonResponse:
    """Return how this installation describes itself to authorization servers that look it up; nothing is secret."""
    described = clients.wanted_metadata(_absolute(request, "servers:callback", server_id))
    shown = described.model_dump(by_alias=True, mode="json", exclude_none=True)
    return JsonResponse({"client_id": _absolute(request, "servers:client", server_id), **shown})


def _filled(row: SignIn) -> ClientForm:
    """Return the form with what an administrator entered the last time."""
    typed_id = row.client_id if row.registration == Registration.TYPED else ""
    return ClientForm(initial={"client_id": typed_id, "scopes": row.wanted_scopes})


def _absolute(request: HttpRequest, view: str, server_id: UUID) -> str:
    return request.build_absolute_uri(reverse(view, args=[server_id]))


def _page(
    request: HttpRequest, server: UpstreamServer, form: ClientForm, *, status: int = 200, **shown: Any
) -> HttpResponse:
    here = {"redirect_uri": _absolute(request, "servers:callback", server.pk)}
    context = {"section": "servers", "server": server, "form": form, **here, **shown}
    return render(request, "servers/sign_in/page.html", context, status=status)
