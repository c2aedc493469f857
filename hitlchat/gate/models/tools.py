"""A tool: one row whatever its source, with who decides about it, what models read, how much conversations ask, and
drafts of other rules.
"""

from typing import Any

from django.contrib.auth.models import Group, User
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base.canonical import JSONTextField
from hitlchat.base.rows import Row
from hitlchat.gate.models.ids import new_id

NAME_PATTERN = r"[A-Za-z0-9_-]{1,64}"
TOOL_NAME = RegexValidator(
    rf"\A{NAME_PATTERN}\Z", "Use 1 to 64 letters (a to z), digits, underscores and hyphens.", "name"
)
# In seconds: how long a question may be open at most, from when it was asked.
LONGEST_DEADLINE = 30 * 86400


class HitlMode(models.TextChoices):
    REQUIRED = "REQUIRED", gettext_noop("Ask every time")
    CONDITIONAL = "CONDITIONAL", gettext_noop("Policies decide")
    DISABLED = "DISABLED", gettext_noop("Never ask")


class Tool(Row):
    """A named, described function with an argument schema that a model may call; one row whatever its source."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=64, unique=True, validators=[TOOL_NAME])
    title = models.CharField(max_length=120, blank=True)
    description = models.TextField(blank=True)
    input_schema = JSONTextField(default=dict)
    output_schema = JSONTextField(null=True, blank=True)
    source = models.CharField(max_length=32)
    origin = models.CharField(max_length=200, help_text="Where the tool comes from, in words, for the approval card.")
    hitl_mode = models.CharField(max_length=16, choices=HitlMode.choices, default=HitlMode.REQUIRED)
    prompt_template = models.CharField(max_length=500, blank=True)
    condition = models.TextField(blank=True, max_length=2000)
    deadline_seconds = models.PositiveIntegerField(null=True, blank=True)
    signed_in_only = models.BooleanField(default=False, help_text="The word of an MCP client is not enough for it.")
    risk_level = models.PositiveSmallIntegerField(default=5)
    risk_inherent = models.PositiveSmallIntegerField(
        default=0, help_text="The level without what asking every time takes off; risk_level, if that is higher."
    )
    risk_unknown = models.BooleanField(
        default=False, help_text="The level rests on what the tool's own source says, and nobody here vouches for it."
    )
    facts = JSONTextField(default=list, help_text="What the tool can reach, one plain sentence each.")
    published = models.BooleanField(default=False)
    definition_hash = models.CharField(max_length=64)
    example = JSONTextField(null=True, blank=True)
    stated_by = models.BigIntegerField(
        null=True, editable=False, help_text="The event that states its guard; null: none yet."
    )
    earned = models.BooleanField(
        default=False,
        editable=False,
        help_text="Whether a rule was ever earned for it: only then one is looked for.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=Q(hitl_mode__in=HitlMode.values), name="tool_hitl_mode_known"),
            models.CheckConstraint(condition=Q(risk_level__lte=5), name="tool_risk_level_0_to_5"),
        ]

    @property
    def care(self) -> int:
        """Return the level that what a yes needs goes by: asking more never makes it less."""
        return max(self.risk_level, self.risk_inherent)


class FormerTool(Row):
    """The guard of the last tool of a name: the next one of that name inherits it.

    Without this, whoever may delete a tool and make another one could have its calls run unseen, or decided by others.
    """

    name = models.CharField(max_length=64, primary_key=True)
    hitl_mode = models.CharField(max_length=16, choices=HitlMode.choices)
    condition = models.TextField(blank=True, max_length=2000)
    signed_in_only = models.BooleanField(default=False)
    risk_level = models.PositiveSmallIntegerField()
    rules = JSONTextField(null=True, help_text="Who decided, as the columns of Oversight; null: the requester.")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(hitl_mode__in=HitlMode.values), name="former_hitl_mode_known"),
        ]


MOST_PEOPLE = 10


class DecidedBy(models.TextChoices):
    """The people whose answers count."""

    REQUESTER = "requester", gettext_noop("The person it is called for")
    APPROVERS = "approvers", gettext_noop("Everyone with the role approver")
    GROUP = "group", gettext_noop("The people of one group")


class Oversight(Row):
    """The deciders of a tool's calls, where that is not simply the person it is called for: then there is no row.

    `digest` stands for all of it, with what a call says of when it was asked. A group that was deleted leaves an empty
    place here: then nobody is in it, and what was asked before is void.
    """

    tool = models.OneToOneField(Tool, on_delete=models.CASCADE, primary_key=True, related_name="oversight")
    decided_by = models.CharField(max_length=16, choices=DecidedBy.choices)
    group = models.ForeignKey(Group, null=True, on_delete=models.SET_NULL, related_name="+")
    quorum = models.PositiveSmallIntegerField(default=1, help_text="How many different people have to say yes.")
    not_the_requester = models.BooleanField(default=False, help_text="Four eyes: never the one it is called for.")
    escalate_to = models.ForeignKey(Group, null=True, on_delete=models.SET_NULL, related_name="+")
    escalate_after_seconds = models.PositiveIntegerField(null=True)
    in_order = models.BooleanField(
        default=False, help_text="A chain: first one of the group, then one of the second and of the third."
    )
    second = models.ForeignKey(Group, null=True, on_delete=models.SET_NULL, related_name="+")
    third = models.ForeignKey(Group, null=True, on_delete=models.SET_NULL, related_name="+")
    digest = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(decided_by__in=DecidedBy.values), name="oversight_decided_by_known"),
            models.CheckConstraint(condition=Q(quorum__range=(1, MOST_PEOPLE)), name="oversight_quorum_1_to_10"),
            models.CheckConstraint(
                condition=Q(in_order=False, second=None, third=None)
                | Q(in_order=True, decided_by=DecidedBy.GROUP, quorum__range=(2, 3)),
                name="oversight_chain_of_2_or_3_groups",
            ),
        ]


class Absence(Row):
    """For a time, a delegate may decide in a person's place. One that was ended early has its end as `until`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    delegate = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    since = models.DateTimeField()
    until = models.DateTimeField()

    class Meta:
        ordering = ["since", "id"]
        constraints = [
            models.CheckConstraint(condition=~Q(person=F("delegate")), name="absence_never_for_oneself"),
            models.CheckConstraint(condition=Q(until__gte=F("since")), name="absence_ends_after_its_beginning"),
        ]

    @classmethod
    def current(cls, **which: Any) -> models.QuerySet["Absence"]:
        """Return the absences (`which` of them) that give a right now, by the database's clock."""
        active = {"delegate__is_active": True, "person__is_active": True}
        return cls.objects.filter(since__lte=Now(), until__gt=Now(), **active, **which).order_by()


