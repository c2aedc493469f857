"""Conversations as their owner keeps them: titled, pinned, archived, deleted, and brought back."""

from datetime import timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.agent import limits, presets, routes, runner, runs, search, tool_sets, transcript, writing
from hitlchat.agent.attachments import keeping
from hitlchat.agent.models import ACTIVE, Attachment, Conversation, Message, OwnDefaults, Preset, Run, Titling
from hitlchat.base.background import Worker
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.base.problems import Conflict, Invalid, NotFound, required
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import compiled
from hitlchat.gate import oversight, ruling, stopping
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import Asks, ToolCall, delegation
from hitlchat.gate.status import SETTLED
from hitlchat.gate.tools import withdraw_out_of_reach
from hitlchat.gate.transition import note

LONGEST_TITLE: Final = 200
LONGEST_INSTRUCTIONS: Final = 10_000
# How long a deleted one can be brought back at least; pages offer it for ten seconds.
KEPT: Final = timedelta(minutes=1)
CLEAN_SECONDS: Final = 30.0
AT_ONCE: Final = 20
SHARED, UNSHARED = "conversation.shared", "conversation.unshared"
WHY: Final = gettext_noop("its conversation was deleted")


class BadConversation(Invalid):
    """The conversation cannot be so; `errors` says by field what was expected, and nothing was changed."""


def of(user: User | int) -> QuerySet[Conversation]:
    """Return the conversations of this person, without deleted ones."""
    return Conversation.objects.filter(owner=user, deleted_at=None)


@compiled
def owned(conversation_id: UUID, user_id: int) -> QuerySet[Conversation]:
    """Return the conversation, with its person, if it is this one's own."""
    return own(user_id).select_related("owner").filter(pk=conversation_id)


def own(user: User | int) -> QuerySet[Conversation]:
    """Return those that the person began: without those of agents, which are reached from there."""
    return of(user).filter(call=None)


def listed(user: User) -> QuerySet[Conversation]:
    """Return those of them that are more than files for a first message."""
    return own(user).exclude(pk__in=keeping.only_drafts().filter(owner=user).values("pk"))


def create(
    owner: User,
    *,
    title: str = "",
    asks: str | None = None,
    actor: Actor | None = None,
    preset: Preset | None = None,
    **wanted: Any,
) -> Conversation:
    """Begin a conversation: with a title of one's own, or with that which the first message makes.

    What is not in `wanted` is that of the `preset`, or else what the person's conversations begin with; `wanted` has an
    endpoint as `routes.columns` gives it. If the person's own is gone, a notice says which one is asked instead.
    A `draft` is not listed until something is said or set in it, and removed if nothing is (attachments/keeping.py).
    `asks`: about which calls by itself, and at least as the preset does; on record as done by `actor`. A program does
    not have it ask less than the person's conversations do.
    Raises: BadConversation, BadLimits, BadTools; NotOffered, also by what a preset has.
    """
    limits.checked(wanted)
    columns = {name: value for name, value in wanted.items() if name not in ("tools", "tool_set")}
    if "instructions" in columns:
        columns["instructions"] = _instructions(columns["instructions"])
    given = presets.columns(preset) if preset is not None else {}
    own_defaults = limits.own_defaults(owner)
    usual = {name: getattr(own_defaults, name) for name in ("instructions", *limits.NAMES)}
    usual |= tool_sets.beginning(owner)
    columns = usual | given | columns | tool_sets.columns(wanted)
    fallen_back = ""
    if "endpoint" not in columns:
        beginning, fallen_back = routes.usual(owner)
        columns = {"endpoint": beginning.endpoint, "model": beginning.model} | columns
        routes.require_offered(columns["endpoint"], columns["model"])
    usual_asks = presets.asks_word(own_defaults.asks)
    if asks is None:
        asks = usual_asks
    elif actor is None or not actor.is_person:
        asks = oversight.strictest(asks, usual_asks)
    with transaction.atomic():
        titling = Titling.OWN if title else Titling.OVER
        made = Conversation.objects.create(owner=owner, title=title, titling=titling, **columns)
        least = made.least_asks or Asks.TOOLS.value
        by_owner = Actor(owner.pk, "system", name=owner.get_username())
        ruling.begin_strictness(made.pk, oversight.strictest(asks, least), actor or by_owner)
        if title:
            search.note_title(made.pk, title)
        # What is said in a draft would list it; whoever begins one so has read it on the start page.
        if fallen_back and not made.draft:
            transcript.add_notice(made.pk, None, fallen_back)
    return made


