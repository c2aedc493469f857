"""Receivers of notices: every change to who hears of what, on record. E-mail addresses are confirmed by a code."""

import base64
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

import httpx2
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext as _

from hitlchat.accounts.roles import may_administer
from hitlchat.base.problems import Conflict
from hitlchat.gate.actor import Actor
from hitlchat.gate.transition import note
from hitlchat.notices import delivery
from hitlchat.notices.composing import mail_is_off
from hitlchat.notices.models import KEY, URL, Installation, Item, Kind, Notice, NoticeKind, Receiver, State, Wishes
from hitlchat.notices.wording import tested
from hitlchat.outbound import addresses
from hitlchat.secrets.sealing import seal

SALT: Final = "hitlchat.notices.address"
BETWEEN_CODES: Final = timedelta(seconds=30)
CODE_DAYS: Final = 2
MOST_EACH: Final = 10
LONGEST_URL: Final = 2000
# Receivers have so long to take over the new key.
FORMER_FOR: Final = timedelta(hours=24)


def address_of(person: User) -> Receiver | None:
    return Receiver.objects.filter(person=person, kind=Kind.EMAIL).first()


def ask_for(person: User, address: str, actor: Actor) -> bool:
    """Switch mail on for `address`, and return whether a code sent there has to come back first. Raises: Conflict"""
    confirmed = address_of(person)
    if confirmed is not None and confirmed.place == address:
        switch(confirmed, actor, on=True)
        Wishes.objects.filter(person=person).update(pending="")
        return False
    if mail_is_off():
        raise Conflict(delivery.MAIL_OFF)
    wishes, _created = Wishes.objects.get_or_create(person=person)
    now = timezone.now()
    free = Wishes.objects.filter(pk=wishes.pk).exclude(code_sent_at__gt=now - BETWEEN_CODES)
    if not free.update(pending="", code_sent_at=now):
        words = _("A code was just sent. You can send another in {seconds} seconds.")
        raise Conflict(words.format(seconds=BETWEEN_CODES.seconds))
    body = (
        f"The code is {_code(person, address, 0)}\n\nEnter it in hitlchat under Notices to get notices at this address."
        "\nIf you did not ask for them, someone mistyped an address, and no more mail will come.\n"
    )
    result = delivery.sent(delivery.message_to(address, "confirm your address", body, f"code_{now.timestamp():.0f}"))
    if result.trouble:
        raise Conflict(result.trouble)
    Wishes.objects.filter(pk=wishes.pk).update(pending=address)
    return True


