"""The calls of a turn on their way to the gate: the requests for them, those that are held back, and what was said.

What was said, by the person and by earlier calls, is where the values of a call can come from.
"""

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from django.db.models import Case, Exists, OuterRef, QuerySet, When
from django.utils.translation import gettext_noop

from hitlchat.agent import subagents, transcript
from hitlchat.agent.answer import ModelCall
from hitlchat.agent.attachments.reading import ANY_IMAGE
from hitlchat.agent.models import Conversation, Message, Role, Run
from hitlchat.base import canonical
from hitlchat.base.background import attempt
from hitlchat.base.statements import compiled
from hitlchat.gate import question, queue, sources
from hitlchat.gate.disclosure import Suggested
from hitlchat.gate.models import Decision, ToolCall, Verdict, delegation
from hitlchat.gate.provenance import From, Heard, Text, in_one_text, leaves
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, Prepared, admit

STOPPED = gettext_noop("The run ended before anyone was asked about this call.")
# So many messages of the person, and so many calls of each conversation: the last ones.
LOOKED_THROUGH: Final = 30
# How what is attached begins, in the message that the model reads.
ATTACHMENT: Final = "[Attachment "


def held_back(turn_id: UUID | None) -> int:
    """Return how many calls of the turn are not at the gate yet."""
    return len(_held_back(turn_id))


def fits(run: Run) -> bool:
    """Return whether a held-back call of the open turn could be asked about now."""
    return bool(held_back(run.turn_id)) and _room(run) > 0


def next_of(run: Run) -> list[CallRequest]:
    """Return the requests of held-back calls of the open turn that there is room for."""
    return _requests_of(run)[: max(0, _room(run))]


def give_up(run: Run) -> None:
    """Put held-back calls on record as withdrawn: a model server insists on an answer to each."""
    for request in _requests_of(run):
        admit(Prepared(request, Status.WITHDRAWN, STOPPED))


def requests(conversation: Conversation, turn_id: UUID, calls: Iterable[tuple[int, ModelCall]]) -> list[CallRequest]:
    """Return the requests for calls of the turn, each with its position there."""
    caller, (prompt, before) = subagents.caller_of(conversation), heard(conversation)
    suggested: dict[str, list[Suggested]] = {}
    for name, arguments, instead in _suggested(turn_id):
        suggested.setdefault(name, []).append(Suggested(arguments, instead))
    return [
        CallRequest(
            tool_name=call.name,
            arguments=call.arguments,
            caller=caller,
            conversation_id=conversation.pk,
            turn_id=turn_id,
            position=position,
            model_call_id=call.id,
            user_prompt=prompt,
            heard=before,
            suggested=suggested.get(call.name, ()),
        )
        for position, call in calls
    ]


def heard(conversation: Conversation) -> tuple[str, Heard | None]:
    """Return what the person said last, and all that the model could have a value from, within bounds.

    Of an agent: what the person said in the conversation at the top, and what calls gave in those above it. Nothing, if
    a client called it.
    """
    ids = [conversation.pk]
    if conversation.call_id is not None:
        ids = delegation.with_those_above(ids)[conversation.pk]
    messages = list(_said(ids[-1]))
    if not messages:
        return "", None
    texts = [Text(content) for content, _ in messages]
    texts += [Text(file, "outside", given=content) for content, wire in messages if (file := _attached(content, wire))]
    # Of an image, and of a result that cannot be read, nobody here can say what is in it.
    is_whole = len(messages) < LOOKED_THROUGH and not any(ANY_IMAGE in wire for _, wire in messages)
    for each in ids:
        given = attempt(list, _given(each))
        is_whole &= given is not None and len(given) < LOOKED_THROUGH
        texts += _texts(given or [])
    return messages[0][0], Heard.of(texts, is_whole=is_whole)


def _room(run: Run) -> int:
    return queue.room(run.conversation.owner_id, run.conversation_id)


def _held_back(turn_id: UUID | None) -> list[tuple[int, dict[str, Any]]]:
    wire = _wire(turn_id).one() if turn_id else None
    calls = transcript.calls_in(wire) if wire else []
    admitted = set(_positions(turn_id)) if turn_id and calls else set()
    return [(position, call) for position, call in enumerate(calls) if position not in admitted]


def _requests_of(run: Run) -> list[CallRequest]:
    if run.turn_id is None:
        return []
    left = [(position, call["id"], call["function"]) for position, call in _held_back(run.turn_id)]
    wanted = [(position, ModelCall(pk, each["name"], each["arguments"])) for position, pk, each in left]
    return requests(run.conversation, run.turn_id, wanted)


@compiled
def _wire(turn_id: UUID) -> QuerySet[Message, str]:
    return Message.objects.filter(pk=turn_id).values_list("wire", flat=True)


@compiled
def _positions(turn_id: UUID) -> QuerySet[ToolCall, int]:
    """The places of the turn's calls that were put to the gate."""
    return ToolCall.objects.filter(turn_id=turn_id).order_by().values_list("position", flat=True)


@compiled
def _suggested(turn_id: UUID) -> QuerySet[Decision, Any]:
    """Return what was said to do instead of calls of the turn's run, with their tools and arguments."""
    turns = Message.objects.filter(run__messages=turn_id, role=Role.ASSISTANT).values("pk")
    rows = Decision.objects.filter(verdict=Verdict.SUGGEST, approval__call__turn_id__in=turns).order_by("decided_at")
    return rows.values_list("approval__call__tool_name", "approval__call__arguments", "reason")


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
    answers = ("approval__decisions__reason", "approval__decisions__edited_arguments")
    disclosure = Case(When(approval__decisions__edited_arguments__isnull=False, then="approval__disclosure"))
    return rows.order_by("-created_at").values_list(*columns, *answers, disclosure)[:LOOKED_THROUGH]


def _texts(rows: list[Any]) -> list[Text]:
    """Return what calls gave, and what people said with their decisions."""
    found: list[Text] = []
    outside = sources.outside({row[3:5] for row in rows})
    for status, pk, name, source, tool, arguments, result, error, reason, edited, disclosure in rows:
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
            before = dict(leaves(disclosure["arguments"]))
            found.append(Text(in_one_text([value for path, value in leaves(edited) if before.get(path, ...) != value])))
        origin: From = "outside" if (source, tool) in outside else "tool"
        found.append(Text(in_one_text([result, error]), origin, str(pk), name, in_one_text(arguments)))
    return found
