"""The first administrator: a link printed on the server's console proves that whoever opens it runs the server."""

import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from hitlchat.accounts.models import SetupLink, hashed

LIFETIME = timedelta(hours=24)


class LinkUsed(Exception):
    """The link is unknown, was used, has lapsed, or there is an administrator already."""


def needed() -> bool:
    return not User.objects.filter(is_superuser=True, is_active=True).exists()


def make_link() -> str:
    """The secret of a new link. Earlier ones stay open, as other servers may have printed them."""
    secret = secrets.token_urlsafe(32)
    SetupLink.objects.create(digest=hashed(secret), expires_at=timezone.now() + LIFETIME)
    return secret


def is_open(secret: str) -> bool:
    link = SetupLink.objects.filter(digest=hashed(secret)).first()
    return link is not None and link.valid and needed()


def redeem(secret: str, username: str, password: str) -> User:
    """Make the administrator and use the link up, together. LinkUsed if it no longer opens anything."""
    with transaction.atomic():
        if not needed():
            raise LinkUsed("There is an administrator already. Sign in instead.")
        used, _ = SetupLink.objects.filter(digest=hashed(secret), expires_at__gt=timezone.now()).delete()
        if used != 1:
            raise LinkUsed("This link is no longer valid. Restart the server to get a new one.")
        SetupLink.objects.all().delete()
        return User.objects.create_superuser(username=username, password=password)
