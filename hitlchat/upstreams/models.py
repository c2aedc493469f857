"""Rows of upstream servers, of sign-ins there, of the tools they offer, and of what became of those."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.dispatch import Signal
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base.append_only import AppendOnly
from hitlchat.base.canonical import JSONTextField
from hitlchat.base.database import only
from hitlchat.base.rows import Row
from hitlchat.gate.models import Tool, ToolCall, new_id
from hitlchat.gate.prompt import ON_SERVER
from hitlchat.outbound.addresses import origin_of

# Sent after the commit, from whichever thread made the change: somebody added or changed a server.
servers_changed = Signal()
# Sent after the commit with question_id, call_id, conversation_id and turn_id.
question_changed = Signal()
# Sent with call_id, conversation_id and step while a call goes on, on the loop that executes it; receivers must not
# take long. No more than a few a second: nobody reads faster, and each of them goes to every open page.
progressed = Signal()


class Registration(models.TextChoices):
    DYNAMIC = "dynamic", "registered by itself"
    DOCUMENT = "document", "named by the address of its description"
    TYPED = "typed", "typed in by an administrator"


class SignIn(Row):
    """The sign-in at one server, for all processes. `mark` stands for one completed sign-in, empty where nobody is
    signed in. Seals are bound to the server's id and origin: of no use in another row, or for a server that was moved.
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

    @property
    def issuer_host(self) -> str:
        return urlsplit(self.issuer).netloc

    @property
    def scopes(self) -> tuple[str, ...]:
        return tuple(self.scopes_granted.split())


class SignInAttempt(Row):
    """A sign-in on its way: begun here, and to be brought back by the same person in the same browser, once."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    state_hash = models.CharField(max_length=64, unique=True)
    server = models.ForeignKey("upstreams.UpstreamServer", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    session_hash = models.CharField(max_length=64)
    plan = models.TextField(help_text="Sealed: who gives tokens for the code, to which client.")
    expires_at = models.DateTimeField()


def sign_in_of(server: Any) -> SignIn | None:
    if server.transport == "stdio":
        return None
    found = SignIn.objects.filter(pk=server.pk).exclude(mark="").first()
    return found if found and found.origin == origin_of(server.url) else None


SERVER_NAME = RegexValidator(
    r"\A[A-Za-z0-9._-]{1,64}\Z", "Use 1 to 64 letters (a to z), digits, dots, underscores and hyphens.", "name"
)


class Transport(models.TextChoices):
    HTTP = "http", "Streamable HTTP"
    STDIO = "stdio", "a program on this machine"
    SSE = "sse", "HTTP with server-sent events (older)"


class Trust(models.TextChoices):
    VENDOR = "vendor", "in the gallery, from the vendor"
    COMMUNITY = "community", "in the gallery, from a community"
    KNOWN_HOST = "known-host", "typed in, on a host of the gallery"
    UNKNOWN = "unknown", "nobody vouches for it"


class ServerState(models.TextChoices):
    NEW = "new", "Not connected yet"
    CONNECTING = "connecting", "Connecting"
    UP = "up", "Connected"
    DOWN = "down", "Not reachable"
    SIGN_IN = "sign-in", "Waits for someone to sign in"
    UNUSABLE = "unusable", "Not set up"
    DISABLED = "disabled", "Disabled"


AWAY = (ServerState.DOWN, ServerState.SIGN_IN, ServerState.UNUSABLE)


class UpstreamServer(Row):
    """An external MCP server: how it is reached, and what the processes of this installation last saw of it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=64, unique=True, validators=[SERVER_NAME])
    transport = models.CharField(max_length=8, choices=Transport.choices)
    url = models.CharField(max_length=2000, blank=True)
    headers = JSONTextField(default=list, help_text="As values.py keeps them; what is secret is sealed.")
    command = models.CharField(max_length=1000, blank=True)
    args = JSONTextField(default=list)
    env = JSONTextField(default=list, help_text="Like headers.")
    allow_private = models.BooleanField(default=False, help_text="Its name may lead to a private address.")
    call_seconds = models.PositiveIntegerField(default=60)
    older_protocol = models.BooleanField(default=False, help_text="Its newest one is broken: 2025-11-25 and before.")
    enabled = models.BooleanField(default=True)
    trust = models.CharField(max_length=12, choices=Trust.choices, default=Trust.UNKNOWN)
    gallery_entry = models.CharField(max_length=64, blank=True)
    docs_url = models.CharField(max_length=2000, blank=True)
    docs_adequate = models.BooleanField(default=True)
    revision = models.PositiveIntegerField(default=1, help_text="Counts the changes of how it is reached.")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    used_at = models.DateTimeField(null=True)
    # What a process reported last; `present`: its tools are in the catalog, as far as it depends on the server.
    state = models.CharField(max_length=12, choices=ServerState.choices, default=ServerState.NEW)
    reason = models.TextField(blank=True, help_text="Why it is not up, secrets masked.")
    last_error = models.TextField(blank=True)
    last_error_at = models.DateTimeField(null=True)
    latency_ms = models.FloatField(null=True)
    protocol_version = models.CharField(max_length=40, blank=True)
    told_name = models.CharField(max_length=200, blank=True, help_text="What it calls itself.")
    told_version = models.CharField(max_length=200, blank=True)
    notes = JSONTextField(default=list)
    reported_at = models.DateTimeField(null=True)
    reported_by = models.CharField(max_length=36, blank=True)
    present = models.BooleanField(default=False)
    tool_count = models.PositiveIntegerField(null=True)
    listing_note = models.TextField(blank=True, help_text="What of its list was left out.")
    listed_at = models.DateTimeField(null=True)
    writes = models.BooleanField(default=True, help_text="One of its tools says that it changes something.")

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(Lower("name"), name="server_name_in_any_case"),
            models.CheckConstraint(condition=Q(transport__in=Transport.values), name="server_transport_known"),
            models.CheckConstraint(condition=Q(state__in=ServerState.values), name="server_state_known"),
            models.CheckConstraint(condition=Q(trust__in=Trust.values), name="server_trust_known"),
        ]

    @property
    def origin(self) -> str:
        """Return where its tools come from, in words, for the approval card."""
        return f"{self.name}{ON_SERVER}"


