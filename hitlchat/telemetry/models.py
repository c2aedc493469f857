"""Stored totals of the record, so that reading the numbers costs the same however long the record is."""

from django.db import models

from hitlchat.base.rows import Row


class Mark(Row):
    """The mark of the stored totals: every event up to this one is in them, and none after it. One row."""

    event_id = models.BigIntegerField(default=0)


class Total(Row):
    """One number, under its name and the values of its labels."""

    name = models.CharField(max_length=64)
    labels = models.CharField(max_length=200, help_text="Their values, in order, with spaces between.")
    value = models.FloatField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "labels"], name="one_total_per_name_and_labels")]
