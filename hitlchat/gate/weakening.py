"""Settings that decide how much is asked, on record: once whenever a server starts with others than the last time."""

from typing import Any

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.db import transaction

from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import AuditEvent
from hitlchat.gate.transition import note

CHANGED = "settings.changed"
# Those with a value that is no secret. With another one, fewer calls ask, or others decide, or tools may do more.
WATCHED = (
    *("HITL_ENABLED", "HITL_POLICIES", "HITL_POLICY_SECONDS", "HITL_TIMEOUT_SECONDS", "HITL_ELICITATION_MAX_RISK"),
    *("HITL_FRESH_SIGN_IN_MINUTES", "HITL_RECORD_DAYS", "TOOLS_REQUIRE_JAIL", "TOOLS_ENV", "MCP_ALLOW_STDIO"),
    *("MCP_ALLOW_PRIVATE", "TRUSTED_PROXIES", "DEBUG"),
)


def record_settings() -> bool:
    """Put the settings on record if they differ from those recorded last; whether they did."""
    now = {name: _plain(getattr(settings, name)) for name in WATCHED}
    with transaction.atomic():
        # Of several processes that start at a time one writes it.
        list(ContentType.objects.select_for_update().filter(app_label="gate", model="auditevent"))
        last = AuditEvent.objects.filter(name=CHANGED).order_by("-pk").first()
        before: dict[str, Any] = last.data["settings"] if last else {}
        differing = [name for name in WATCHED if name not in before or before[name] != now[name]]
        if not differing:
            return False
        data = {
            "before": {name: before[name] for name in differing if name in before},
            "after": {name: now[name] for name in differing},
            "settings": now,
        }
        note(None, CHANGED, actor=SYSTEM, data=data)
    return True


def _plain(value: Any) -> Any:
    """Return `value` as the record has it."""
    return [_plain(each) for each in value] if isinstance(value, list | tuple | set | frozenset) else value
