"""Tool calls and the questions about them, with the answers, the showings and the grants."""

from typing import Final

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base.canonical import JSONTextField
from hitlchat.base.rows import Row
from hitlchat.gate.models.ids import new_id
from hitlchat.gate.models.tools import DecidedBy, Tool
from hitlchat.gate.status import SETTLED, Status

UNFINISHED: Final = (Status.ALLOWED, Status.APPROVED, Status.EXECUTING)


class CallerKind(models.TextChoices):
    CHAT = "chat", gettext_noop("the assistant")
    STUDIO = "studio", gettext_noop("a test in the Tool Studio")
    API = "api", gettext_noop("an API client")
    MCP = "mcp", gettext_noop("an MCP client")


class IsUnfinished(models.Func):
    """The condition that a call may run, or does.

    Its values stand in the statement, not apart: otherwise SQLite doesn't see that its index for them is enough.
    """

    template = "%(expressions)s IN ('" + "', '".join(UNFINISHED) + "')"
    output_field = models.BooleanField()

    def __init__(self) -> None:
        super().__init__("status")


class ToolCall(Row):
    """One request to run one tool. `status` is written by transition.py alone."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tool = models.ForeignKey(Tool, null=True, on_delete=models.SET_NULL, related_name="calls")
    tool_name = models.CharField(max_length=64)
    source = models.CharField(max_length=32, blank=True)
    definition_hash = models.CharField(max_length=64, blank=True)
    risk_level = models.PositiveSmallIntegerField(default=5)
    arguments = JSONTextField(default=dict)
    status = models.CharField(max_length=16, choices=Status.choices)
    round = models.PositiveSmallIntegerField(
        default=1, help_text="How often it was asked about. A move counts only in the round it was decided in."
    )
    caller_kind = models.CharField(max_length=8, choices=CallerKind.choices)
    # Columns without an index of their own begin one of those below.
    caller = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="tool_calls", db_index=False
    )
    # Opaque to the gate: who asked needs them to find its own rows again.
    conversation_id = models.UUIDField(null=True)
    turn_id = models.UUIDField(null=True)
    position = models.PositiveSmallIntegerField(default=0)
    model_call_id = models.CharField(max_length=200, blank=True)
    rule = models.CharField(max_length=64, blank=True, help_text="The rule under which the verdict was given.")
    reason = models.TextField(blank=True, help_text="The verdict's reason: why it was asked, not asked, or refused.")
    grantable = models.BooleanField(
        default=False, help_text="Whether the tool alone asked, so that a grant may cover the likes of it."
    )
    grant = models.ForeignKey(
        "gate.Grant",
        null=True,
        on_delete=models.PROTECT,
        related_name="covered",
        db_index=False,
        help_text="What it runs on unasked.",
    )
    # Opaque too: with which token an MCP client asked.
    token_id = models.BigIntegerField(null=True)
    result = JSONTextField(null=True)
    error = JSONTextField(null=True)
    output = models.TextField(blank=True)
    deadline = models.DateTimeField(null=True, help_text="Until when a waiting call may be answered.")
    caution_takes_tick = models.BooleanField(
        null=True, help_text="Whether a yes takes a tick for the caution of a second model; null: there is none."
    )
    # Who decides, as it was when this was asked (oversight.py). Here, since a decision is judged by this row alone;
    # groups by their number, so that one that is deleted leaves its place.
    decided_by = models.CharField(max_length=16, choices=DecidedBy.choices, default=DecidedBy.REQUESTER)
    # Of a chain: the group whose turn it is (counting.py).
    decider_group = models.PositiveIntegerField(null=True)
    quorum = models.PositiveSmallIntegerField(default=1)
    not_the_requester = models.BooleanField(default=False)
    escalates_to = models.PositiveIntegerField(null=True)
    escalates_at = models.DateTimeField(null=True)
    oversight_digest = models.CharField(max_length=64, blank=True, help_text="Empty: the tool had no rules of its own.")
    owner = models.CharField(max_length=36, blank=True)
    lease_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=Status.values), name="call_status_known"),
            # Expiry is decided by comparing with it; without one a question would never close.
            models.CheckConstraint(
                condition=~Q(status=Status.WAITING) | Q(deadline__isnull=False), name="waiting_call_has_deadline"
            ),
        ]
        indexes = [
            # A turn asks for its calls in the model's order.
            models.Index(fields=["turn_id", "position"], name="call_by_turn"),
            models.Index(fields=["conversation_id", "created_at"], name="call_by_conversation"),
            models.Index(fields=["caller", "created_at"], name="call_by_caller"),
            # What a card is compared with: a person's last calls of one tool, however many they wait for.
            models.Index(
                fields=["caller", "tool_name", "created_at"], condition=Q(started_at__isnull=False), name="call_ran"
            ),
            models.Index(fields=["grant"], condition=Q(grant__isnull=False), name="call_by_grant"),
            # The sweeper: what is open and has not been touched for a while.
            models.Index(
                fields=["status", "lease_until"], condition=Q(status__in=[*UNFINISHED]), name="call_unfinished"
            ),
            # Has a test of this definition passed? Lets its tool be published.
            models.Index(
                fields=["tool", "definition_hash"],
                condition=Q(caller_kind=CallerKind.STUDIO, status=Status.SUCCEEDED),
                name="call_passed_test",
            ),
            # Healing runs whose call was settled by a process without a server loop.
            models.Index(fields=["settled_at"], name="call_by_settled_at"),
            # For insights: all that is counted of calls that are over. Written once, when a call settles.
            models.Index(
                fields=["created_at", "deadline", "status", "tool_name", "risk_level", "settled_at"],
                condition=Q(settled_at__isnull=False),
                name="call_over_by_time",
            ),
            # What waits for one person, the soonest deadline first, by each of the ways to decide (queue.py). Two more
            # are at the end.
            models.Index(fields=["caller", "deadline"], condition=Q(status=Status.WAITING), name="call_waiting"),
            models.Index(fields=["deadline"], condition=Q(status=Status.WAITING), name="call_overdue"),
            # What others may decide after some time.
            models.Index(
                fields=["escalates_to", "status"], condition=Q(escalates_to__isnull=False), name="call_by_second_group"
            ),
            # The history, the newest first: of all, where what few calls differ in is read in the index itself; of one
            # outcome; of one tool; of what ran unasked; of what others than the requester may decide.
            models.Index(
                fields=["created_at", "id", "risk_level", "caller_kind", "source", "rule"], name="call_by_time"
            ),
            # Without what is open, which has indexes of its own that this one must not come before.
            models.Index(
                fields=["status", "created_at", "id"],
                condition=Q(settled_at__isnull=False),
                name="call_by_outcome",
            ),
            models.Index(fields=["tool_name", "created_at", "id"], name="call_by_tool"),
            models.Index(fields=["created_at", "id"], condition=Q(deadline__isnull=True), name="call_unasked"),
            models.Index(
                fields=["decided_by", "decider_group", "created_at"],
                condition=~Q(decided_by=DecidedBy.REQUESTER),
                name="call_decided_by_time",
            ),
            # SQLite takes the newest of indexes that seem equal to it, so these come after those with settled calls.
            models.Index(
                fields=["decided_by", "decider_group", "deadline"],
                condition=Q(status=Status.WAITING) & ~Q(decided_by=DecidedBy.REQUESTER),
                name="call_by_deciders_waiting",
            ),
            models.Index(
                fields=["escalates_to", "deadline"],
                condition=Q(status=Status.WAITING, escalates_to__isnull=False),
                name="call_by_second_group_waiting",
            ),
        ]

    @property
    def settled(self) -> bool:
        return self.status in SETTLED

    @property
    def duration_ms(self) -> float | None:
        if self.started_at is None or self.settled_at is None:
            return None
        return (self.settled_at - self.started_at).total_seconds() * 1000


class Attachment(Row):
    """The bytes of one content block of what a call gave; `digest` is their SHA-256, by which the result names them."""

    call = models.ForeignKey(ToolCall, on_delete=models.PROTECT, related_name="attachments", db_index=False)
    digest = models.CharField(max_length=64)
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["call", "digest"], name="attachment_once_for_a_call")]


class Approval(Row):
    """The open question about one call. Its outcome is the call's status: there is no second place to keep it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    call = models.OneToOneField(ToolCall, on_delete=models.PROTECT, related_name="approval")
    prompt = models.TextField()
    disclosure = JSONTextField(help_text="What the card is built from, frozen when the question was asked last.")
    digest = models.CharField(max_length=64)
    same = models.CharField(max_length=64, blank=True, help_text="Equal for identical calls, which are joined.")
    # What was asked, and what the model claimed, stands in the record.
    whys = models.PositiveSmallIntegerField(default=0, help_text="How often somebody asked the model why.")
    why_until = models.DateTimeField(null=True, help_text="While the model is being asked: until when at the latest.")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["created_at", "id"]


