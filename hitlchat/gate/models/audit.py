"""Audit events, and the seals that make a change of them evident."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from hitlchat.base.append_only import AppendOnly
from hitlchat.base.canonical import JSONTextField
from hitlchat.gate.models.calls import ToolCall


class AuditEvent(AppendOnly):
    """Something that happened, in the past tense, with what was shown and why."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=40)
    call = models.ForeignKey(ToolCall, null=True, on_delete=models.PROTECT, related_name="events")
    # Nothing is looked up by who did it, and each event would pay for its index.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    means = models.CharField(max_length=16)
    data = JSONTextField(default=dict)
    at = models.DateTimeField(default=timezone.now)
    # Of the data, so that the last one is found in one read; what is sealed is the data.
    guard_of = models.UUIDField(null=True, editable=False, help_text="The tool whose guard it states.")

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["at"], name="audit_by_time"),
            models.Index(fields=["guard_of", "id"], condition=Q(guard_of__isnull=False), name="audit_by_guard"),
        ]


class RecordKey(AppendOnly):
    """A public key that seals are signed with. `endorsement`: the signature of the key before it over this one; empty
    for the first, and for one that took over from a key that was lost.
    """

    id = models.CharField(max_length=64, primary_key=True, help_text="The fingerprint: SHA-256 of the public key.")
    public = models.CharField(max_length=64, help_text="The 32 bytes of an Ed25519 key (RFC 8032), in hexadecimal.")
    number = models.PositiveIntegerField(unique=True, help_text="Keys are counted; the highest one seals.")
    endorsement = models.CharField(max_length=128, blank=True)
    added_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["number"]


class Seal(AppendOnly):
    """One batch of events, sealed. It covers the events with an id from `first` to `last` but those in `gaps`, and
    those in `late`, which were committed after the batch that their ids fall into was sealed.

    `body` is what is hashed and signed (hitlchat/record/proofs.py); `salt` is not in it, so that it can stay here when
    a seal is given away.
    """

    number = models.PositiveBigIntegerField(primary_key=True)
    first = models.BigIntegerField()
    last = models.BigIntegerField()
    count = models.PositiveIntegerField()
    gaps = JSONTextField(default=list, help_text="Ranges of ids, both ends included, under which there was no event.")
    late = JSONTextField(default=list, help_text="Ids.")
    watch = models.PositiveBigIntegerField(help_text="From this batch on, gaps could still be filled.")
    root = models.CharField(max_length=64, help_text="Of the Merkle tree (RFC 6962) over the events' hashes.")
    marks = models.TextField(help_text="The first 16 digits of each event's hash: which of them was changed.")
    salt = models.CharField(max_length=64)
    format = models.PositiveSmallIntegerField(
        null=True, help_text="How events are hashed (record/commitment.py). Null: 1."
    )
    previous = models.CharField(max_length=64, blank=True, help_text="The hash of the seal before.")
    sealed_at = models.DateTimeField(default=timezone.now)
    key = models.ForeignKey(RecordKey, on_delete=models.PROTECT, related_name="+")
    hash = models.CharField(max_length=64)
    signature = models.CharField(max_length=128)

    class Meta:
        ordering = ["number"]
        indexes = [
            # Which batch an event is in, by its id; and what is old enough to be dropped.
            models.Index(fields=["last"], name="seal_by_last"),
            models.Index(fields=["sealed_at"], name="seal_by_time"),
        ]


class Drop(AppendOnly):
    """A batch whose events were dropped by retention; signed like a seal, which stays."""

    seal = models.OneToOneField(Seal, on_delete=models.PROTECT, primary_key=True, related_name="drop")
    dropped_at = models.DateTimeField(default=timezone.now)
    key = models.ForeignKey(RecordKey, on_delete=models.PROTECT, related_name="+")
    signature = models.CharField(max_length=128)

    class Meta:
        ordering = ["seal"]
