"""Who hears of what, and what is on its way to them."""

from hitlchat.notices.models.outbox import Heard, Item, ItemKind, Notice, NoticeKind, State
from hitlchat.notices.models.receivers import Kind, Receiver
from hitlchat.notices.models.wishes import Installation, Wishes

__all__ = [
    "Heard",
    "Installation",
    "Item",
    "ItemKind",
    "Kind",
    "Notice",
    "NoticeKind",
    "Receiver",
    "State",
    "Wishes",
]