class Verdict(models.TextChoices):
    APPROVE = "approve", gettext_noop("Approve")
    DECLINE = "decline", gettext_noop("Decline")
    # A no as well: with what the model is to do instead, or with an answer in place of the result.
    SUGGEST = "suggest", gettext_noop("Decline and say what to do instead")
    ANSWER = "answer", gettext_noop("Answer in the tool's place")


class Decision(Row):
    """One person's answer, and how they were known; that they gave it may also be no more than a client's word."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="decisions", db_index=False)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="decisions", db_index=False
    )
    # Whose place the person decided in, with the name of then; None: their own.
    absent = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    absent_name = models.CharField(max_length=150, blank=True)
    for_group = models.PositiveIntegerField(null=True, help_text="Of a chain: the group whose turn it was.")
    round = models.PositiveSmallIntegerField(default=1, help_text="Which of the call's rounds it answers.")
    verdict = models.CharField(max_length=8, choices=Verdict.choices)
    means = models.CharField(max_length=16, help_text="How the person was known, as an Actor has it.")
    client = models.CharField(max_length=100, blank=True, help_text="What the MCP client called itself: a claim.")
    token_name = models.CharField(max_length=80, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    edited_arguments = JSONTextField(null=True)
    digest = models.CharField(max_length=64, help_text="What was consented to.")
    first_shown_at = models.DateTimeField(null=True, help_text="When this person first had the card before them.")
    opened = models.BooleanField(null=True, help_text="Whether folded text was opened; null: nothing was folded.")
    hurried = models.BooleanField(default=False, help_text="Answered faster than the card can plausibly be read.")
    decided_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["round", "decided_at"]
        constraints = [
            models.UniqueConstraint(fields=["approval", "person", "round"], name="one_decision_per_person_and_round"),
            models.CheckConstraint(condition=Q(verdict__in=Verdict.values), name="decision_verdict_known"),
            models.CheckConstraint(condition=~Q(absent=F("person")), name="decision_for_somebody_else"),
        ]
        # None of what they are over changes. For insights: what is counted of decisions, and the few that are read.
        indexes = [
            models.Index(
                fields=["decided_at", "person", "verdict", "hurried", "first_shown_at"], name="decision_by_time"
            ),
            models.Index(fields=["decided_at"], condition=Q(hurried=True), name="decision_hurried"),
            models.Index(
                fields=["decided_at"], condition=Q(edited_arguments__isnull=False), name="decision_with_edits"
            ),
            # The history, by who decided; and what was answered faster than it can be read, which is little.
            models.Index(fields=["person", "approval"], name="decision_by_person"),
            models.Index(fields=["approval"], condition=Q(hurried=True), name="decision_hurried_approval"),
            models.Index(fields=["means", "approval"], name="decision_by_means"),
        ]


class Showing(Row):
    """The first time that a person had the card of this round before them.

    It says how: a person at a page, a program of theirs, or
    an MCP client that was to show it. It is told in the record too, as `call.shown`.
    """

    id = models.BigAutoField(primary_key=True)
    approval = models.ForeignKey(Approval, on_delete=models.CASCADE, related_name="showings", db_index=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    round = models.PositiveSmallIntegerField()
    means = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, help_text="Of what was shown.")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["approval", "person", "round"], name="shown_first_once_per_round"),
        ]


class Handling(Row):
    """Who says that they are on a question, and until when. It locks nothing: others may answer all the same."""

    approval = models.OneToOneField(Approval, on_delete=models.CASCADE, primary_key=True, related_name="handling")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    until = models.DateTimeField()


LONGEST_CAUTION = 300


class SecondOpinion(Row):
    """What another model had to say against a question, once it has answered: `caution` may stay empty (second.py)."""

    approval = models.OneToOneField(Approval, on_delete=models.PROTECT, primary_key=True, related_name="opinion")
    round = models.PositiveSmallIntegerField(help_text="The round in which it was read last.")
    model = models.CharField(max_length=200)
    takes_tick = models.BooleanField()
    caution = models.CharField(max_length=LONGEST_CAUTION, blank=True)
    at = models.DateTimeField(null=True, db_index=True, help_text="Null: there is no answer, and may never be one.")


class Hindsight(Row):
    """What a person said afterwards of a call that ran without asking."""

    class Verdict(models.TextChoices):
        FINE = "fine"
        SHOULD_ASK = "should_ask"

    call = models.OneToOneField(ToolCall, on_delete=models.PROTECT, primary_key=True, related_name="hindsight")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=10, choices=Verdict.choices)
    at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(verdict__in=["fine", "should_ask"]), name="hindsight_verdict_known"),
        ]


MOST_CALLS = 100


class End(models.TextChoices):
    """A way a grant ended before it was used up or its time was over."""

    REVOKED = "revoked", gettext_noop("Revoked")
    VOIDED = "voided", gettext_noop("Void")
    # Of an earned rule.
    DECAYED = "decayed", gettext_noop("Decayed")
    DECLINED = "declined", gettext_noop("Ended by a no")


class Grant(Row):
    """A permission to run without asking, given with a yes to one call. Only `used` and how it ended
    are ever written again; `seal` is over all the rest (grants/scope.py).

    Without an approval it is an earned rule: published by `person`, for the calls of everybody, with a budget; each use
    puts `until` off.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    approval = models.ForeignKey(Approval, null=True, on_delete=models.PROTECT, related_name="grants")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="grants")
    tool = models.ForeignKey(Tool, null=True, on_delete=models.SET_NULL, related_name="grants")
    tool_name = models.CharField(max_length=64)
    source = models.CharField(max_length=32)
    definition_hash = models.CharField(max_length=64)
    risk_level = models.PositiveSmallIntegerField()
    rule = models.CharField(max_length=64, help_text="The rules under which it was given.")
    caller_kind = models.CharField(max_length=8, choices=CallerKind.choices)
    token_id = models.BigIntegerField(null=True, help_text="Of an MCP client: only calls with this token are covered.")
    arguments_digest = models.CharField(max_length=64, blank=True, help_text="Empty: whatever the arguments.")
    conversation_id = models.UUIDField(null=True, help_text="Null: in any conversation.")
    calls = models.PositiveSmallIntegerField(null=True, help_text="How many calls; null: any number.")
    until = models.DateTimeField(null=True)
    condition = models.CharField(max_length=500, blank=True)
    per_day = models.PositiveSmallIntegerField(null=True, help_text="How many calls a day, of an earned rule.")
    per_person = models.PositiveSmallIntegerField(null=True, help_text="How many of these for one person.")
    event = models.BigIntegerField(null=True, help_text="The event that states that it was published.")
    given_at = models.DateTimeField(default=timezone.now)
    seal = models.CharField(max_length=64)
    used = models.PositiveIntegerField(default=0)
    end = models.CharField(max_length=8, choices=End.choices, blank=True)
    why = models.CharField(max_length=300, blank=True, help_text="Why it was ended, to go on a sentence.")
    ended_at = models.DateTimeField(null=True)
    ended_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["given_at", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(calls__isnull=False) | Q(until__isnull=False) | Q(conversation_id__isnull=False),
                name="grant_is_bounded",
            ),
            models.CheckConstraint(
                condition=Q(calls=None) | Q(calls__gte=1, calls__lte=MOST_CALLS, used__lte=F("calls")),
                name="grant_is_not_overdrawn",
            ),
            models.CheckConstraint(condition=Q(end__in=["", *End.values]), name="grant_end_known"),
            # One without a budget or a condition would cover everything.
            models.CheckConstraint(
                condition=Q(approval__isnull=False, per_day=None, per_person=None, event=None)
                | (Q(approval=None, per_day__gte=1, per_person__gte=1, event__isnull=False, until__isnull=False))
                & ~Q(condition=""),
                name="grant_or_earned_rule",
            ),
        ]
        indexes = [
            # What covers a call that comes in; and the meter and the page of one person.
            models.Index(fields=["person", "tool"], condition=Q(end=""), name="grant_standing"),
        ]

    @property
    def is_earned(self) -> bool:
        return self.approval_id is None

    @property
    def left(self) -> int | None:
        """Return how many more calls; None: any number."""
        return None if self.calls is None else self.calls - self.used