def begin_as(conversation: Conversation, preset: Preset, actor: Actor) -> None:
    """Have a conversation in which nothing was said yet begin as the preset says. Raises: NotOffered, Conflict."""
    _require_own(conversation)
    columns, rows = presets.columns(preset), Conversation.objects.filter(pk=conversation.pk, tip=None, preset="")
    if rows.exists():
        # First: if this ends in between, it asks more.
        asks = oversight.strictest(oversight.strictness_of(conversation.pk), columns["least_asks"])
        ruling.change_strictness(conversation.pk, asks, actor)
    if rows.update(**columns) != 1:
        raise Conflict(gettext_noop("This conversation has already started. Presets apply only to new conversations."))
    conversation.refresh_from_db()


def change(conversation: Conversation, *, actor: Actor = SYSTEM, **wanted: Any) -> None:
    """Set any of `title`, `pinned`, `archived`, `endpoint`, `model`, `instructions`, `asks`, and the limits.

    `tools` are names, or None for all; `tool_set` is the name of one, and takes their place. What has not started and
    is not among them any more does not run. Without a `model` another endpoint is asked for its usual one.
    Raises: runs.AgentsOwn, BadConversation, BadTools, NotOffered, BadLimits, oversight.BadWord; ruling.OnlyPeople, of
    an `actor` who is none.
    """
    _require_own(conversation)
    columns = tool_sets.columns(wanted) | limits.checked(wanted) | _route(conversation, wanted)
    since = {name: getattr(conversation, f"{name}_at") for name in ("pinned", "archived") if name in wanted}
    columns |= {f"{name}_at": (at or timezone.now()) if wanted[name] else None for name, at in since.items()}
    # Which model answers is chosen where it begins, too.
    columns["draft"] = conversation.draft and not wanted.keys() - {"endpoint", "model"}
    if "title" in wanted:
        columns |= {"title": _title(wanted["title"]), "titling": Titling.OWN}
    if "instructions" in wanted:
        columns["instructions"] = _instructions(wanted["instructions"])
    if "asks" in wanted:
        if wanted["asks"] in Asks.values and wanted["asks"] not in asks_choices(conversation):
            least = presets.asks_word(conversation.least_asks)
            raise BadConversation({"asks": f"The preset of this conversation asks at least “{least}”."})
        ruling.change_strictness(conversation.pk, wanted["asks"], actor)
    with transaction.atomic():
        Conversation.objects.filter(pk=conversation.pk).update(**columns)
        if "title" in columns:
            search.note_title(conversation.pk, columns["title"])
    for name, value in columns.items():
        setattr(conversation, name, value)
    if "tools" in columns:
        withdraw_out_of_reach([conversation.pk], actor=actor)
    writing.tell_soon(conversation.pk, "run")


def asks_choices(conversation: Conversation) -> list[str]:
    """Return the words that the conversation may have, from the mildest: none below that of its preset."""
    if not conversation.least_asks:
        return list(Asks.values)
    least = presets.asks_word(conversation.least_asks)
    return [word for word in Asks.values if oversight.strictest(word, least) == word]


def begin_so(owner: User, *, actor: Actor = SYSTEM, **wanted: Any) -> OwnDefaults:
    """Have new conversations of this person begin with these instructions, limits, tools, model and strictness.

    `tools` are names, `tool_set` is the name of one, `all_tools` neither; without any, tools are the installation's.
    `endpoint` is a name, and None leaves it to the installation. What they ask is on record as done by `actor`.
    Raises: BadConversation, BadLimits, BadTools, NotOffered, oversight.BadWord; ruling.OnlyPeople, of an `actor` who
    is none.
    """
    columns: dict[str, Any] = limits.checked(wanted) | tool_sets.as_default(wanted)
    if "instructions" in wanted:
        columns["instructions"] = _instructions(wanted["instructions"])
    if "endpoint" in wanted or wanted.get("model"):
        columns |= presets.route({"endpoint": wanted.get("endpoint"), "model": wanted.get("model", "")})
    with transaction.atomic():
        # Of two changes at a time the second sees the first.
        row, _ = OwnDefaults.objects.select_for_update().get_or_create(person=owner)
        if "asks" in wanted:
            ruling.note_default_strictness(owner, row.asks, wanted["asks"], actor)
            columns["asks"] = wanted["asks"]
        for name, value in columns.items():
            setattr(row, name, value)
        row.save(update_fields=columns)
    return row


def share(conversation: Conversation, actor: Actor) -> None:
    """Let whoever is signed in and has the link read the conversation; on record. One that is shared stays as it is."""
    _link(conversation, uuid4(), SHARED, actor)
    conversation.refresh_from_db(fields=["share"])


def unshare(conversation: Conversation, actor: Actor) -> None:
    """End that; on record. Sharing it again makes another link."""
    _link(conversation, None, UNSHARED, actor)
    conversation.share = None


def unshare_all(owner: User, actor: Actor) -> None:
    """End every link to what this person has shared; each is on record."""
    for each in Conversation.objects.filter(owner=owner, share__isnull=False):
        unshare(each, actor)


def shared(link: UUID) -> Conversation | None:
    """Return the conversation behind a link; None once sharing has ended, or its owner may not sign in any more."""
    rows = Conversation.objects.filter(share=link, deleted_at=None, owner__is_active=True)
    return rows.select_related("owner").first()


