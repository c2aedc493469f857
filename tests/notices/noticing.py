"""Receivers of notices, and the work of a server in one go."""

from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group, User

from hitlchat.notices import receivers
from hitlchat.notices.delivery import DeliveryWorker
from hitlchat.notices.models import Kind, Notice, NoticeKind, Receiver
from tests.conftest import signed_in
from tests.notices.receivers import Inbound


def webhook(alice: User, to: Inbound | str, **columns: Any) -> tuple[Receiver, str]:
    """One that alice added, with its key. For the installation, unless `person` or `group` says for whom."""
    url = to if isinstance(to, str) else to.url
    usual: dict[str, Any] = {"kind": Kind.WEBHOOK, "name": "hook", "allow_private": True}
    receiver = Receiver(**usual | columns)
    key = receivers.add(receiver, url, signed_in(alice))
    return receiver, key


def of_group(name: str) -> Group:
    return Group.objects.create(name=name)


def mail_to(person: User, address: str, **columns: Any) -> Receiver:
    """A confirmed address."""
    usual: dict[str, Any] = {"tells_decided": False, "name": "E-mail"}
    return Receiver.objects.create(person=person, kind=Kind.EMAIL, place=address, **usual | columns)


def look() -> None:
    """Run the delivery worker once, to the end of everything that it sends."""

    async def once() -> None:
        worker = DeliveryWorker()
        await worker.look()
        await worker.settled()

    async_to_sync(once)()


def made(kind: NoticeKind = NoticeKind.WAITING) -> list[Notice]:
    return list(Notice.objects.filter(kind=kind).order_by("made_at"))
