"""The conversation pages, those of shared conversations and of agents, and what a person does with a conversation."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages as notes
from django.contrib.auth.models import User
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render, resolve_url
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from hitlchat.accounts.access import person, signed_in
from hitlchat.accounts.models import Token, TokenKind
from hitlchat.accounts.preferences import A_YEAR
from hitlchat.accounts.roles import may_administer
from hitlchat.agent import branches, conversations, offering, presets, routes, runner, runs, search, tool_sets
from hitlchat.agent.attachments import keeping
from hitlchat.agent.attachments.keeping import BadAttachments
from hitlchat.agent.model_client import uses_demo
from hitlchat.agent.models import LONGEST_MESSAGE, Conversation, ModelEndpoint, Role
from hitlchat.agent.presets import NoSuchPreset
from hitlchat.agent.runs import RunActive
from hitlchat.base.ids import uuid_of
from hitlchat.base.problems import Conflict, NotFound, required
from hitlchat.base.visible import see
from hitlchat.chat import layout, transcript_view
from hitlchat.gate import deciders, prompt
from hitlchat.gate.actor import Caller, actor_of
from hitlchat.gate.models import Decision, HitlMode, Tool, ToolCall, Verdict, delegation
from hitlchat.gate.oversight import BadWord
from hitlchat.gate.tools import tools_for
from hitlchat.upstreams.elicitation import questions
from hitlchat.upstreams.models import UpstreamServer

MOST_THREADS = 100
MOST_EXAMPLES = 4
LONGEST_COUNT = 5
# The cookie of a browser in which the list of next steps is hidden.
DISMISSED = "hitlchat_next_steps"


@signed_in.reads
def chat(request: HttpRequest) -> HttpResponse:
    """Return where to begin: an empty page with examples."""
    user = person(request)
    beginnings = [(row, presets.starters(row)) for row in presets.published()]
    # The conversation that the page offers to bring back.
    just_deleted = uuid_of(request.GET.get("deleted", ""))
    deleted = Conversation.objects.filter(owner=user, deleted_at__isnull=False)
    found = deleted.filter(pk=just_deleted).first() if just_deleted else None
    context: dict[str, Any] = {"section": "chat", "presets": beginnings, "deleted": found}
    context |= {"examples": _examples(tools_for(Caller("chat", user.pk, user.get_username())))}
    context |= transcript_view.attach(None) | {"next_steps": _steps_left(request)}
    beginning, fallen_back = routes.usual(user)
    context |= transcript_view.model(beginning) | {"fallen_back": fallen_back}
    return render(request, "chat/empty.html", context | _threads_beside(user, None, Wanted.of(request)))


@signed_in.posts
def dismiss_next_steps(request: HttpRequest) -> HttpResponse:
    response = redirect("chat")
    response.set_cookie(
        DISMISSED, "dismissed", max_age=A_YEAR, secure=request.is_secure(), httponly=True, samesite="Lax"
    )
    return response


@signed_in.posts
def new_conversation(request: HttpRequest) -> HttpResponse:
    # A form sends line ends as the mail of old did.
    content = request.POST.get("content", "").replace("\r\n", "\n").replace("\x00", "").strip()
    if len(content) > LONGEST_MESSAGE:
        # With the text, of which nothing may be lost.
        problem = _(
            "A message has at most %(most)s characters; this one has %(count)s. Nothing was sent. Your text was: "
            "%(text)s"
        )
        numbers = {"most": f"{LONGEST_MESSAGE:,}", "count": f"{len(content):,}"}
        notes.error(request, problem % {**numbers, "text": content})
        return redirect("chat")
    attached, problem = request.POST.getlist("attachments"), _("%(problem)s Your text was: %(text)s")
    try:
        conversation = _begun(request)
    except (routes.NotOffered, NoSuchPreset, Conflict) as error:
        notes.error(request, problem % {"problem": _(str(error)), "text": content})
        return redirect("chat")
    if content or attached:
        try:
            runner.say(conversation, content, attached=[*filter(None, map(uuid_of, attached))])
        except (BadAttachments, RunActive) as error:
            notes.error(request, problem % {"problem": error, "text": content})
    return redirect("conversation", conversation.pk)


def _begun(request: HttpRequest) -> Conversation:
    """Return the conversation that begins: a new one, or that to which files were sent ahead.

    Raises: NotOffered, NoSuchPreset, Conflict.
    """
    begun, route, actor = request.POST.get("conversation", ""), request.POST.get("route", ""), actor_of(request)
    preset = presets.named(name) if (name := request.POST.get("preset", "")) else None
    if preset is not None and preset.chooses_model:
        route = ""
    if (begun_id := uuid_of(begun)) is None:
        chosen = routes.chosen(route) if route else {}
        # If what is said first is refused, nothing of it is listed.
        return conversations.create(person(request), draft=True, actor=actor, preset=preset, **chosen)
    found = _own(request, begun_id)
    if preset is not None:
        conversations.begin_as(found, preset, actor)
    if route and found.tip_id is None:
        endpoint, _slash, model = route.partition("/")
        conversations.change(found, actor=actor, endpoint=endpoint, model=model)
    return found


@signed_in.reads
def conversation(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    user = person(request)
    # One of theirs, or one that an agent works in for them.
    shown = get_object_or_404(conversations.of(user).select_related("endpoint", "tool_set"), pk=conversation_id)
    if shown.call_id is not None:
        return _of_agent(request, shown)
    messages, earlier = transcript_view.messages(shown.pk)
    context: dict[str, Any] = {
        "section": "chat",
        **_threads_beside(user, shown.pk, Wanted()),
        "messages": layout.lay_out(messages),
        "earlier": earlier,
        "waiting": transcript_view.waiting(shown.pk, actor_of(request)),
        "run": transcript_view.run(shown.pk),
        **transcript_view.grants(shown.pk),
        "queued": transcript_view.queued(shown.pk),
        **transcript_view.attach(shown),
        **transcript_view.model(shown),
        "asks": transcript_view.asks_by_itself(shown),
        **transcript_view.total(shown.pk),
        "conversation": shown,
        "tool_trouble": tool_sets.of(shown).why,
        "tool_count": tool_sets.usable(shown).count(),
        "tells_all": offering.fit(tool_sets.usable(shown), shown.endpoint),
        # Those of the conversation are `messages` here.
        "notes": notes.get_messages(request),
    }
    # The call that a link leads to, and where it is if its branch is not shown.
    wanted = _call_of(shown, uuid_of(request.GET.get("call", "")))
    if wanted is not None and wanted.turn_id is not None:
        context |= {"wanted_call": wanted, "hidden": branches.hidden(shown.pk, wanted.turn_id)}
    return render(request, "chat/page.html", context)


def _call_of(conversation: Conversation, call_id: UUID | None) -> ToolCall | None:
    return ToolCall.objects.filter(pk=call_id, conversation_id=conversation.pk).first() if call_id else None


@signed_in.posts
def show_call(request: HttpRequest, conversation_id: UUID, call_id: UUID) -> HttpResponse:
    """Show the branch that has the call, and go there."""
    shown = _own(request, conversation_id)
    found = _call_of(shown, call_id)
    where = branches.hidden(shown.pk, found.turn_id) if found and found.turn_id else None
    try:
        if where is not None:
            branches.switch(shown.pk, where.run_id)
    except (runs.RunActive, branches.NoSuchVersion, runs.Gone) as error:
        notes.error(request, _("Not shown. {why}").format(why=error))
    return redirect(f"{resolve_url('conversation', shown.pk)}?{urlencode({'call': call_id})}#call-{call_id}")


@signed_in.reads
def earlier(request: HttpRequest, conversation_id: UUID, before: int) -> HttpResponse:
    shown = _own(request, conversation_id)
    messages, more = transcript_view.messages(shown.pk, before)
    return render(request, "chat/_turns.html", {"messages": layout.lay_out(messages), "earlier": more})


@signed_in.reads
def message_text(request: HttpRequest, conversation_id: UUID, message_id: UUID) -> HttpResponse:
    """The message as it was written, to be copied."""
    message = get_object_or_404(_own(request, conversation_id).messages.exclude(role=Role.TOOL), pk=message_id)
    return HttpResponse(message.content, content_type="text/plain; charset=utf-8")


@signed_in.reads
def grants(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """The meter, or nothing (204) if the page shows it as it is: time passes without telling anyone."""
    shown = _own(request, conversation_id)
    found = transcript_view.grants(shown.pk)
    if request.GET.get("seen") == found["meter_seen"]:
        return HttpResponse(status=204)
    return render(request, "grants/_meter.html", found)


@signed_in.reads
def threads(request: HttpRequest) -> HttpResponse:
    """The list beside the page, or nothing (204) if the page shows it as it is, so that no focus is lost."""
    current = uuid_of(request.GET.get("current", ""))
    beside = _threads_beside(person(request), current, Wanted.of(request))
    if request.GET.get("seen") == beside["threads_seen"]:
        return HttpResponse(status=204)
    return render(request, "chat/_threads_nav.html", beside | {"conversation": {"pk": current or ""}})


@signed_in.posts
def change(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Rename, pin or archive a conversation, have it ask another model, or ask more, by the one field that is sent."""
    shown = _own(request, conversation_id)
    sent = request.POST
    wanted: dict[str, Any] = {name: sent[name] == "1" for name in ("pinned", "archived") if name in sent}
    if "title" in sent:
        wanted["title"] = sent["title"]
    if "route" in sent:
        wanted["endpoint"], _slash, wanted["model"] = sent["route"].partition("/")
    if "asks" in sent:
        wanted["asks"] = sent["asks"]
    try:
        conversations.change(shown, actor=actor_of(request), **wanted)
    except conversations.BadConversation as error:
        notes.error(request, (_("Not renamed.") + " " if "title" in error.errors else "") + str(error))
    except (routes.NotOffered, BadWord) as error:
        notes.error(request, str(error))
    return redirect("conversation", shown.pk)


