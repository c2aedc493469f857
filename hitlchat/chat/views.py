"""The conversation pages, and what a person does with a conversation as a whole."""

from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.contrib import messages as notes
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db.models import Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render, resolve_url
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from hitlchat.accounts.access import person
from hitlchat.agent import conversations, runner, search
from hitlchat.agent.models import LONGEST_MESSAGE, Conversation, Role
from hitlchat.base.problems import NotFound
from hitlchat.chat import transcript_view
from hitlchat.gate import deciders, prompt
from hitlchat.gate.actor import Caller, actor_of
from hitlchat.gate.models import HitlMode, Tool
from hitlchat.gate.tools import tools_for
from hitlchat.upstreams.elicitation import questions

MOST_THREADS = 100
MOST_EXAMPLES = 4
LONGEST_COUNT = 5
ASKS = HitlMode.REQUIRED


@login_required
@require_GET
def chat(request: HttpRequest) -> HttpResponse:
    """Return where to begin: an empty page with examples."""
    user = person(request)
    context = {"section": "chat", "examples": _examples(tools_for(_caller(user))), "deleted": _just_deleted(request)}
    context["told"] = [str(each) for each in notes.get_messages(request)]
    return render(request, "chat/empty.html", context | _threads_beside(user, None, Wanted.of(request)))


@login_required
@require_POST
def new_conversation(request: HttpRequest) -> HttpResponse:
    # A form sends line ends as the mail of old did.
    content = request.POST.get("content", "").replace("\r\n", "\n").replace("\x00", "").strip()[:LONGEST_MESSAGE]
    conversation = conversations.create(person(request))
    if content:
        runner.say(conversation, content)
    return redirect("conversation", conversation.pk)


