"""What was said in a conversation, from which a value of the model's calls can come: by the person, and by calls."""

from typing import Any, Final
from uuid import UUID

from django.db.models import Case, Exists, OuterRef, QuerySet, When

from hitlchat.agent.attachments.reading import ANY_IMAGE
from hitlchat.agent.models import Conversation, Message, Role
from hitlchat.base import canonical
from hitlchat.base.background import attempt
from hitlchat.base.statements import compiled
from hitlchat.gate import question, sources
from hitlchat.gate.models import ToolCall, delegation
from hitlchat.gate.provenance import From, Heard, Text, in_one_text, leaves
from hitlchat.gate.status import Status

# So many messages of the person, and so many calls of each conversation: the last ones.
LOOKED_THROUGH: Final = 30
# How what is attached begins, in the message that the model reads.
ATTACHMENT: Final = "[Attachment "


def heard(conversation: Conversation) -> tuple[str, Heard | None]:
    """Return what the person said last, and all that the model could have a value from, within bounds.

    Of an agent: what the person said in the conversation at the top, and what calls gave in those above it. Nothing, if
    a client called it.
    """
    ids = [conversation.pk]
    if conversation.call_id is not None:
        ids = delegation.with_those_above(ids)[conversation.pk]
    said = list(_said(ids[-1]))
    if not said:
        return "", None
    texts = [Text(content) for content, _ in said]
    texts += [Text(file, "outside", given=content) for content, wire in said if (file := _attached(content, wire))]
    # Of an image, and of a result that cannot be read, nobody here can say what is in it.
    is_whole = len(said) < LOOKED_THROUGH and not any(ANY_IMAGE in wire for _, wire in said)
    for each in ids:
        given = attempt(list, _given(each))
        is_whole &= given is not None and len(given) < LOOKED_THROUGH
        texts += _texts(given or [])
    return said[0][0], Heard.of(texts, is_whole=is_whole)


@compiled
def _said(conversation_id: UUID) -> QuerySet[Message, tuple[str, str]]:
    """What the person said, the last first; nothing of a conversation that a call began."""
    rows = Message.objects.shown().filter(conversation_id=conversation_id, conversation__call=None, role=Role.USER)
    return rows.order_by("-seq").values_list("content", "wire")[:LOOKED_THROUGH]


def _attached(content: str, wire: str) -> str:
    """Return the texts of files that came with a message."""
    if len(wire) < len(content) + len(ATTACHMENT):
        return ""
    read = canonical.loads(wire)["content"]
    parts = [read] if isinstance(read, str) else [part.get("text", "") for part in read]
    return "\n".join(parts).removeprefix(content)


@compiled
def _given(conversation_id: UUID) -> QuerySet[ToolCall, Any]:
    """What calls gave, the last first, each with every decision about it."""
    shown = Message.objects.filter(pk=OuterRef("turn_id"), run__shown=True)
    rows = ToolCall.objects.filter(Exists(shown), conversation_id=conversation_id, settled_at__isnull=False)
    columns = ("status", "pk", "tool_name", "source", "tool_id", "arguments", "result", "error")
    said = ("approval__decisions__reason", "approval__decisions__edited_arguments")
    asked = Case(When(approval__decisions__edited_arguments__isnull=False, then="approval__disclosure"))
    return rows.order_by("-created_at").values_list(*columns, *said, asked)[:LOOKED_THROUGH]


def _texts(rows: list[Any]) -> list[Text]:
    """Return what calls gave, and what people said with their decisions."""
    found: list[Text] = []
    outside = sources.outside({row[3:5] for row in rows})
    for status, pk, name, source, tool, arguments, result, error, reason, edited, asked in rows:
        if reason:
            found.append(Text(reason))
        if source == question.SOURCE:
            found.append(Text(in_one_text(result and result["answer"])))
            continue
        if status == Status.ANSWERED:
            found.append(Text(str(result)))
            continue
        if edited:
            # What the editor left as it was is not theirs.
            before = dict(leaves(asked["arguments"]))
            found.append(Text(in_one_text([value for path, value in leaves(edited) if before.get(path, ...) != value])))
        origin: From = "outside" if (source, tool) in outside else "tool"
        found.append(Text(in_one_text([result, error]), origin, str(pk), name, in_one_text(arguments)))
    return found
