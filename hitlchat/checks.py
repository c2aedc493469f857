"""System checks of settings that parse, and would not work as they seem to."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution

from hitlchat.gate.policies.loading import Unloadable, in_force

LOOPBACK = {"127.0.0.1", "localhost", "[::1]"}


def check_settings(**_: Any) -> Iterator[CheckMessage]:
    yield from _check_gate()
    url = settings.OPENAI_BASE_URL
    if url and (urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname):
        hint = "Include the path of the API, as in http://127.0.0.1:11434/v1."
        yield Error(f"OPENAI_BASE_URL is {url!r}, which is not an http or https URL.", hint=hint, id="hitlchat.E001")
    if url and not settings.OPENAI_MODEL:
        hint = "Set OPENAI_MODEL to a model that the server offers."
        yield Caution("OPENAI_BASE_URL is set, but OPENAI_MODEL is not.", hint=hint, id="hitlchat.W002")
    if settings.DEBUG and not set(settings.ALLOWED_HOSTS) <= LOOPBACK:
        hint = "Unset DEBUG: its error pages show settings and code to everyone."
        yield Error("DEBUG is on while other hosts than this machine are allowed.", hint=hint, id="hitlchat.E002")


def _check_gate() -> Iterator[CheckMessage]:
    if not settings.HITL_ENABLED:
        hint = "Unset HITL_ENABLED to turn approvals on again."
        words = "Approvals are switched off: every tool runs without asking."
        yield Caution(words, hint=hint, id="hitlchat.W001")
    if settings.HITL_MAX_WAITING_PER_CALLER < settings.HITL_MAX_WAITING_PER_CONVERSATION:
        hint = (
            "Calls over the caller's limit are refused, although their run could have paused until others are answered."
        )
        words = "HITL_MAX_WAITING_PER_CALLER is less than HITL_MAX_WAITING_PER_CONVERSATION."
        yield Caution(words, hint=hint, id="hitlchat.W003")
    try:
        in_force()
    except Unloadable as error:
        hint = "docs/policies.md lists every policy and its fields. Until this is fixed, every call needs approval."
        yield Error(str(error), hint=hint, id="hitlchat.E003")
