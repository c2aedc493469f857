"""One mail to one person, through Django's mail backend."""

import asyncio
import logging
import smtplib
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from django.core.mail import EmailMessage

from hitlchat.notices.audience import mail_is_off
from hitlchat.notices.models import Notice
from hitlchat.notices.sending.outbox import Result

logger = logging.getLogger(__name__)

# A mail server that hangs holds these and nothing else.
AT_ONCE = 2
_THREADS = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="notice-mail")
MAIL_OFF = "E-mail is off: EMAIL_HOST is not set for this server."


async def mail(notice: Notice) -> Result:
    """Send it once."""
    if mail_is_off():
        return Result(MAIL_OFF)
    message = message_to(notice.receiver.place, notice.subject, notice.body, notice.message_id)
    return await asyncio.get_running_loop().run_in_executor(_THREADS, partial(sent, message))


def message_to(address: str, subject: str, body: str, message_id: str) -> EmailMessage:
    """To one address; mail servers and programs are told that no person wrote it."""
    headers = {"Message-ID": f"<{message_id}@hitlchat>", "Auto-Submitted": "auto-generated"}
    return EmailMessage(f"hitlchat: {' '.join(subject.split())}"[:200], body, to=[address], headers=headers)


def sent(message: EmailMessage) -> Result:
    """What the server itself said stays out of what people read: it may tell of its insides."""
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused as refused:
        codes = [code for code, _ in refused.recipients.values()]
        return Result("The mail server refused the address.", final=all(code >= 500 for code in codes))
    except ValueError:
        return Result("The address or the subject cannot stand in a mail.", final=True)
    except smtplib.SMTPAuthenticationError:
        return Result("The mail server refused our user name and password.")
    except smtplib.SMTPResponseException as error:
        return Result(f"The mail server did not take the mail (code {error.smtp_code}).")
    except (smtplib.SMTPException, OSError) as error:
        logger.warning("A notice could not be mailed: %s", type(error).__name__)
        return Result("The mail server could not be reached, or gave no answer in time.")
    return Result()