LONGEST_TEXT = 500


class Outcome(models.TextChoices):
    DECLINED = "declined", gettext_noop("Declined")
    FEEDBACK = "feedback", gettext_noop("Declined with a reason")
    EDITED = "edited", gettext_noop("Approved with changes")
    EXPIRED = "expired", gettext_noop("Not answered in time")
    REFUSED = "refused", gettext_noop("Refused by a rule")


class ModelText(Row):
    """A template for one outcome: of one tool, or without a tool that of all others."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tool = models.ForeignKey(Tool, null=True, on_delete=models.CASCADE, related_name="model_texts")
    outcome = models.CharField(max_length=8, choices=Outcome.choices)
    text = models.CharField(max_length=LONGEST_TEXT)

    class Meta:
        ordering = ["outcome"]
        constraints = [
            models.UniqueConstraint(fields=["tool", "outcome"], name="one_text_per_tool_and_outcome"),
            models.UniqueConstraint(fields=["outcome"], condition=Q(tool=None), name="one_text_per_outcome"),
            models.CheckConstraint(condition=Q(outcome__in=Outcome.values), name="text_outcome_known"),
        ]


class Asks(models.TextChoices):
    """A conversation's own word on what it asks about, from the mildest to the strictest."""

    TOOLS = "tools", gettext_noop("As the tools say")
    RISKY = "risky", gettext_noop("Also about every call above L1")
    EVERY = "every", gettext_noop("About every call")


class Strictness(Row):
    """One conversation that has a word of its own; ruling.py writes it.

    Here, since the start of a call depends on it in one statement. Any word is kept: one that is not known asks.
    """

    conversation_id = models.UUIDField(primary_key=True)
    asks = models.CharField(max_length=16)


class PolicyDraft(Row):
    """A draft of rules that an administrator keeps to try it again, and may publish. lab.py writes it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=100, unique=True)
    purpose = models.CharField(max_length=500, blank=True)
    body = JSONTextField(help_text="As in a request: tools, policies.")
    base = JSONTextField(help_text="What was in force for each of its tools when it was made.")
    author = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    publisher = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    published_at = models.DateTimeField(null=True)
    why = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(publisher=None, published_at=None, why="")
                | (Q(publisher__isnull=False, published_at__isnull=False) & ~Q(why="")),
                name="draft_published_by_whom_and_why",
            ),
        ]