@login_required
@require_GET
def conversation(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    user = person(request)
    shown = _own(request, conversation_id)
    messages, earlier = transcript_view.messages(shown.pk)
    context: dict[str, Any] = {
        "section": "chat",
        **_threads_beside(user, shown.pk, Wanted()),
        "messages": messages,
        "earlier": earlier,
        "asked": transcript_view.asked(shown.pk),
        "run": transcript_view.run(shown.pk),
        **transcript_view.grants(shown.pk),
        "queued": transcript_view.queued(shown.pk),
        "conversation": shown,
        "tool_count": tools_for(_caller(user), shown.tools).count(),
        "most_tools": settings.MODEL_TOOLS,
        "told": [str(each) for each in notes.get_messages(request)],
    }
    return render(request, "chat/page.html", context)


@login_required
@require_GET
def earlier(request: HttpRequest, conversation_id: UUID, before: int) -> HttpResponse:
    """The messages before place `before`, for the top of the transcript."""
    shown = _own(request, conversation_id)
    messages, more = transcript_view.messages(shown.pk, before)
    return render(request, "chat/_turns.html", {"messages": messages, "earlier": more})


@login_required
@require_GET
def message_text(request: HttpRequest, conversation_id: UUID, message_id: UUID) -> HttpResponse:
    """The message as it was written, to be copied."""
    message = get_object_or_404(_own(request, conversation_id).messages.exclude(role=Role.TOOL), pk=message_id)
    return HttpResponse(message.content, content_type="text/plain; charset=utf-8")


@login_required
@require_GET
def grants(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """The meter, or nothing (204) if the page shows it as it is: time passes without telling anyone."""
    shown = _own(request, conversation_id)
    found = transcript_view.grants(shown.pk)
    if request.GET.get("seen") == found["meter_seen"]:
        return HttpResponse(status=204)
    return render(request, "grants/_meter.html", found)


@login_required
@require_GET
def threads(request: HttpRequest) -> HttpResponse:
    """The list beside the page, or nothing (204) if the page shows it as it is, so that no focus is lost."""
    current = UUID(text) if _is_uuid(text := request.GET.get("current", "")) else None
    beside = _threads_beside(person(request), current, Wanted.of(request))
    if request.GET.get("seen") == beside["threads_seen"]:
        return HttpResponse(status=204)
    return render(request, "chat/_threads_nav.html", beside | {"conversation": {"pk": current or ""}})


@login_required
@require_POST
def change(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Rename, pin or archive a conversation, by the one field that is sent."""
    shown = _own(request, conversation_id)
    sent = request.POST
    wanted: dict[str, Any] = {name: sent[name] == "1" for name in ("pinned", "archived") if name in sent}
    if "title" in sent:
        wanted["title"] = sent["title"]
    try:
        conversations.change(shown, **wanted)
    except conversations.BadConversation as error:
        notes.error(request, f"Not renamed. {error}")
    return redirect("conversation", shown.pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Say what deleting the conversation means; then do it."""
    shown = _own(request, conversation_id)
    if request.method == "POST":
        conversations.delete(shown, actor_of(request))
        return redirect(f"{resolve_url('chat')}?{urlencode({'deleted': shown.pk})}")
    context = {"section": "chat", "conversation": shown, "not_started": conversations.not_started(shown)}
    return render(request, "chat/delete.html", context)


@login_required
@require_POST
def restore(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Bring back a conversation that was just deleted."""
    try:
        found = conversations.restore(person(request), conversation_id)
    except NotFound as error:
        notes.error(request, str(error))
        return redirect("chat")
    return redirect("conversation", found.pk)


def _own(request: HttpRequest, conversation_id: UUID) -> Conversation:
    return get_object_or_404(conversations.of(person(request)), pk=conversation_id)


def _just_deleted(request: HttpRequest) -> Conversation | None:
    """Return the conversation that the page offers to bring back."""
    if not _is_uuid(text := request.GET.get("deleted", "")):
        return None
    return Conversation.objects.filter(owner=person(request), pk=text, deleted_at__isnull=False).first()


@dataclass(frozen=True)
class Wanted:
    """Filters of the list: conversations that match `search`, or archived ones; at most so many."""

    search: str = ""
    archived: bool = False
    most: int = MOST_THREADS

    @classmethod
    def of(cls, request: HttpRequest) -> "Wanted":
        most = request.GET.get("most", "")
        count = int(most) if most.isdecimal() and len(most) <= LONGEST_COUNT else MOST_THREADS
        return cls(request.GET.get("search", "").strip()[:200], "archived" in request.GET, max(count, MOST_THREADS))


def _threads_beside(user: User, current: UUID | None, wanted: Wanted) -> dict[str, Any]:
    elsewhere = questions.open_for(user.pk).filter(~Q(call__conversation_id=current) | Q(call__conversation_id=None))
    threads = list(_threads(user, wanted)[: wanted.most + 1])
    shown = {
        "groups": _groups(threads[: wanted.most], wanted),
        "wanted": wanted,
        "next": wanted.most + MOST_THREADS if len(threads) > wanted.most else 0,
        "current": current,
        "asked_elsewhere": elsewhere.count(),
    }
    html = render_to_string("chat/_thread_list.html", shown)
    return {"threads": html, "threads_seen": sha256(html.encode()).hexdigest()[:16], "wanted": wanted}


def _is_uuid(text: str) -> bool:
    try:
        return bool(UUID(text))
    except ValueError:
        return False


def _caller(user: User) -> Caller:
    return Caller("chat", user.pk, user.get_username())


def _groups(threads: list[Any], wanted: Wanted) -> list[tuple[str, list[Any]]]:
    if wanted.search or wanted.archived:
        return [("Found" if wanted.search else "Archived", threads)] if threads else []
    recent = timezone.now() - timedelta(hours=24)
    waiting = [thread for thread in threads if thread.waiting or thread.asked]
    rest = [thread for thread in threads if thread not in waiting]
    others = [thread for thread in rest if not thread.pinned_at]
    groups = [
        ("Waiting for you", waiting),
        ("Pinned", [thread for thread in rest if thread.pinned_at]),
        ("Last 24 hours", [thread for thread in others if thread.updated_at >= recent]),
        ("Earlier", [thread for thread in others if thread.updated_at < recent]),
    ]
    return [(heading, listed) for heading, listed in groups if listed]


def _threads(user: User, wanted: Wanted) -> QuerySet[Conversation]:
    """Return each with how many calls wait in it (`waiting`), and how many questions of servers (`asked`)."""
    waiting = deciders.waiting_for(user.pk).filter(call__caller=user)
    found = conversations.of(user).annotate(
        waiting=_count_of(waiting, "call__conversation_id"),
        asked=_count_of(questions.open_for(user.pk), "call__conversation_id"),
    )
    if wanted.archived:
        found = found.filter(archived_at__isnull=False)
    if wanted.search or wanted.archived:
        return search.matching(found, wanted.search) if wanted.search else found
    return found.filter(archived_at=None).order_by(F("pinned_at").desc(nulls_last=True), "-updated_at")


def _count_of(rows: QuerySet[Any], conversation: str) -> Coalesce:
    """Return how many of `rows` each conversation has, which their column `conversation` names."""
    own = rows.filter(**{conversation: OuterRef("pk")}).order_by().values(conversation)
    return Coalesce(Subquery(own.annotate(n=Count("pk")).values("n"), output_field=IntegerField()), 0)


def _examples(tools: QuerySet[Tool]) -> list[str]:
    """Sentences to begin with, from the tools' own examples: first those that ask and do no lasting harm."""
    found = []
    for tool in sorted(tools.order_by("-name"), key=lambda tool: (abs(tool.risk_level - 2), tool.hitl_mode != ASKS)):
        if tool.example is not None and tool.prompt_template:
            found.append(prompt.render(tool.prompt_template, tool.name, tool.example))
    return found[:MOST_EXAMPLES]
