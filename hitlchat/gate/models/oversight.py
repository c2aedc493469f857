"""Who decides about the calls of one tool."""

from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q

from hitlchat.gate.models.tools import Tool

MOST_PEOPLE = 10


class DecidedBy(models.TextChoices):
    """Whose answers count."""

    REQUESTER = "requester", "The person it is called for"
    APPROVERS = "approvers", "Everyone with the role approver"
    GROUP = "group", "The people of one group"


class Oversight(models.Model):
    """Who decides about a tool's calls, where that is not simply the person it is called for: then there is no row.

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
    digest = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(decided_by__in=DecidedBy.values), name="oversight_decided_by_known"),
            models.CheckConstraint(condition=Q(quorum__range=(1, MOST_PEOPLE)), name="oversight_quorum_1_to_10"),
        ]

    def __str__(self) -> str:
        return f"who decides about {self.tool_id}"
