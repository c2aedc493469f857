"""The capability `email`: plain text to recipients that the tool may write to, through Django's mail backend."""

import asyncio
import logging
import re
import smtplib
from collections.abc import Collection

from django.conf import settings
from django.core.mail import EmailMessage

from hitlchat.sandbox import HostFunction

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


def grants(patterns: Collection[str]) -> dict[str, HostFunction]:
    """`send_email` to whom `patterns` allow: an address, `@` and a domain for anyone there, `*` for anyone."""

    async def send_email(to: str | list[str], subject: str, text: str) -> None:
        recipients = _recipients(patterns, to)
        message = EmailMessage(_subject(subject), _text(text), to=recipients)
        if settings.EMAIL_BACKEND == SMTP and not settings.EMAIL_HOST:
            raise ValueError("E-mail is not set up on this server: set EMAIL_HOST.")
        await asyncio.to_thread(_send, message)

    return {"send_email": send_email} if patterns else {}


def _send(message: EmailMessage) -> None:
    """ValueError or TimeoutError: it was not sent, as far as is known, without the server's own words."""
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused:
        raise ValueError("send_email: the mail server refused the recipients") from None
    except (TimeoutError, smtplib.SMTPServerDisconnected):
        raise TimeoutError(
            "send_email: the mail server gave no answer in time, or broke off; the message may have been sent"
        ) from None
    except (smtplib.SMTPException, OSError) as error:
        logger.warning("An e-mail of a tool could not be sent: %s %s", type(error).__name__, _code(error))
        raise ValueError(
            "send_email: the mail server could not be reached, or did not take the message; the log says more"
        ) from None


def _code(error: Exception) -> int | None:
    return error.smtp_code if isinstance(error, smtplib.SMTPResponseException) else None


def _recipients(patterns: Collection[str], to: object) -> list[str]:
    """Each once. ValueError: no addresses. PermissionError: not to them."""
    named = [to] if isinstance(to, str) else to
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise TypeError("send_email: `to` is an address, or a list of addresses")
    if not 1 <= len(named) <= MOST_RECIPIENTS:
        raise ValueError(f"send_email: a message has 1 to {MOST_RECIPIENTS} recipients, not {len(named):,}")
    for each in named:
        if len(each) > 254 or not _ADDRESS.fullmatch(each):
            raise ValueError(f"send_email: {each[:80]!r} is no address such as ops@example.com")
        if not _is_allowed(patterns, each):
            raise PermissionError(f"send_email: this tool may not write to {each}")
    return list(dict.fromkeys(named))


def _is_allowed(patterns: Collection[str], address: str) -> bool:
    lower = address.lower()
    domain = lower[lower.rindex("@") :]
    return not {"*", lower, domain}.isdisjoint(pattern.lower() for pattern in patterns)


def _subject(subject: object) -> str:
    if not isinstance(subject, str):
        raise TypeError("send_email: the subject is a text")
    if len(subject) > LONGEST_SUBJECT or not subject.isprintable():
        raise ValueError(
            f"send_email: the subject is one line of at most {LONGEST_SUBJECT} characters, without control characters"
        )
    return subject


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError("send_email: the message is a text")
    size = len(text.encode())
    if size > LARGEST_TEXT or "\x00" in text:
        raise ValueError(f"send_email: the message is a text of at most {LARGEST_TEXT:,} bytes, without U+0000")
    return text
