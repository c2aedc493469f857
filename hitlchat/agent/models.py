"""Conversations, and the runs that work on them. All state of the agent loop is in these rows."""

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base.canonical import JSONTextField
from hitlchat.base.rows import Row
from hitlchat.gate.models import Tool, ToolCall, new_id


class RunStatus(models.TextChoices):
    RUNNING = "running", gettext_noop("Working")
    WAITING = "waiting", gettext_noop("Waiting for an answer")
    DONE = "done", gettext_noop("Done")
    FAILED = "failed", gettext_noop("Failed")
    STOPPED = "stopped", gettext_noop("Stopped")


LONGEST_MESSAGE = 100_000
ACTIVE = (RunStatus.RUNNING, RunStatus.WAITING)


class Titling(models.TextChoices):
    """Progress of the model's title for a conversation; a person's own ends it and is never replaced."""

    OVER = "", "No"
    DUE = "due", "After the first answer"
    ASKED = "asked", "It was asked"
    MADE = "made", "The model made it"
    OWN = "own", "A person gave it"


class KeyHeader(models.TextChoices):
    BEARER = "Authorization", gettext_noop("Authorization: Bearer")
    API_KEY = "api-key", gettext_noop("api-key (Azure)")


class Api(models.TextChoices):
    CHAT = "chat", gettext_noop("Chat Completions")
    RESPONSES = "responses", gettext_noop("Responses API")


class Administered(Row):
    """Something that administrators set up for conversations (administering.py)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        abstract = True
        ordering = ["name"]


class Removable(Administered):
    """One that is removed by a date, and of which new conversations may begin with one."""

    is_default = models.BooleanField(default=False, help_text="New conversations begin with it.")
    removed_at = models.DateTimeField(null=True)

    class Meta(Administered.Meta):
        abstract = True


class ModelEndpoint(Removable):
    """A model server that administrators let conversations ask; endpoints.py changes it.

    The one of the environment's variables has no row.
    """

    base_url = models.TextField()
    # Sealed, or a reference such as ${NAME}.
    key = models.TextField(blank=True)
    key_header = models.CharField(max_length=13, choices=KeyHeader.choices, default=KeyHeader.BEARER)
    api = models.CharField(max_length=9, choices=Api.choices, default=Api.CHAT)
    model = models.CharField(max_length=200, help_text="Asked where a conversation names no other.")
    other_models = JSONTextField(default=list, help_text="Names of the others that conversations may choose.")
    context_length = models.PositiveIntegerField(null=True)
    images = models.BooleanField(default=True)
    reasoning = models.BooleanField(default=False)
    parallel_calls = models.BooleanField(default=True)
    # Of a million tokens.
    input_price = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    output_price = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    allow_private = models.BooleanField(default=False, help_text="Its public name may lead to a private address.")
    enabled = models.BooleanField(default=True)

    class Meta(Removable.Meta):
        constraints = [
            models.UniqueConstraint(Lower("name"), condition=Q(removed_at=None), name="one_endpoint_of_a_name"),
            models.UniqueConstraint(fields=["is_default"], condition=Q(is_default=True), name="one_default_endpoint"),
        ]

    @property
    def offered(self) -> list[str]:
        """Return the models that conversations may choose, its usual one first."""
        return list(dict.fromkeys([self.model, *self.other_models]))


class ToolSet(Removable):
    """Tools under a name, for conversations to be held to; tool_sets.py changes it.

    By names, as the gate finds tools, and hands on to the next of a name what had people asked about the one before.
    """

    description = models.CharField(max_length=300, blank=True, default="")
    tools = JSONTextField(default=list, help_text="Names of tools, whether they are there now or not.")

    class Meta(Removable.Meta):
        constraints = [
            models.UniqueConstraint(Lower("name"), condition=Q(removed_at=None), name="one_tool_set_of_a_name"),
            models.UniqueConstraint(fields=["is_default"], condition=Q(is_default=True), name="one_default_tool_set"),
        ]


def _within(name: str, least: int, most: int) -> Q:
    return Q(**{f"{name}__isnull": True}) | Q(**{f"{name}__range": (least, most)})


def _limits(of: str) -> list[models.BaseConstraint]:
    bounds = {"temperature": (0, 2), "max_tokens": (1, 1_000_000), "max_turns": (1, 100)}
    return [
        models.CheckConstraint(condition=_within(name, *most), name=f"{of}_{name}") for name, most in bounds.items()
    ]


class AgentTool(Row):
    """Instructions, tools, model and limits of the conversation that a call of an agent tool begins.

    agents.py changes it. All of it is in the definition of its tool, so that no yes and no grant outlives a change.
    """

    tool = models.OneToOneField(Tool, on_delete=models.CASCADE, primary_key=True, related_name="agent")
    instructions = models.TextField()
    tools = JSONTextField(default=list, help_text="Names of the tools it may use, and of no others.")
    own_model = models.BooleanField(default=False, help_text="Not that of the conversation that calls it.")
    # Null, with a model of its own: that of the environment.
    endpoint = models.ForeignKey(ModelEndpoint, null=True, on_delete=models.PROTECT, related_name="+")
    model = models.CharField(max_length=200, blank=True, default="")
    max_turns = models.PositiveSmallIntegerField(null=True)
    max_tokens = models.PositiveIntegerField(null=True, help_text="Of all its answers to one call, with what it read.")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=_within("max_turns", 1, 100), name="agent_max_turns"),
            models.CheckConstraint(condition=_within("max_tokens", 1, 1_000_000_000), name="agent_max_tokens"),
        ]


class Reading(models.TextChoices):
    """Whether another model reads calls that wait, and what a caution of it does."""

    OFF = "off", gettext_noop("Off")
    CAUTION = "caution", gettext_noop("Show cautions")
    TICK = "tick", gettext_noop("Show cautions and require a tick")


class SecondReader(Row):
    """The model that reads calls that wait, as administrators chose it, and how it did since then; at most one row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    mode = models.CharField(max_length=7, choices=Reading.choices, default=Reading.OFF)
    # Without an endpoint it is that of the environment.
    endpoint = models.ForeignKey(ModelEndpoint, null=True, on_delete=models.PROTECT, related_name="+")
    model = models.CharField(max_length=200, blank=True)
    asked = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    failure = models.TextField(blank=True, help_text="What went wrong last.")
    failed_at = models.DateTimeField(null=True)
    since = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_second_reader")]


