"""Roles, and credentials that are not passwords: personal tokens, and the links by which people come in."""

import hashlib
import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import models
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop

# Written at most so often; good enough to see what is still in use.
from hitlchat.base.rows import Row

NOTE_USE_EVERY = timedelta(minutes=1)


def hashed(secret: str) -> str:
    """SHA-256; enough for secrets of 256 random bits, which can't be guessed from a list."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Role(models.TextChoices):
    MEMBER = "member", gettext_noop("Member")
    APPROVER = "approver", gettext_noop("Approver")
    AUTHOR = "author", gettext_noop("Author")
    ADMINISTRATOR = "administrator", gettext_noop("Administrator")


class TokenKind(models.TextChoices):
    API = "api", gettext_noop("API: acts as you, cannot decide")
    APPROVER = "approver", gettext_noop("Approver: may also decide what you may decide")
    MCP = "mcp", gettext_noop("MCP: for /mcp only")


class Token(Row):
    """A personal token. Only its hash is kept; the token itself is shown once."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tokens")
    kind = models.CharField(max_length=8, choices=TokenKind.choices)
    digest = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=80, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, editable=False)
    attended = models.BooleanField(
        default=False, help_text="A person sits at its MCP client, says an administrator: its word may count as a yes."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(attended=False) | Q(kind=TokenKind.MCP), name="only_mcp_is_attended")
        ]

    def __str__(self) -> str:
        return self.name or f"{self.kind} token of {self.user_id}"

    @classmethod
    def make(cls, user: AbstractBaseUser, kind: TokenKind, name: str = "", expires_at: datetime | None = None) -> str:
        """A new token of `user`: the only time its text is known. ValidationError names the field that does not fit."""
        secret = f"hitl_{kind.value}_{secrets.token_urlsafe(32)}"
        row = cls(user_id=user.pk, kind=kind, name=name, expires_at=expires_at, digest=hashed(secret))
        row.full_clean()
        row.save(force_insert=True)
        return secret

    @classmethod
    def valid(cls) -> "QuerySet[Token]":
        unexpired = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
        return cls.objects.select_related("user").filter(unexpired, user__is_active=True)

    @classmethod
    def attended_now(cls) -> "QuerySet[Token]":
        return cls.valid().filter(attended=True, kind=TokenKind.MCP)

    @classmethod
    def find(cls, secret: str) -> "Token | None":
        return cls.valid().filter(digest=hashed(secret)).first()

    def note_use(self) -> None:
        now = timezone.now()
        if self.last_used_at is None or now - self.last_used_at > NOTE_USE_EVERY:
            Token.objects.filter(pk=self.pk).update(last_used_at=now)


class SetupLink(Row):
    """A one-time link that makes the first administrator of a new installation."""

    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()


class Invitation(Row):
    """A link that makes one account with this role. Only its hash is kept; it is deleted when it is used or revoked."""

    digest = models.CharField(max_length=64, unique=True)
    role = models.CharField(max_length=16, choices=Role.choices)
    note = models.CharField(max_length=120, blank=True, help_text="For whom it is, as the inviter wrote it.")
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="invitations"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ["expires_at"]
        # Of no model in particular: what an approver may do, for the gate and whoever else asks.
        permissions = [("decide_for_others", "May be let decide calls of other people")]
        constraints = [models.CheckConstraint(condition=Q(role__in=Role.values), name="invitation_role_known")]
