"""The calls of a turn on their way to the gate: the requests for them, those that are held back, and what was said.

What was said, by the person and by earlier calls, is where the values of a call can come from. A call of an agent tool
is a conversation of its own with one run. Both begin in one transaction with the call, and what ends the run ends the
call in one transaction, too: so neither is ever lost or done twice, and the run that called waits, as for any call, in
the database alone.
"""

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import Case, Exists, OuterRef, QuerySet, When
from django.utils.translation import gettext_noop

from hitlchat.agent import transcript
from hitlchat.agent.answer import ModelCall
from hitlchat.agent.attachments.reading import ANY_IMAGE
from hitlchat.agent.models import Conversation, Message, Role, Run, RunStatus
from hitlchat.base import canonical
from hitlchat.base.background import attempt
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import compiled
from hitlchat.gate import perform, question, queue, sources
from hitlchat.gate.actor import Caller
from hitlchat.gate.disclosure import Suggested
from hitlchat.gate.models import Decision, Tool, ToolCall, Verdict, delegation
from hitlchat.gate.provenance import From, Heard, Text, in_one_text, leaves
from hitlchat.gate.results import NOT_EXECUTED
from hitlchat.gate.sources import ToolResult
from hitlchat.gate.status import STARTED, Status
from hitlchat.gate.submit import CallRequest, Prepared, admit
from hitlchat.gate.tools import AGENT

STOPPED = gettext_noop("The run ended before anyone was asked about this call.")
# So many messages of the person, and so many calls of each conversation: the last ones.
LOOKED_THROUGH: Final = 30
# How what is attached begins, in the message that the model reads.
ATTACHMENT: Final = "[Attachment "
AGENT_INSTRUCTIONS: Final = (
    "\n\nYou are the agent {name}. Another assistant called you with a task, which is your first message. You cannot "
    "talk with whoever called you: when you are done, answer with one final message, which is the result of that call. "
    "Say in it what was done and what was not. These are your instructions:\n{said}"
)
MOST_NAMED: Final = 20


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
    caller, (prompt, before) = caller_of(conversation), heard(conversation)
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


def caller_of(conversation: Conversation) -> Caller:
    """Return on whose behalf its model calls tools: an agent's on behalf of whoever called the agent."""
    owner, call = conversation.owner, conversation.call
    # The database has the same words.
    kind: Any = "chat" if call is None else call.caller_kind
    return Caller(kind, owner.pk, owner.get_username(), None if call is None else call.token_id)


def why_no_agent(run: Run, tool: Tool) -> str:
    """Return why the run may not begin this agent; empty if it may.

    Within the transaction that holds the run and puts its calls on record one after another.
    """
    above = delegation.steps(run.conversation_id)
    if any(row.call.tool_id == tool.pk for row in above):
        chain = " → ".join([*(row.call.tool_name for row in reversed(above)), tool.name])
        return translatable(
            f"{tool.name} is already working further up ({chain}): an agent cannot call itself, directly or "
            "through others."
        )
    if len(above) >= settings.AGENT_DEPTH:
        return translatable(
            f"Agents may be nested {settings.AGENT_DEPTH} deep here, and this one is already at that depth."
        )
    turns = Message.objects.filter(run_id=run.pk, role=Role.ASSISTANT).values("pk")
    # Calls that did not come to pass begin no agent.
    begun = ToolCall.objects.filter(turn_id__in=turns, source=AGENT).exclude(status__in=NOT_EXECUTED).count()
    if begun >= settings.AGENT_FAN_OUT:
        return translatable(f"One run may start {settings.AGENT_FAN_OUT} agents here, and this run already has.")
    return ""


def conclude_agent(run_id: UUID) -> None:
    """End the call of the agent tool that the run worked for, if it did, within the transaction that ends the run."""
    run = _of_agent(run_id).one()
    if run is None:
        return
    if run.status == RunStatus.DONE:
        answers = Message.objects.filter(run=run, role=Role.ASSISTANT).order_by("-seq")
        text = answers.values_list("content", flat=True).first()
        result = ToolResult(value=text or "The agent ended without saying anything.")
    elif run.status == RunStatus.STOPPED:
        result = ToolResult.failure("stopped", f"The agent was stopped before it finished. {_what_ran(run)}")
    else:
        result = ToolResult.failure("agent", f"The agent did not finish: {run.error} {_what_ran(run)}")
    assert run.conversation.call_id is not None
    perform.conclude(run.conversation.call_id, result)


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
def _of_agent(run_id: UUID) -> QuerySet[Run]:
    return Run.objects.filter(pk=run_id, conversation__call__isnull=False).select_related("conversation")


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


def _what_ran(run: Run) -> str:
    """Say which calls it and those below it ran, so that nobody has them run again unawares."""
    rows = ToolCall.objects.filter(conversation_id__in=delegation.family(run.conversation_id), status__in=STARTED)
    ran = list(rows.exclude(source=AGENT).order_by("created_at").values_list("tool_name", "status")[: MOST_NAMED + 1])
    if not ran:
        return "None of its calls was run."
    named = [f"{name} ({Status(status).label.lower()})" for name, status in ran[:MOST_NAMED]]
    return f"The calls it made before that stand: {', '.join([*named, *(['…'] if len(ran) > MOST_NAMED else [])])}."
