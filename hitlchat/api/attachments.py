"""Files for messages: sent ahead to a conversation, fetched, and removed while no message has them."""

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from ninja import File, Router
from ninja.files import UploadedFile
from pydantic import Field

from hitlchat.agent import conversations
from hitlchat.agent import models as agent
from hitlchat.agent.attachments import keeping
from hitlchat.api.auth import ApiRequest
from hitlchat.api.contract import Shape

router = Router(tags=["attachments"], by_alias=True)


class Attachment(Shape):
    id: UUID
    name: str
    media_type: str = Field(description="Detected from the content.")
    size: int
    note: str = Field(description="Says which part of a text the model reads; empty if it reads all.")


def attachment(row: agent.Attachment) -> Attachment:
    return Attachment.of(row, note=keeping.note(row))


@router.post("/conversations/{uuid:conversation_id}/attachments", response={201: Attachment})
def attach(request: ApiRequest, conversation_id: UUID, file: File[UploadedFile]) -> Attachment:
    """Send a file ahead, as `multipart/form-data`; a message takes it along by its id.

    PNG, JPEG, GIF and WebP images, PDFs with text, and text in UTF-8 such as Markdown, CSV and JSON; what it is, its
    content says. 413 if it is too large, 415 if it is of another kind, 422 for a PDF that cannot be read.
    """
    found = get_object_or_404(conversations.of(request.auth.user), pk=conversation_id)
    name = file.name or ""
    # Before reading: a larger file has stayed on the disk.
    keeping.require_size(name, file.size or 0)
    return attachment(keeping.add(found, name, file.read()))


@router.get("/conversations/{uuid:conversation_id}/attachments", response=list[Attachment])
def list_unsent(request: ApiRequest, conversation_id: UUID) -> list[Attachment]:
    """Files that no message of the conversation has yet."""
    found = get_object_or_404(conversations.of(request.auth.user), pk=conversation_id)
    return [attachment(row) for row in keeping.unsent().filter(conversation=found).order_by("id")]


@router.get("/attachments/{uuid:attachment_id}", response={200: None})
def fetch_attachment(request: ApiRequest, attachment_id: UUID) -> HttpResponse:
    """The file itself."""
    return keeping.fetched(_mine(request, attachment_id))


@router.delete("/attachments/{uuid:attachment_id}", response={204: None})
def remove_attachment(request: ApiRequest, attachment_id: UUID) -> None:
    """Remove it, while no message has it; 409 afterwards."""
    keeping.remove(_mine(request, attachment_id))


def _mine(request: ApiRequest, attachment_id: UUID) -> agent.Attachment:
    return get_object_or_404(keeping.mine(request.auth.user), pk=attachment_id)
