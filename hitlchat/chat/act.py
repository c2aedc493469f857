"""Carries out a page's command as the signed-in person, and answers with what only that page has to be told."""

from typing import Any
from uuid import UUID

from hitlchat.accounts import sessions
from hitlchat.accounts.sessions import signed_in_user
from hitlchat.agent import runner, unknown
from hitlchat.agent.models import ACTIVE, Conversation, Run
from hitlchat.agent.runs import RunActive
from hitlchat.chat import fragments
from hitlchat.chat.commands import Command, Decide, DecideAll, Resolve, RevokeGrant, Say, Stop, StopCall, TakeBack
from hitlchat.gate import batch, decide, editing, stopping, taking_back
from hitlchat.gate.actor import Actor
from hitlchat.gate.attention import Looked
from hitlchat.gate.decide import BadEdit
from hitlchat.gate.deciders import NotEntitled
from hitlchat.gate.grants import ending
from hitlchat.gate.grants.scope import BadGrant
from hitlchat.gate.models import ToolCall
from hitlchat.gate.quorum import AlreadyCounted


def owns(user_id: int, conversation_id: UUID) -> bool:
    return Conversation.objects.filter(pk=conversation_id, owner_id=user_id).exists()


def act(session: Any, conversation_id: UUID, command: Command) -> str:
    """Returns a fragment for the page that sent the command, or nothing: what changed is announced to all of them."""
    user = signed_in_user(session.session_key)
    conversation = Conversation.objects.filter(pk=conversation_id, owner=user).first() if user else None
    if user is None or conversation is None:
        return fragments.flash("You are signed out. Sign in again in another tab, then reload this page.")
    signed_in_at = sessions.signed_in_at(sessions.stored(session.session_key))
    actor = Actor(user.pk, "session", signed_in_at=signed_in_at, name=user.get_username())
    match command:
        case Say(content):
            return say(conversation, content)
        case Decide() | DecideAll() | TakeBack() | RevokeGrant():
            return _answer(conversation.pk, command, actor)
        case Stop():
            return stop(conversation, actor)
        case StopCall(call_id):
            return _stop_call(call_id, actor)
        case Resolve():
            return _resolve(conversation, command, actor, user.get_username())


def say(conversation: Conversation, content: str) -> str:
    try:
        runner.say(conversation, content)
    except RunActive as error:
        return fragments.flash(f"{error} Wait for it, or stop it first. Your text is kept.")
    return fragments.composed()


def stop(conversation: Conversation, actor: Actor) -> str:
    run = Run.objects.filter(conversation=conversation, status__in=ACTIVE).first()
    if run is not None:
        runner.stop(run.pk, conversation.pk, actor)
    return ""


def _stop_call(call_id: UUID, actor: Actor) -> str:
    try:
        told = stopping.request(call_id, actor)
    except stopping.NoSuchCall as error:
        return fragments.flash(str(error))
    return "" if told else fragments.flash("This call does not execute any more: there is nothing to stop.")


def _answer(conversation_id: UUID, command: Decide | DecideAll | TakeBack | RevokeGrant, actor: Actor) -> str:
    match command:
        case Decide():
            return _decide(conversation_id, command, actor)
        case DecideAll():
            return _decide_all(conversation_id, command, actor)
        case TakeBack(call_id):
            return _take_back(call_id, actor)
        case RevokeGrant(grant_id):
            return _revoke(conversation_id, grant_id, actor)


def _decide(conversation_id: UUID, command: Decide, actor: Actor) -> str:
    looked = Looked(command.opened)
    try:
        if command.verdict == "decline":
            decide.decline(command.approval, actor, reason=command.reason, looked=looked)
        elif command.edited is None:
            decide.approve(command.approval, actor, digest=command.digest, grant=command.grant, looked=looked)
        else:
            yes = {"digest": command.digest, "edited": command.edited, "shown": command.shown}
            editing.approve(command.approval, actor, **yes, looked=looked)
    except decide.AlreadySettled as late:
        return fragments.too_late(late.call)
    except decide.OtherDigest as error:
        return fragments.asks(conversation_id) + fragments.flash(str(error))
    except (decide.NoSuchApproval, BadEdit, BadGrant, NotEntitled, AlreadyCounted) as error:
        return fragments.flash(str(error))
    return ""


def _decide_all(conversation_id: UUID, command: DecideAll, actor: Actor) -> str:
    try:
        outcomes = batch.answer(command.items, command.verdict, actor, opened=command.opened)
    except (batch.NotTogether, decide.NoSuchApproval, NotEntitled) as error:
        return fragments.asks(conversation_id) + fragments.flash(str(error))
    return fragments.asks(conversation_id) + fragments.outcomes(outcomes)


def _take_back(call_id: UUID, actor: Actor) -> str:
    try:
        taking_back.take_back(call_id, actor)
    except (taking_back.TooLate, decide.NoSuchApproval) as error:
        return fragments.flash(str(error))
    return ""


def _revoke(conversation_id: UUID, grant_id: UUID, actor: Actor) -> str:
    try:
        ending.revoke(grant_id, actor)
    except ending.NoSuchGrant as error:
        return fragments.flash(str(error))
    return fragments.grants(conversation_id)


def _resolve(conversation: Conversation, command: Resolve, actor: Actor, name: str) -> str:
    if command.outcome == "again":
        return _again(conversation, command.call, actor, name)
    try:
        unknown.mark(command.call, command.outcome, actor)
    except (decide.NoSuchApproval, decide.AlreadySettled) as error:
        return fragments.flash(str(error))
    return ""


def _again(conversation: Conversation, call_id: UUID, actor: Actor, name: str) -> str:
    old = ToolCall.objects.filter(pk=call_id, caller_id=actor.user_id, conversation_id=conversation.pk).first()
    if old is None or old.turn_id is None:
        return fragments.flash("Only a call with unknown outcome can be run again.")
    try:
        unknown.again(old, actor, name)
    except unknown.NotAgain as error:
        return fragments.flash(str(error))
    return ""
