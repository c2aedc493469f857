"""An e-mail address counts once the code that was sent there has come back: nobody subscribes somebody else."""

import base64
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from hitlchat.gate.actor import Actor
from hitlchat.gate.transition import note
from hitlchat.notices import changing
from hitlchat.notices.audience import mail_is_off
from hitlchat.notices.changing import Refused
from hitlchat.notices.models import Kind, Receiver, Wishes
from hitlchat.notices.sending import mailing

SALT = "hitlchat.notices.address"
BETWEEN_CODES = timedelta(seconds=30)
CODE_DAYS = 2


def address_of(person: User) -> Receiver | None:
    """The confirmed one, on or off."""
    return Receiver.objects.filter(person=person, kind=Kind.EMAIL).first()


def ask_for(person: User, address: str, actor: Actor) -> bool:
    """Switch mail on for `address`; whether a code was sent there that has to come back first. Refused."""
    known = address_of(person)
    if known is not None and known.place == address:
        changing.switch(known, actor, on=True)
        Wishes.objects.filter(person=person).update(pending="")
        return False
    if mail_is_off():
        raise Refused(mailing.MAIL_OFF)
    wishes, _ = Wishes.objects.get_or_create(person=person)
    now = timezone.now()
    free = Wishes.objects.filter(pk=wishes.pk).exclude(code_sent_at__gt=now - BETWEEN_CODES)
    if not free.update(pending="", code_sent_at=now):
        raise Refused(f"A code was sent just now. Another one can be in {BETWEEN_CODES.seconds} seconds.")
    body = (
        f"The code is {_code(person, address, 0)}\n\nEnter it in hitlchat under Notices to get notices at this address."
        "\nIf you did not ask for them, somebody mistyped an address: nothing more will come.\n"
    )
    result = mailing.sent(mailing.message_to(address, "confirm your address", body, f"code_{now.timestamp():.0f}"))
    if result.trouble:
        raise Refused(result.trouble)
    Wishes.objects.filter(pk=wishes.pk).update(pending=address)
    return True


def confirm(person: User, code: str, actor: Actor) -> Receiver:
    """Refused: it is not the code that was sent, or too old."""
    wishes = Wishes.objects.filter(person=person).exclude(pending="").first()
    given = code.strip().upper()
    if wishes is None or not any(
        constant_time_compare(given, _code(person, wishes.pending, ago)) for ago in range(CODE_DAYS)
    ):
        raise Refused("This is not the code that was sent there, or it is older than a day.")
    with transaction.atomic():
        now = timezone.now()
        row, _ = Receiver.objects.update_or_create(
            person=person,
            kind=Kind.EMAIL,
            defaults={"place": wishes.pending, "name": "E-mail", "enabled": True, "since": now, "off_why": ""},
            create_defaults={"place": wishes.pending, "name": "E-mail", "tells_decided": False, "made_by": person},
        )
        User.objects.filter(pk=person.pk).update(email=wishes.pending)
        Wishes.objects.filter(pk=wishes.pk).update(pending="")
        note(None, "notice.mail_on", actor=actor, data={"address": wishes.pending, "for": person.get_username()})
    return row


def _code(person: User, address: str, days_ago: int) -> str:
    """Known to this installation and to whoever reads the mail: nothing has to be kept."""
    day = (timezone.now() - timedelta(days=days_ago)).date().isoformat()
    digest = salted_hmac(SALT, f"{person.pk} {address} {day}", algorithm="sha256").digest()
    return base64.b32encode(digest)[:10].decode("ascii")