def delete(conversation: Conversation, actor: Actor) -> None:
    """Take the conversation away: nothing begins in it any more, its run ends, and what has not started is withdrawn.

    So do those of the agents that work for it. Their calls stay in the history and on the record. `restore` brings the
    rest back for KEPT, but for its link, which has ended. Raises: runs.AgentsOwn, of one that an agent works in.
    """
    _require_own(conversation)
    # First: a run that begins after this is refused, and one that began before is found below.
    with transaction.atomic():
        Conversation.objects.filter(pk=conversation.pk, deleted_at=None).update(deleted_at=timezone.now())
        unshare(conversation, actor)
    _end(conversation.pk, actor)
    # Agents have ended with it, and no other can begin.
    below = Conversation.objects.filter(pk__in=delegation.family(conversation.pk), deleted_at=None)
    below.update(deleted_at=timezone.now())
    writing.tell_soon(conversation.pk, "gone")


def restore(user: User, conversation_id: UUID) -> Conversation:
    """Bring back a deleted conversation; what was withdrawn stays withdrawn. Raises: NotFound, once it is gone."""
    Conversation.objects.filter(pk__in=delegation.family(conversation_id), owner=user).update(deleted_at=None)
    found = of(user).filter(pk=conversation_id).first()
    return required(found, NotFound(gettext_noop("Too late: this conversation has been deleted.")))


def not_started(conversation: Conversation) -> int:
    """Return how many calls deleting it would withdraw."""
    family = delegation.family(conversation.pk)
    return ToolCall.objects.filter(conversation_id__in=family, status__in=stopping.NOT_STARTED).count()


def cleaner() -> Worker:
    """Remove for good what was deleted a while ago."""
    return Worker("deleted conversations", in_db(purge), CLEAN_SECONDS)


def purge() -> None:
    """Remove the messages and runs of deleted conversations; one with a call that still executes waits for its end.

    What a process that died while it deleted one had left of it is ended first.
    """
    late = Conversation.objects.filter(deleted_at__lt=Now() - KEPT)
    for pk in list(late.values_list("pk", flat=True)[:AT_ONCE]):
        _end(pk, SYSTEM)
    open_calls = ToolCall.objects.filter(conversation_id=OuterRef("pk")).exclude(status__in=SETTLED)
    gone = late.filter(~Exists(open_calls))
    for pk in list(gone.values_list("pk", flat=True)[:AT_ONCE]):
        with transaction.atomic():
            # Unless it was brought back just now, which locks the row too.
            if gone.select_for_update(of=("self",)).filter(pk=pk).first() is None:
                continue
            files = set(Attachment.objects.filter(conversation_id=pk).values_list("digest", flat=True))
            Message.objects.filter(conversation_id=pk).delete()
            Run.objects.filter(conversation_id=pk).delete()
            Conversation.objects.filter(pk=pk).delete()
            ruling.forget_strictness(pk)
        keeping.forget(files)


def _require_own(conversation: Conversation) -> None:
    """Let pass what a person began. What an agent works in is what its definition says. Raises: runs.AgentsOwn."""
    if conversation.call_id is not None:
        raise runs.AgentsOwn


def _link(conversation: Conversation, link: UUID | None, event: str, actor: Actor) -> None:
    with transaction.atomic():
        rows = Conversation.objects.filter(pk=conversation.pk, share__isnull=link is not None)
        if rows.update(share=link) == 1:
            note(None, event, actor=actor, data={"conversation": str(conversation.pk)})


def _route(conversation: Conversation, wanted: dict[str, Any]) -> dict[str, Any]:
    if "endpoint" in wanted:
        return routes.columns(wanted["endpoint"], wanted.get("model", ""))
    if "model" not in wanted:
        return {}
    routes.require_offered(conversation.endpoint, wanted["model"])
    return {"model": wanted["model"]}


def _title(wanted: str) -> str:
    title = " ".join(wanted.split())
    if not title or title != storable(title) or len(title) > LONGEST_TITLE:
        raise BadConversation({"title": f"Expected 1 to {LONGEST_TITLE} characters that can be stored."})
    return title


def _instructions(wanted: str) -> str:
    text = wanted.replace("\r\n", "\n").strip()
    if text != storable(text) or len(text) > LONGEST_INSTRUCTIONS:
        expected = translatable(f"Expected at most {LONGEST_INSTRUCTIONS:,} characters that can be stored.")
        raise BadConversation({"instructions": expected})
    return text


def _end(conversation_id: UUID, actor: Actor) -> None:
    for run in Run.objects.filter(conversation_id=conversation_id, status__in=ACTIVE):
        runner.stop(run.pk, conversation_id, actor, why=WHY)
    stopping.withdraw_conversation(conversation_id, actor=actor, why=WHY)
