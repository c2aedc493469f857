"""Attachments as the model reads them: texts within a message, images put into each request, within bounds."""

import base64
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from hitlchat.agent import routes
from hitlchat.agent.attachments import files
from hitlchat.agent.attachments.kinds import LABELS
from hitlchat.agent.model_client import ModelTrouble
from hitlchat.agent.models import Attachment, Conversation
from hitlchat.base import canonical
from hitlchat.base.statements import compiled
from hitlchat.base.visible import escaped

# How a message begins that is a list of parts, and an image in one. Nothing that is said can hold either: within the
# texts of JSON no quotation mark stands by itself.
PARTS: Final = '{"role": "user", "content": ['
_IMAGE: Final = re.compile(r'\{"type": "image_url", "image_url": \{"url": "attachment:([0-9a-f-]{36})"\}\}')
ANY_IMAGE: Final = '{"type": "image_url"'


@dataclass(frozen=True)
class Sight:
    """Images that one request carries: digest and media type of each by its id; `why` others are not sent."""

    images: dict[UUID, tuple[str, str]] = field(default_factory=dict)
    why: str = ""
    # Nothing that was written before this request holds it.
    key: str = field(default_factory=lambda: secrets.token_hex(16))

    def settle(self, serialised: str) -> str:
        """Return the message with its images named by the key, and what is not sent as text."""
        if not serialised.startswith(PARTS):
            return serialised
        found = _IMAGE.sub(self._named, serialised)
        if ANY_IMAGE in found:
            return found
        return canonical.pretty({"role": "user", "content": flat(canonical.loads(found)["content"])})

    def _named(self, match: re.Match[str]) -> str:
        if UUID(match[1]) in self.images:
            return canonical.pretty({"type": "image_url", "image_url": {"url": f"{self.key}:{match[1]}"}})
        return canonical.pretty({"type": "text", "text": f"[This image is not sent: {self.why}.]"})

    def fill(self, body: bytes) -> bytes:
        """Return the request with the bytes of its images. Raises: ModelTrouble, if one is gone by now."""
        pieces = re.split(self.key.encode() + rb":([0-9a-f-]{36})", body)
        for at in range(1, len(pieces), 2):
            digest, media_type = self.images[UUID(pieces[at].decode())]
            data = files.read(digest)
            if data is None:
                raise ModelTrouble("An attached image cannot be read from the server's disk. Attach it again.")
            pieces[at] = f"data:{media_type};base64,".encode() + base64.b64encode(data)
        return b"".join(pieces)


def wire(content: str, rows: Sequence[Attachment]) -> str:
    """Return the message with its attachments, serialised; sets `sent` of each row.

    One text, as the strictest server takes it, unless there are images.
    """
    left = settings.ATTACHMENT_MESSAGE_CHARACTERS
    parts: list[dict[str, Any]] = [{"type": "text", "text": content}] if content else []
    for row in rows:
        row.sent = min(left, len(row.text))
        left -= row.sent
        parts += _parts(row)
    return canonical.pretty({"role": "user", "content": flat(parts)})


def flat(parts: list[dict[str, Any]]) -> Any:
    """Return parts that are all text as one text."""
    if any(part["type"] != "text" for part in parts):
        return parts
    return "\n\n".join(part["text"] for part in parts)


def sight(conversation: Conversation) -> Sight:
    """Return the images that the next request carries: the last ones, as many as it may have."""
    if not routes.takes_images(conversation):
        return Sight(why="the model takes no images")
    images: dict[UUID, tuple[str, str]] = {}
    left = settings.MODEL_IMAGE_MIB * 2**20
    for pk, digest, media_type, size in _images(conversation.pk):
        left -= size
        if left < 0 or len(images) == settings.MODEL_IMAGES:
            break
        if files.place(digest).is_file():
            images[pk] = (digest, media_type)
    return Sight(images, "later images take its place, or it is no longer on the server")


def left_out(conversation: Conversation) -> set[UUID]:
    """Return the images of shown messages that the model is not sent any more."""
    pictures = {pk for pk, *_ in _images(conversation.pk)}
    return pictures - sight(conversation).images.keys() if pictures else set()


@compiled
def _images(conversation_id: UUID) -> QuerySet[Attachment, tuple[UUID, str, str, int]]:
    """The images of shown messages, the last first."""
    rows = Attachment.objects.filter(conversation_id=conversation_id, message__run__shown=True)
    found = rows.filter(media_type__startswith="image/").order_by("-message__seq", "-place")
    return found.values_list("pk", "digest", "media_type", "size")


def _parts(row: Attachment) -> list[dict[str, Any]]:
    # What is in the file cannot know its end: the last digits of an id are drawn at random.
    key, name = row.pk.hex[-8:], canonical.pretty(" ".join(escaped(row.name).split()))
    head = f"[Attachment {key}: {name}, {LABELS.get(row.media_type, row.media_type)}"
    if row.is_image:
        picture = {"type": "image_url", "image_url": {"url": f"attachment:{row.pk}"}}
        return [{"type": "text", "text": f"{head}.]"}, picture]
    cut = ""
    if row.sent < row.length or row.pages_read < row.pages:
        pages = f", from {row.pages_read} of {row.pages} pages" if row.pages else f" of {row.length:,}"
        cut = f"\n[Cut here: these are the first {row.sent:,} characters{pages}.]"
    text = f"{head}. Its text:]\n{row.text[: row.sent]}{cut}\n[End of attachment {key}.]"
    return [{"type": "text", "text": text}]
