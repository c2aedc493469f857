"""What is sealed of a webhook: its address, which may be its password, and the keys that it is signed with."""

from django.utils import timezone

from hitlchat.notices.models import Receiver
from hitlchat.secrets.sealing import seal, unseal

URL = "notice url"
KEY = "notice key"


def sealed_url(url: str) -> str:
    return seal(url, URL)


def sealed_key(key: str) -> str:
    return seal(key, KEY)


def url_of(receiver: Receiver) -> str:
    """Unsealable."""
    return unseal(receiver.url, URL)


def keys_of(receiver: Receiver) -> tuple[str, ...]:
    """The present one, and the former one while receivers may still check with it. Unsealable."""
    keys = [unseal(receiver.secret, KEY)]
    if receiver.former_until is not None and receiver.former_until > timezone.now():
        keys.append(unseal(receiver.former_secret, KEY))
    return tuple(keys)
