"""People as the pages and the command list them."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from hitlchat.accounts.roles import with_roles


def everyone(q: str = "", role: str = "", state: str = "") -> QuerySet[Any]:
    """By name, each with `role` and `token_count`, narrowed to what fits all that is given."""
    unexpired = Q(tokens__expires_at=None) | Q(tokens__expires_at__gt=timezone.now())
    rows = with_roles(User.objects.annotate(token_count=Count("tokens", filter=unexpired)))
    if q:
        names = ("username", "first_name", "last_name", "email")
        rows = rows.filter(Q(*[(f"{name}__icontains", q) for name in names], _connector=Q.OR))
    if role:
        rows = rows.filter(role=role)
    if state:
        rows = rows.filter(is_active=state == "active")
    return rows.order_by("-is_active", "username")
