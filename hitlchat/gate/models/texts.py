"""What models read about calls that people or rules had a say in, in an operator's own words."""

from django.db import models
from django.db.models import Q

from hitlchat.gate.models.ids import new_id
from hitlchat.gate.models.tools import Tool

LONGEST_TEXT = 500


class Outcome(models.TextChoices):
    DECLINED = "declined", "Declined"
    FEEDBACK = "feedback", "Declined with a reason"
    EDITED = "edited", "Approved with changes"
    EXPIRED = "expired", "Not answered in time"
    REFUSED = "refused", "Refused by a rule"


class ModelText(models.Model):
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

    def __str__(self) -> str:
        return f"{self.outcome}: {self.text}"