class Conversation(Row):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    call = models.OneToOneField(
        ToolCall,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Of the agent tool that works here; null in a conversation of a person.",
    )
    # Of an agent: all that its run may take.
    token_budget = models.PositiveIntegerField(null=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="conversations")
    title = models.CharField(max_length=200, blank=True)
    titling = models.CharField(max_length=5, choices=Titling.choices, blank=True, default=Titling.OVER)
    # Null: that of the environment. It stays the one that it began with, whatever becomes the usual one.
    endpoint = models.ForeignKey(ModelEndpoint, null=True, on_delete=models.PROTECT, related_name="+")
    model = models.CharField(max_length=200, blank=True)
    # Without both: all published ones.
    tools = JSONTextField(null=True, help_text="Names of the tools it may use, picked one by one.")
    tool_set = models.ForeignKey(ToolSet, null=True, on_delete=models.PROTECT, related_name="+")
    preset = models.CharField(max_length=64, blank=True, default="", help_text="That it began with, as it was called.")
    # A word of gate.Asks, from its preset: it never asks less.
    least_asks = models.CharField(max_length=16, blank=True, default="")
    instructions = models.TextField(blank=True, default="", help_text="What the model is told in it beforehand.")
    # Null leaves each to the installation (limits.py).
    temperature = models.FloatField(null=True)
    max_tokens = models.PositiveIntegerField(null=True, help_text="Of one answer.")
    max_turns = models.PositiveSmallIntegerField(null=True, help_text="After so many a run is stopped.")
    # The endpoint that took no temperature here.
    no_temperature_for = models.TextField(blank=True, default="")
    # The endpoint that took no images here, after which a person went on without them.
    no_images_for = models.TextField(blank=True, default="")
    share = models.UUIDField(null=True, unique=True, help_text="In the link by which colleagues may read it.")
    pinned_at = models.DateTimeField(null=True)
    archived_at = models.DateTimeField(null=True)
    draft = models.BooleanField(
        default=False, help_text="It began with a file on the start page; until something is said or set in it."
    )
    tip = models.ForeignKey(
        "Run", null=True, on_delete=models.SET_NULL, related_name="+", help_text="The last run of the shown branch."
    )
    deleted_at = models.DateTimeField(null=True, help_text="It can be brought back for a moment, and then is gone.")
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-updated_at"]
        indexes = [
            models.Index(fields=["owner", "-updated_at"], name="conversation_by_owner"),
            models.Index(fields=["deleted_at"], condition=Q(deleted_at__isnull=False), name="conversation_deleted"),
        ]
        constraints = [
            *_limits("conversation"),
            models.CheckConstraint(
                condition=Q(tools__isnull=True) | Q(tool_set=None), name="conversation_tools_one_way"
            ),
        ]

    def __str__(self) -> str:
        return self.title or "New conversation"