@signed_in.form
def delete(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Say what deleting the conversation means; then do it."""
    shown = _own(request, conversation_id)
    if request.method == "POST":
        conversations.delete(shown, actor_of(request))
        return redirect(f"{resolve_url('chat')}?{urlencode({'deleted': shown.pk})}")
    context = {"section": "chat", "conversation": shown, "not_started": conversations.not_started(shown)}
    return render(request, "chat/delete.html", context)


@signed_in.posts
def restore(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    try:
        found = conversations.restore(person(request), conversation_id)
    except NotFound as error:
        notes.error(request, str(error))
        return redirect("chat")
    return redirect("conversation", found.pk)


@signed_in.form
def share(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Show its owner what colleagues would see; then begin to share it, or end that."""
    own = _own(request, conversation_id)
    if request.method == "POST":
        wanted = conversations.share if request.POST.get("shared") == "1" else conversations.unshare
        wanted(own, actor_of(request))
        return redirect("share-conversation", own.pk)
    link = request.build_absolute_uri(reverse("shared", args=[own.share])) if own.share else ""
    return render(request, "chat/share.html", {"link": link, **_to_read(own)})


@signed_in.reads
def shared(request: HttpRequest, link: UUID) -> HttpResponse:
    return render(request, "chat/shared.html", _to_read(_behind(link)))


@signed_in.reads
def shared_earlier(request: HttpRequest, link: UUID, before: int) -> HttpResponse:
    return render(request, "chat/_shared_turns.html", _to_read(_behind(link), before))


@signed_in.reads
def shared_attachment(_request: HttpRequest, link: UUID, attachment_id: UUID) -> HttpResponse:
    return keeping.fetched(get_object_or_404(keeping.shared(_behind(link)), pk=attachment_id))


def _steps_left(request: HttpRequest) -> tuple[str, ...]:
    """Return which of model, server and client are still to be connected; none where the list is not shown."""
    if DISMISSED in request.COOKIES or not may_administer(person(request)):
        return ()
    if not Decision.objects.filter(verdict=Verdict.APPROVE).exists():
        return ()
    done = {
        "model": not uses_demo() or ModelEndpoint.objects.filter(removed_at=None).exists(),
        "server": UpstreamServer.objects.exists(),
        "client": Token.objects.filter(kind=TokenKind.MCP).exists(),
    }
    return tuple(step for step, is_done in done.items() if not is_done)


def _own(request: HttpRequest, conversation_id: UUID) -> Conversation:
    return get_object_or_404(
        conversations.own(person(request)).select_related("endpoint", "tool_set"), pk=conversation_id
    )


def _of_agent(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Show what an agent did to the person for whom it works; it is stopped and answered where it was called."""
    top = delegation.root(conversation.pk)
    shown = {"top": conversations.of(person(request)).filter(pk=top, call=None).first()}
    through = [see(each["tool"]) for each in delegation.agents(conversation.pk)]
    return render(request, "chat/agent.html", shown | {"agents": through, **_to_read(conversation)})


def _behind(link: UUID) -> Conversation:
    return required(conversations.shared(link), Http404)


def _to_read(conversation: Conversation, before: int | None = None) -> dict[str, Any]:
    messages, more = transcript_view.messages(conversation.pk, before)
    return {"section": "chat", "conversation": conversation, "messages": layout.lay_out(messages), "earlier": more}


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
    open_questions = questions.open_by_conversation(user.pk)
    found = deciders.waiting_by_conversation(user.pk)
    tops = delegation.roots(found) if found else {}
    # What waits in its agents, waits in a conversation too.
    waiting: Counter[UUID] = Counter()
    for conversation_id, times in found.items():
        waiting[tops[conversation_id]] += times
    threads: list[Any] = list(_threads(user, wanted)[: wanted.most + 1])
    for each in threads:
        each.waiting, each.questions = waiting[each.pk], open_questions.get(each.pk, 0)
    shown = {
        "groups": _groups(threads[: wanted.most], wanted),
        "wanted": wanted,
        "next": wanted.most + MOST_THREADS if len(threads) > wanted.most else 0,
        "current": current,
        "asked_elsewhere": sum(times for where, times in open_questions.items() if where is None or where != current),
    }
    html = render_to_string("chat/_thread_list.html", shown)
    return {"threads": html, "threads_seen": sha256(html.encode()).hexdigest()[:16], "wanted": wanted}


def _groups(threads: list[Any], wanted: Wanted) -> list[tuple[str, list[Any]]]:
    if wanted.search or wanted.archived:
        return [(_("Found") if wanted.search else _("Archived"), threads)] if threads else []
    recent = timezone.now() - timedelta(hours=24)
    waiting = [thread for thread in threads if thread.waiting or thread.questions]
    rest = [thread for thread in threads if thread not in waiting]
    others = [thread for thread in rest if not thread.pinned_at]
    groups = [
        (_("Waiting for you"), waiting),
        (_("Pinned"), [thread for thread in rest if thread.pinned_at]),
        (_("Last 24 hours"), [thread for thread in others if thread.updated_at >= recent]),
        (_("Earlier"), [thread for thread in others if thread.updated_at < recent]),
    ]
    return [(heading, listed) for heading, listed in groups if listed]


def _threads(user: User, wanted: Wanted) -> QuerySet[Conversation]:
    found = conversations.listed(user)
    if wanted.archived:
        found = found.filter(archived_at__isnull=False)
    if wanted.search or wanted.archived:
        return search.matching(found, wanted.search) if wanted.search else found
    return found.filter(archived_at=None).order_by(F("pinned_at").desc(nulls_last=True), "-updated_at")


def _examples(tools: QuerySet[Tool]) -> list[str]:
    """Sentences to begin with, from the tools' own examples: first those that ask and do no lasting harm."""
    found = [tool for tool in tools.order_by("-name") if tool.example is not None and tool.prompt_template]
    # An example with nothing in a field makes a sentence with a hole.
    found = [tool for tool in found if "" not in tool.example.values()]
    found.sort(key=lambda tool: (abs(tool.risk_level - 2), tool.hitl_mode != HitlMode.REQUIRED))
    return [prompt.render(tool.prompt_template, tool.name, tool.example) for tool in found[:MOST_EXAMPLES]]
