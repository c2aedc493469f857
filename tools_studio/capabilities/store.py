"""The capabilities `store` and `email`: values that tools of one group keep, and plain text to allowed recipients."""

import asyncio
import logging
import re
import smtplib
from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.sandbox import HostFunction
from tools_studio.models import StoreEntry

MOST_KEYS = 10_000
LONGEST_KEY = 200
LARGEST_VALUE = 64 * 1024
logger = logging.getLogger(__name__)
SMTP = "django.core.mail.backends.smtp.EmailBackend"
MOST_RECIPIENTS = 20
LONGEST_SUBJECT = 200
LARGEST_TEXT = 100 * 1024
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
# A bare address of plain letters: neither names nor quotes nor routes, which servers read differently.
_ADDRESS = re.compile(
    rf"[a-z0-9#$&'*+/=?^_`{{|}}~-]+(?:\.[a-z0-9#$&'*+/=?^_`{{|}}~-]+)*@{_LABEL}(?:\.{_LABEL})*",
    re.IGNORECASE | re.ASCII,
)


def store_grants(group: str) -> dict[str, HostFunction]:
    """Return the functions of `hitl.store` for tools of `group`, which reach no other group's values."""

    async def get(key: str, default: Any = None) -> Any:
        entry = await in_db(_rows(group).filter(key=_key(key)).first)()
        return default if entry is None else entry.value

    async def set_(key: str, value: Any) -> None:
        await in_db(_put)(group, _key(key), value)

    async def delete(key: str) -> bool:
        removed, _ = await in_db(_rows(group).filter(key=_key(key)).delete)()
        return removed > 0

    async def keys(prefix: str = "") -> list[str]:
        found = _rows(group).filter(key__startswith=_text(prefix)).order_by("key")
        return await in_db(lambda: list(found.values_list("key", flat=True)))()

    return {"store.get": get, "store.set": set_, "store.delete": delete, "store.keys": keys}


def _rows(group: str) -> QuerySet[StoreEntry]:
    return StoreEntry.objects.filter(group=group)


def _put(group: str, key: str, value: Any) -> None:
    try:
        size = len(canonical.dumps(value))
    except canonical.NotJson as error:
        raise ValueError(f"store.set can keep JSON values only: {error}") from error
    if size > LARGEST_VALUE:
        raise ValueError(f"store.set: the value takes {size:,} bytes; at most {LARGEST_VALUE:,} can be kept")
    with transaction.atomic():
        if not _rows(group).filter(key=key).update(value=value):
            if _rows(group).count() >= MOST_KEYS:
                raise ValueError(f"store.set: the group has {MOST_KEYS:,} keys already; delete some first")
            try:
                with transaction.atomic():
                    StoreEntry.objects.create(group=group, key=key, value=value)
            except IntegrityError:  # another call was first
                _rows(group).filter(key=key).update(value=value)


def _key(key: object) -> str:
    text = _text(key)
    if not 1 <= len(text) <= LONGEST_KEY:
        raise ValueError(f"store: a key has 1 to {LONGEST_KEY} characters, not {len(text):,}")
    return text


def _text(value: object) -> str:
    if not isinstance(value, str) or "\x00" in value:
        raise TypeError("store: a key is a text without U+0000")
    return value


def email_grants(patterns: Collection[str]) -> dict[str, HostFunction]:
    """Return `send_email` for these recipients: an address, `@` and a domain for anyone there, `*` for anyone."""

    async def send_email(to: str | list[str], subject: str, text: str) -> None:
        recipients = _recipients(patterns, to)
        if not isinstance(subject, str):
            raise TypeError("send_email: the subject is a text")
        if len(subject) > LONGEST_SUBJECT or not subject.isprintable():
            one_line = f"one line of at most {LONGEST_SUBJECT} characters, without control characters"
            raise ValueError(f"send_email: the subject is {one_line}")
        if not isinstance(text, str):
            raise TypeError("send_email: the message is a text")
        if len(text.encode()) > LARGEST_TEXT or "\x00" in text:
            raise ValueError(f"send_email: the message is a text of at most {LARGEST_TEXT:,} bytes, without U+0000")
        if settings.EMAIL_BACKEND == SMTP and not settings.EMAIL_HOST:
            raise ValueError("E-mail is not set up on this server: set EMAIL_HOST.")
        await asyncio.to_thread(_send, EmailMessage(subject, text, to=recipients))

    return {"send_email": send_email} if patterns else {}


def _send(message: EmailMessage) -> None:
    """Send it. Raises: ValueError, TimeoutError, in words that are not the mail server's"""
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused:
        raise ValueError("send_email: the mail server refused the recipients") from None
    except (TimeoutError, smtplib.SMTPServerDisconnected):
        raise TimeoutError(
            "send_email: the mail server gave no answer in time, or broke off; the message may have been sent"
        ) from None
    except (smtplib.SMTPException, OSError) as error:
        code = error.smtp_code if isinstance(error, smtplib.SMTPResponseException) else None
        logger.warning("An e-mail of a tool could not be sent: %s %s", type(error).__name__, code)
        raise ValueError(
            "send_email: the mail server could not be reached or rejected the message; see the log"
        ) from None


def _recipients(patterns: Collection[str], to: object) -> list[str]:
    """Return each recipient once. Raises: TypeError, ValueError, PermissionError"""
    named = [to] if isinstance(to, str) else to
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise TypeError("send_email: `to` is an address, or a list of addresses")
    if not 1 <= len(named) <= MOST_RECIPIENTS:
        raise ValueError(f"send_email: a message has 1 to {MOST_RECIPIENTS} recipients, not {len(named):,}")
    for each in named:
        if len(each) > 254 or not _ADDRESS.fullmatch(each):
            raise ValueError(f"send_email: {each[:80]!r} is not an address such as ops@example.com")
        lower = each.lower()
        if {"*", lower, lower[lower.rindex("@") :]}.isdisjoint(pattern.lower() for pattern in patterns):
            raise PermissionError(f"send_email: this tool may not write to {each}")
    return list(dict.fromkeys(named))