class Beginning(Row):
    """What conversations begin with; empty parts leave it to others."""

    instructions = models.TextField(blank=True, default="")
    temperature = models.FloatField(null=True)
    max_tokens = models.PositiveIntegerField(null=True)
    max_turns = models.PositiveSmallIntegerField(null=True)
    # Without an endpoint it is that of the environment.
    chooses_model = models.BooleanField(default=False)
    endpoint = models.ForeignKey(ModelEndpoint, null=True, on_delete=models.PROTECT, related_name="+")
    model = models.CharField(max_length=200, blank=True, default="")
    asks = models.CharField(max_length=16, default="tools", help_text="A word of gate.Asks.")

    class Meta:
        abstract = True


class OwnDefaults(Beginning):
    """A person's choice of what new conversations of theirs begin with; empty parts leave it to the installation."""

    person = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    # Without any of these: the tools that an administrator chose for new conversations.
    all_tools = models.BooleanField(default=False)
    tools = JSONTextField(null=True)
    tool_set = models.ForeignKey(ToolSet, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = _limits("default")


class Preset(Administered, Beginning):
    """A beginning for conversations, published by administrators; presets.py changes it.

    A conversation takes its values over when it begins, so that nothing of it changes with the preset. What is empty
    is left to who begins it.
    """

    description = models.CharField(max_length=300, blank=True, default="")
    tool_set = models.ForeignKey(ToolSet, null=True, on_delete=models.PROTECT, related_name="presets")
    starters = JSONTextField(default=list, help_text="Sentences to begin with.")
    published = models.BooleanField(default=False)

    class Meta(Administered.Meta):
        constraints = [
            models.UniqueConstraint(Lower("name"), name="one_preset_of_a_name"),
            *_limits("preset"),
        ]


class Run(Row):
    """All work from one user message to the final answer. `status` is written by runs.py alone."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="runs")
    parent = models.ForeignKey(
        "self", null=True, on_delete=models.CASCADE, related_name="children", help_text="The run before it."
    )
    shown = models.BooleanField(default=True, help_text="It is on the branch that people see and the model reads.")
    status = models.CharField(max_length=8, choices=RunStatus.choices, default=RunStatus.RUNNING)
    error = models.TextField(blank=True)
    retrying = models.TextField(blank=True, default="", help_text="Why the model is about to be asked once more.")
    refused_images = models.BooleanField(default=False, help_text="It failed, and without images it might not have.")
    # The assistant message whose calls are not all answered yet.
    turn_id = models.UUIDField(null=True)
    turns = models.PositiveSmallIntegerField(default=0)
    # Parked: nothing to do until a call settles; no process works on it and none holds its lease.
    parked = models.BooleanField(default=False)
    owner = models.CharField(max_length=36, blank=True)
    lease_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.UniqueConstraint(fields=["conversation"], condition=Q(status__in=ACTIVE), name="one_active_run"),
            models.CheckConstraint(condition=Q(status__in=RunStatus.values), name="run_status_known"),
        ]
        indexes = [
            models.Index(fields=["lease_until"], condition=Q(status__in=ACTIVE), name="run_active"),
            models.Index(fields=["turn_id"], condition=Q(turn_id__isnull=False), name="run_by_turn"),
        ]


class Role(models.TextChoices):
    USER = "user", gettext_noop("You")
    ASSISTANT = "assistant", gettext_noop("Assistant")
    TOOL = "tool", gettext_noop("Tool")
    NOTICE = "notice", gettext_noop("hitlchat")
    SUMMARY = "summary", gettext_noop("Summary")


class MessageState(models.TextChoices):
    STREAMING = "streaming", "Being written"
    COMPLETE = "complete", "Complete"
    CUT = "cut", "Cut off"


class MessageQuerySet(models.QuerySet["Message"]):
    def shown(self) -> "MessageQuerySet":
        """Return those of the branch that people see and the model reads, without errors that a retry has made good."""
        begun_with = Message.objects.filter(run=OuterRef("pk"), role=Role.USER)
        retries = Run.objects.filter(~Exists(begun_with), parent=OuterRef("run"), shown=True).exclude(status__in=ACTIVE)
        error = Q(role=Role.NOTICE, run__status=RunStatus.FAILED, content=F("run__error"))
        return self.filter(Q(run=None) | Q(run__shown=True)).exclude(error & Exists(retries))


class Message(Row):
    """One message. An assistant message and its calls are a turn; the message's id is the calls' turn_id."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="messages")
    run = models.ForeignKey(Run, null=True, on_delete=models.PROTECT, related_name="messages")
    seq = models.PositiveIntegerField()
    role = models.CharField(max_length=10, choices=Role.choices)
    content = models.TextField(blank=True)
    # What the model thought before it answered, where its server says so.
    reasoning = models.TextField(blank=True, default="")
    # As sent to the model, already serialised: a turn's cost must not grow with re-encoding what came before.
    wire = models.TextField(blank=True)
    # The same with what the model's server added, for that endpoint alone; empty if it added nothing.
    echo = models.TextField(blank=True, default="")
    echo_to = models.TextField(blank=True, default="")
    # Of a summary: the ids of the messages in whose place the model reads it, unless a person has undone that.
    stands_for = JSONTextField(null=True)
    undone = models.BooleanField(default=False)
    state = models.CharField(max_length=10, choices=MessageState.choices, default=MessageState.COMPLETE)
    created_at = models.DateTimeField(default=timezone.now)

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["conversation", "seq"], name="message_order")]


