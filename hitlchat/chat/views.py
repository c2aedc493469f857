"""The conversation pages."""

from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from hitlchat.accounts.access import person
from hitlchat.agent import runner
from hitlchat.agent.models import LONGEST_MESSAGE, Conversation
from hitlchat.chat import transcript_view
from hitlchat.gate import deciders, prompt
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import HitlMode, Tool
from hitlchat.gate.tools import tools_for
from hitlchat.upstreams.elicitation import questions

MOST_THREADS = 100
MOST_EXAMPLES = 4
ASKS = HitlMode.REQUIRED


@login_required
@require_GET
def chat(request: HttpRequest) -> HttpResponse:
    """Return where to begin: an empty page with examples."""
    user = person(request)
    examples = _examples(tools_for(_caller(user)))
    return render(request, "chat/empty.html", {"section": "chat", "examples": examples, **_threads_beside(user, None)})


@login_required
@require_POST
def new_conversation(request: HttpRequest) -> HttpResponse:
    # A form sends line ends as the mail of old did.
    content = request.POST.get("content", "").replace("\r\n", "\n").replace("\x00", "").strip()[:LONGEST_MESSAGE]
    conversation = Conversation.objects.create(owner=person(request))
    if content:
        runner.say(conversation, content)
    return redirect("conversation", conversation.pk)


@login_required
@require_GET
def conversation(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    user = person(request)
    shown = get_object_or_404(Conversation, pk=conversation_id, owner=user)
    messages, earlier = transcript_view.messages(shown.pk)
    context: dict[str, Any] = {
        "section": "chat",
        **_threads_beside(user, shown.pk),
        "messages": messages,
        "earlier": earlier,
        "asked": transcript_view.asked(shown.pk),
        "run": transcript_view.run(shown.pk),
        **transcript_view.grants(shown.pk),
        "conversation": shown,
        "tool_count": tools_for(_caller(user), shown.tools).count(),
        "most_tools": settings.MODEL_TOOLS,
    }
    return render(request, "chat/page.html", context)


@login_required
@require_GET
def earlier(request: HttpRequest, conversation_id: UUID, before: int) -> HttpResponse:
    """The messages before place `before`, for the top of the transcript."""
    shown = get_object_or_404(Conversation, pk=conversation_id, owner=person(request))
    messages, more = transcript_view.messages(shown.pk, before)
    return render(request, "chat/_turns.html", {"messages": messages, "earlier": more})


@login_required
@require_GET
def grants(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """The meter, or nothing (204) if the page shows it as it is: time passes without telling anyone."""
    shown = get_object_or_404(Conversation, pk=conversation_id, owner=person(request))
    found = transcript_view.grants(shown.pk)
    if request.GET.get("seen") == found["meter_seen"]:
        return HttpResponse(status=204)
    return render(request, "grants/_meter.html", found)


@login_required
@require_GET
def threads(request: HttpRequest) -> HttpResponse:
    """The list beside the page, or nothing (204) if the page shows it as it is, so that no focus is lost."""
    current = UUID(text) if _is_uuid(text := request.GET.get("current", "")) else None
    beside = _threads_beside(person(request), current)
    if request.GET.get("seen") == beside["threads_seen"]:
        return HttpResponse(status=204)
    return render(request, "chat/_threads.html", beside | {"conversation": {"pk": current or ""}})


def _threads_beside(user: User, current: UUID | None) -> dict[str, str]:
    elsewhere = questions.open_for(user.pk).filter(~Q(call__conversation_id=current) | Q(call__conversation_id=None))
    shown = {"groups": _groups(user), "current": current, "asked_elsewhere": elsewhere.count()}
    html = render_to_string("chat/_thread_list.html", shown)
    return {"threads": html, "threads_seen": sha256(html.encode()).hexdigest()[:16]}


def _is_uuid(text: str) -> bool:
    try:
        return bool(UUID(text))
    except ValueError:
        return False


def _caller(user: User) -> Caller:
    return Caller("chat", user.pk, user.get_username())


def _groups(user: User) -> list[tuple[str, list[Conversation]]]:
    threads = list(_threads(user)[:MOST_THREADS])
    recent = timezone.now() - timedelta(hours=24)
    waiting = [thread for thread in threads if thread.waiting or thread.asked]  # type: ignore[attr-defined]
    rest = [thread for thread in threads if thread not in waiting]
    groups = [
        ("Waiting for you", waiting),
        ("Last 24 hours", [thread for thread in rest if thread.updated_at >= recent]),
        ("Earlier", [thread for thread in rest if thread.updated_at < recent]),
    ]
    return [(heading, listed) for heading, listed in groups if listed]


def _threads(user: User) -> QuerySet[Conversation]:
    """Return each with how many calls wait in it (`waiting`), and how many questions of servers (`asked`)."""
    waiting = deciders.waiting_for(user.pk).filter(call__caller=user)
    return Conversation.objects.filter(owner=user).annotate(
        waiting=_count_of(waiting, "call__conversation_id"),
        asked=_count_of(questions.open_for(user.pk), "call__conversation_id"),
    )


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