class ToolState(models.TextChoices):
    NEW = "new", "New: not exposed yet"
    HIDDEN = "hidden", "Not exposed"
    EXPOSED = "exposed", "Exposed"
    WITHHELD = "withheld", "Withheld"
    GONE = "gone", "No longer offered"
    UNFIT = "unfit", "Cannot be offered"


class Vouch(models.TextChoices):
    """The level of a tool according to an administrator who knows what it does."""

    SCAN = "scan", gettext_noop("Known: the level as estimated")
    L1 = "L1", gettext_noop("Known: L1")
    L2 = "L2", gettext_noop("Known: L2")
    L3 = "L3", gettext_noop("Known: L3")
    L4 = "L4", gettext_noop("Known: L4")
    L5 = "L5", gettext_noop("Known: L5")


class ComposedTool(Row):
    """One tool of an upstream server. Its alias, mode, prompt and condition are in its row in the gate, if any."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    server = models.ForeignKey(UpstreamServer, on_delete=models.CASCADE, related_name="tools")
    name = models.CharField(max_length=128)
    tool = models.OneToOneField(Tool, null=True, on_delete=models.PROTECT, related_name="composed")
    exposed = models.BooleanField(default=False, help_text="Someone wants it exposed; whether it is, `state` says.")
    description = models.TextField(blank=True, help_text="Instead of the upstream's own.")
    listed = models.BooleanField(default=True, help_text="It was in the server's last list.")
    held = models.BooleanField(default=False, help_text="It changed, and nobody has accepted that yet.")
    state = models.CharField(max_length=8, choices=ToolState.choices, default=ToolState.NEW)
    reason = models.TextField(blank=True, help_text="Why it is in this state, where that is not plain.")
    # The ledger: as a person last accepted it, and as the server last listed it.
    pinned = JSONTextField(null=True)
    pinned_digest = models.CharField(max_length=64, blank=True)
    pinned_profile = models.CharField(max_length=40, blank=True)
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    seen = JSONTextField()
    seen_digest = models.CharField(max_length=64)
    seen_profile = models.CharField(max_length=40)
    seen_at = models.DateTimeField(default=timezone.now)
    first_seen_at = models.DateTimeField(default=timezone.now)
    # What the judges say of it as last listed.
    problems = JSONTextField(default=list)
    warnings = JSONTextField(default=list)
    risk_inherent = models.PositiveSmallIntegerField(default=5)
    risk_effective = models.PositiveSmallIntegerField(default=5)
    risk_floor = models.CharField(max_length=40, blank=True)
    risk_reasons = JSONTextField(default=list)
    # Somebody vouched for the definition of this digest, and for no other.
    vouch = models.CharField(max_length=4, blank=True, choices=Vouch.choices)
    vouched_digest = models.CharField(max_length=64, blank=True)
    vouched_at = models.DateTimeField(null=True)
    vouched_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    vouch_note = models.TextField(blank=True)

    class Meta:
        ordering = ["server", "name"]
        constraints = [
            models.UniqueConstraint(fields=["server", "name"], name="one_tool_per_server_and_name"),
            models.CheckConstraint(condition=Q(state__in=ToolState.values), name="composed_state_known"),
            # Nothing is exposed that nobody has accepted.
            models.CheckConstraint(
                condition=Q(exposed=False) | Q(tool__isnull=False) & ~Q(pinned_digest=""), name="exposed_is_accepted"
            ),
            models.CheckConstraint(condition=Q(vouch__in=["", *Vouch.values]), name="vouch_known"),
        ]

    @property
    def standing_vouch(self) -> str:
        """Return what somebody vouched of the tool as its server lists it now; empty if nobody did."""
        return self.vouch if self.vouched_digest == self.seen_digest else ""

    def stated_risk(self, digest: str) -> int | None:
        """Return the level that somebody stated who vouches for the definition of this digest; None if nobody did."""
        stands = self.vouched_digest == digest and self.vouch not in {"", Vouch.SCAN}
        return int(self.vouch.removeprefix("L")) if stands else None


class ToolEvent(AppendOnly):
    """An event of a tool that someone has accepted once: what changed, when, and who did it."""

    id = models.BigAutoField(primary_key=True)
    tool = models.ForeignKey(ComposedTool, null=True, on_delete=models.SET_NULL, related_name="events")
    # Texts too: they stay when the rows are gone.
    server_name = models.CharField(max_length=64)
    tool_name = models.CharField(max_length=128)
    name = models.CharField(max_length=40)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    means = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, blank=True)
    record = JSONTextField(null=True, help_text="The tool's record from then on, where that is what changed.")
    data = JSONTextField(default=dict)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]


class QuestionState(models.TextChoices):
    OPEN = "open", "Waits for an answer"
    ANSWERED = "answered", "Answered"
    DECLINED = "declined", "Not answered"
    EXPIRED = "expired", "Nobody answered in time"
    GONE = "gone", "Taken back"


class UpstreamQuestion(Row):
    """A server's question to the person for whom it executes a call (MCP: elicitation). No answer lets anything run;
    its values are kept, sealed, until the process that executes the call has taken them over.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    call = models.ForeignKey(ToolCall, on_delete=models.PROTECT, related_name="questions")
    server_name = models.CharField(max_length=64)
    # The server's own words; both empty where it was declined unread.
    message = models.TextField(blank=True)
    schema = JSONTextField(default=dict)
    url = models.TextField(blank=True, help_text="The address to be opened, instead of a form.")
    asked_at = models.DateTimeField(default=timezone.now)
    deadline = models.DateTimeField()
    state = models.CharField(max_length=8, choices=QuestionState.choices, default=QuestionState.OPEN)
    note = models.TextField(blank=True, help_text="Why nobody was asked, in words.")
    answered_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    means = models.CharField(max_length=16, blank=True)
    answered_at = models.DateTimeField(null=True)
    fields = JSONTextField(default=list, help_text="Which fields the answer had, by name.")
    sealed = models.TextField(blank=True)

    class Meta:
        ordering = ["asked_at", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=QuestionState.values), name="question_state_known"),
            # Values are there only between the answer and the moment when it is taken over.
            models.CheckConstraint(
                condition=Q(sealed="") | Q(state=QuestionState.ANSWERED), name="only_answers_are_sealed"
            ),
        ]
        indexes = [models.Index(fields=["asked_at"], condition=Q(state=QuestionState.OPEN), name="question_open")]


class ExposureMode(models.TextChoices):
    BOTH = "both", "Both"
    OWN = "own", "Own tools only"
    COMPOSED = "composed", "Composed tools only"


class Exposure(Row):
    """The offer of this installation to the outside: one row, or none while nothing was changed."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    mode = models.CharField(max_length=8, choices=ExposureMode.choices, default=ExposureMode.BOTH)
    ceiling = models.PositiveSmallIntegerField(default=5, help_text="No composed tool of a higher risk is offered.")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="one_exposure"),
            models.CheckConstraint(condition=Q(ceiling__gte=1, ceiling__lte=5), name="ceiling_1_to_5"),
            models.CheckConstraint(condition=Q(mode__in=ExposureMode.values), name="exposure_mode_known"),
        ]

    @classmethod
    def current(cls) -> "Exposure":
        return only(cls.objects.all()) or cls()