class ModelUse(Row):
    """One answer of a model server that said how many tokens it took; usage.py adds it and counts.

    It outlives its conversation: what a person used today counts also once they have deleted that.
    """

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    conversation_id = models.UUIDField()
    run_id = models.UUIDField(null=True)
    # Null: it was asked for the conversation's title, or for a summary of its older part.
    message_id = models.UUIDField(null=True)
    endpoint = models.ForeignKey(ModelEndpoint, null=True, on_delete=models.PROTECT, related_name="+")
    model = models.CharField(max_length=200)
    input_tokens = models.PositiveIntegerField()
    output_tokens = models.PositiveIntegerField()
    # Of the input and of the output, where the server says so.
    cached_tokens = models.PositiveIntegerField(default=0)
    reasoning_tokens = models.PositiveIntegerField(default=0)
    # In millionths, by the prices at that time; null where there were none.
    cost = models.BigIntegerField(null=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["person", "at"], name="use_by_person"),
            models.Index(fields=["conversation_id"], name="use_by_conversation"),
            models.Index(fields=["at"], name="use_by_time"),
        ]


class QueuedMessage(Row):
    """A message that was said while a run goes on; runner.py sends it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="queued")
    content = models.TextField()

    class Meta:
        # Their ids grow with time.
        ordering = ["id"]


class Attachment(Row):
    """A file that a person sent with a message, or is about to send; attachments/ keeps it, its bytes by `digest`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="attachments")
    # Without both it is part of a draft.
    message = models.ForeignKey(Message, null=True, on_delete=models.CASCADE, related_name="attachments")
    queued = models.ForeignKey(QueuedMessage, null=True, on_delete=models.SET_NULL, related_name="attachments")
    place = models.PositiveSmallIntegerField(default=0)
    name = models.CharField(max_length=255)
    media_type = models.CharField(max_length=100)
    size = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    # What the model may read of a text or PDF, of how many characters; `sent` is what it was sent of them.
    text = models.TextField(blank=True, default="")
    length = models.PositiveIntegerField(default=0)
    sent = models.PositiveIntegerField(default=0)
    # Of a PDF: how many of its pages the text comes from.
    pages = models.PositiveIntegerField(default=0)
    pages_read = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["place", "id"]
        indexes = [
            models.Index(fields=["digest"], name="attachment_by_digest"),
            models.Index(
                fields=["created_at"], condition=Q(message__isnull=True, queued__isnull=True), name="attachment_unsent"
            ),
        ]

    @property
    def is_image(self) -> bool:
        return self.media_type.startswith("image/")


class SentMessage(Row):
    """A message that a program sent with an Idempotency-Key; `digest` is of its conversation and content."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="+")
    made_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "key"], name="one_message_for_a_key")]


class SearchText(Row):
    """The words of a message, or of a title (`message` is null), as the search reads them; search.py writes them."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+")
    message = models.OneToOneField(Message, null=True, on_delete=models.CASCADE, related_name="+")
    words = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"], condition=Q(message__isnull=True), name="one_title_to_search"
            ),
        ]
