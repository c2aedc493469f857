"""Credentials that are not passwords: personal tokens, and the link that makes the first administrator."""

import hashlib
import secrets

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import models
from django.utils import timezone


def hashed(secret: str) -> str:
    """SHA-256; enough for secrets of 256 random bits, which can't be guessed from a list."""
    return hashlib.sha256(secret.encode()).hexdigest()


class TokenKind(models.TextChoices):
    API = "api", "API: acts as you, cannot decide"
    APPROVER = "approver", "Approver: may also decide what you may decide"
    MCP = "mcp", "MCP: for /mcp only"


class Token(models.Model):
    """A personal token. Only its hash is kept; the token itself is shown once."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tokens")
    kind = models.CharField(max_length=8, choices=TokenKind.choices)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.kind} token of {self.user_id}"

    @classmethod
    def make(cls, user: AbstractBaseUser, kind: TokenKind) -> str:
        """A new token of `user`: the only time its text is known."""
        secret = f"hitl_{kind.value}_{secrets.token_urlsafe(32)}"
        cls.objects.create(user_id=user.pk, kind=kind, digest=hashed(secret))
        return secret

    @classmethod
    def find(cls, secret: str) -> "Token | None":
        """The token with this text, if it exists and its user is active."""
        rows = cls.objects.select_related("user")
        return rows.filter(digest=hashed(secret), user__is_active=True).first()


class SetupLink(models.Model):
    """A one-time link that makes the first administrator of a new installation."""

    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"set-up link until {self.expires_at:%Y-%m-%d %H:%M}"

    @property
    def valid(self) -> bool:
        return self.expires_at > timezone.now()