def confirm(person: User, code: str, actor: Actor) -> Receiver:
    """Confirm an address by the code that was sent there. Raises: Conflict, if it is another code or too old."""
    wishes = Wishes.objects.filter(person=person).exclude(pending="").first()
    given = code.strip().upper()
    if wishes is None or not any(
        constant_time_compare(given, _code(person, wishes.pending, ago)) for ago in range(CODE_DAYS)
    ):
        raise Conflict("This is not the code that was sent, or it is older than a day.")
    with transaction.atomic():
        now = timezone.now()
        row, _created = Receiver.objects.update_or_create(
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
    """Return the code for an address, which this installation can make again: none is stored."""
    day = (timezone.now() - timedelta(days=days_ago)).date().isoformat()
    digest = salted_hmac(SALT, f"{person.pk} {address} {day}", algorithm="sha256").digest()
    return base64.b32encode(digest)[:10].decode("ascii")


def manageable(person: User) -> QuerySet[Receiver]:
    """Return one's own receivers, and to administrators those of groups and of the installation."""
    rows = Receiver.objects.filter(person=person)
    if may_administer(person):
        rows |= Receiver.objects.filter(person=None)
    return rows.select_related("group", "person")


def place_in(url: str, *, allow_private: bool) -> str:
    """Return the host of a webhook's address, with its port unless that is the usual one. Raises: Conflict"""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        # What sends takes fewer for an address.
        can_be_sent_to = bool(httpx2.URL(url).host)
    except (ValueError, httpx2.InvalidURL):
        raise Conflict("Expected an address such as https://hooks.example.com/in.") from None
    is_spelled = len(url) <= LONGEST_URL and url.isascii() and url.isprintable() and " " not in url
    if not is_spelled or not can_be_sent_to or not host or port == 0:
        raise Conflict("Expected an address such as https://hooks.example.com/in.")
    if parts.username is not None or parts.fragment:
        raise Conflict("Must not contain a user name, a password or a fragment.")
    if parts.scheme != "https" and not (parts.scheme == "http" and allow_private):
        raise Conflict("Must begin with https://: otherwise notices are sent unencrypted.")
    address = addresses.literal(host.strip("[]"))
    is_nobodys = address is not None and not addresses.is_public(address)
    if is_nobodys and not (allow_private and address is not None and addresses.is_local(address)):
        raise Conflict(f"{host} is not a public address, so notices cannot be sent there.")
    return host if port in (None, 443) else f"{host}:{port}"


def add(receiver: Receiver, url: str, actor: Actor) -> str:
    """Store a new webhook, and return its signing key, which is never shown again. Raises: Conflict"""
    receiver.allow_private = receiver.allow_private and settings.NOTICE_ALLOW_PRIVATE
    receiver.place = place_in(url, allow_private=receiver.allow_private)
    key = delivery.new_secret()
    receiver.url, receiver.secret = seal(url, URL), seal(key, KEY)
    receiver.made_by_id = actor.user_id
    with transaction.atomic():
        others = Receiver.objects.filter(person=receiver.person, group=receiver.group).exclude(kind=Kind.EMAIL)
        if others.count() >= MOST_EACH:
            raise Conflict(_("There are already {most} webhooks, which is the limit.").format(most=MOST_EACH))
        receiver.save(force_insert=True)
        _note("webhook_added", receiver, actor)
    return key


def remove(receiver: Receiver, actor: Actor) -> None:
    with transaction.atomic():
        _note("webhook_removed", receiver, actor)
        receiver.delete()


def switch(receiver: Receiver, actor: Actor, *, on: bool) -> None:
    """Switch a receiver on or off: what is not sent by then, or comes while it is off, never is."""
    with transaction.atomic():
        others = Receiver.objects.filter(pk=receiver.pk).exclude(enabled=on)
        if others.update(enabled=on, since=timezone.now(), off_why=""):
            delivery.drop(receiver.pk)
            Item.objects.filter(receiver=receiver, notice=None).delete()
            what = "mail" if receiver.is_mail else "webhook"
            _note(f"{what}_{'on' if on else 'off'}", receiver, actor)


def new_key(receiver: Receiver, actor: Actor) -> str:
    """Make another key; for a day each message is signed with the one before, too."""
    key = delivery.new_secret()
    with transaction.atomic():
        rows = Receiver.objects.filter(pk=receiver.pk, secret=receiver.secret)
        until = timezone.now() + FORMER_FOR
        if not rows.update(secret=seal(key, KEY), former_secret=receiver.secret, former_until=until):
            raise Conflict("The key was just changed. Reload the page.")
        _note("webhook_key_changed", receiver, actor)
    return key


def test(receiver: Receiver, person: User, actor: Actor) -> Notice:
    """Queue a message that says that it is a test. Raises: Conflict"""
    if Notice.objects.filter(receiver=receiver, kind=NoticeKind.TEST, state=State.DUE).exists():
        raise Conflict("A test message is already on its way.")
    notice = Notice(receiver=receiver, kind=NoticeKind.TEST)
    notice.subject, notice.body = tested(notice, person.get_username())
    with transaction.atomic():
        notice.save(force_insert=True)
        _note("tested", receiver, actor)
    transaction.on_commit(delivery.wake)
    return notice


def allow_arguments(actor: Actor, *, allowed: bool) -> None:
    row = Installation.row()
    with transaction.atomic():
        if Installation.objects.filter(pk=row.pk).exclude(arguments=allowed).update(arguments=allowed):
            note(None, f"notice.arguments_{'allowed' if allowed else 'withheld'}", actor=actor)


def _note(name: str, receiver: Receiver, actor: Actor) -> None:
    about = {each: getattr(receiver, each) for each in ("kind", "name", "place", "allow_private")}
    data = {"receiver": str(receiver.pk), "for": receiver.whom, **about}
    note(None, f"notice.{name}", actor=actor, data=data)
