"""What is kept of sign-ins at upstream servers (OAuth): the client that we are there, and the tokens that we got.

How they come about is in the folder signing_in.
"""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import models
from django.db.models import Q

from hitlchat.gate.models import new_id

_DEFAULT_PORTS = {"http": 80, "https": 443}


class Registration(models.TextChoices):
    DYNAMIC = "dynamic", "registered by itself"
    DOCUMENT = "document", "named by the address of its description"
    TYPED = "typed", "typed in by an administrator"


class SignIn(models.Model):
    """One server's; all processes use the same tokens.

    `mark` stands for one completed sign-in: empty before the first and after signing out, another one each time, and
    the same while tokens are renewed. What is sealed is bound to the server's id and the origin of its address, so that
    it is of no use in another row, or for a server that was moved.
    """

    server = models.OneToOneField(
        "upstreams.UpstreamServer", primary_key=True, on_delete=models.CASCADE, related_name="sign_in"
    )
    # The client that this installation is, at one authorization server only.
    registration = models.CharField(max_length=8, choices=Registration.choices)
    issuer = models.TextField()
    client_id = models.TextField()
    client_secret = models.TextField(blank=True, help_text="Sealed.")
    client_expires_at = models.DateTimeField(null=True)
    auth_method = models.CharField(max_length=32)
    redirect_uri = models.TextField()
    wanted_scopes = models.TextField(blank=True, help_text="Those an administrator wants, instead of the server's own.")
    token_endpoint = models.TextField()
    revocation_endpoint = models.TextField(blank=True)
    resource = models.TextField()
    # The sign-in.
    mark = models.CharField(max_length=36, blank=True)
    origin = models.TextField(blank=True, help_text="Where the tokens may be sent.")
    scopes_asked = models.TextField(blank=True)
    scopes_granted = models.TextField(blank=True)
    signed_in_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    signed_in_at = models.DateTimeField(null=True)
    # The tokens; `generation` counts them.
    tokens = models.TextField(blank=True, help_text="Sealed.")
    renews = models.BooleanField(default=False, help_text="There is something to get newer ones with.")
    generation = models.PositiveIntegerField(default=0)
    expires_at = models.DateTimeField(null=True)
    renewed_at = models.DateTimeField(null=True)
    renewing_by = models.CharField(max_length=36, blank=True)
    renewing_until = models.DateTimeField(null=True)
    problem = models.TextField(blank=True, help_text="Why the tokens are of no use any more; empty while they are.")
    lacking = models.TextField(blank=True, help_text="Rights for want of which a call was refused.")
    last_error = models.TextField(blank=True, help_text="What came of the last attempt to sign in, if it failed.")
    last_error_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(registration__in=Registration.values), name="sign_in_registration_known"
            ),
            models.CheckConstraint(condition=Q(tokens="") | ~Q(mark=""), name="tokens_of_a_sign_in"),
        ]

    def __str__(self) -> str:
        return f"{self.server_id} at {self.issuer}"

    @property
    def issuer_host(self) -> str:
        return urlsplit(self.issuer).netloc

    @property
    def scopes(self) -> tuple[str, ...]:
        """The rights that the sign-in gives."""
        return tuple(self.scopes_granted.split())

    @property
    def identity(self) -> list[Any]:
        """What an approval depends on: whose word counts, which client, and which sign-in; not the single token."""
        return [self.issuer, self.client_id, self.mark]


class SignInAttempt(models.Model):
    """A sign-in on its way: begun here, and to be brought back by the same person in the same browser, once."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    state_hash = models.CharField(max_length=64, unique=True)
    server = models.ForeignKey("upstreams.UpstreamServer", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    session_hash = models.CharField(max_length=64)
    plan = models.TextField(help_text="Sealed: who gives tokens for the code, to which client.")
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.server_id} until {self.expires_at}"


def origin_of(url: str) -> str:
    """Scheme, host and port, always written the same way."""
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme.lower(), 0)
    return f"{parts.scheme.lower()}://{(parts.hostname or '').lower()}:{port}"


def standing(server: Any) -> SignIn | None:
    """The sign-in that requests to this server (a row) carry; None: they carry none."""
    if server.transport == "stdio":
        return None
    kept = SignIn.objects.filter(pk=server.pk).exclude(mark="").first()
    return kept if kept and kept.origin == origin_of(server.url) else None
