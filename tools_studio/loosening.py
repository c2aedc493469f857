"""Loosening: who may make a tool ask less often, or do more without being asked."""

from django.contrib.auth.models import User

from hitlchat.accounts.roles import may_administer
from hitlchat.base.problems import Forbidden
from hitlchat.gate import loosening as gate
from hitlchat.gate import oversight
from hitlchat.gate.actor import Actor
from hitlchat.gate.loosening import Guard, guard_of
from hitlchat.gate.models import HitlMode, Tool
from tools_studio import risk
from tools_studio.drafts import AuthoringError, Checked, Draft
from tools_studio.language import checking

NEEDS_PERSON = (
    "Only a person may let a tool do more, ask less, or ask in other words: sign in, or use an approver token."
)

NEEDS_PUBLISHER = "Only a person publishes a tool: sign in, or use an approver token. It stays a draft until then."

HELD = (
    "Only a person may delete a tool about which others than the requester decide, or that only signed-in people "
    "approve: another tool could take its name without that. Sign in, or use an approver token."
)


class OnlyPeople(Forbidden):
    """A program's credential tried to make a tool ask less often; that is for people (SR-27)."""


def check_new(sound: Checked, actor: Actor) -> None:
    """OnlyPeople, or AuthoringError: `actor` may not make this tool."""
    if is_program(actor) and sound.risk_level > 0 and (sound.hitl_mode != HitlMode.REQUIRED or _looks_ahead(sound)):
        raise OnlyPeople(NEEDS_PERSON)
    check_critical(sound, actor)


def guard(draft: Draft, mode: str | None = None) -> Guard:
    """Return what has people asked by `draft`; `mode` where it leaves its own open."""
    return Guard(draft.hitl_mode or mode or HitlMode.REQUIRED.value, draft.condition, draft.signed_in_only)


def check_change(tool: Tool, sound: Checked, actor: Actor, *, confirmed: bool) -> None:
    """OnlyPeople, AuthoringError: `actor` may not make `tool` what `sound` is. NotConfirmed: it would ask less."""
    if is_program(actor) and _loosens(tool, sound):
        raise OnlyPeople(NEEDS_PERSON)
    gate.check(tool.name, guard_of(tool), guard(sound.draft, sound.hitl_mode.value), confirmed=confirmed)
    standing = (tool.definition_hash, tool.hitl_mode, tool.condition)
    if standing != (sound.definition_hash, sound.hitl_mode, sound.draft.condition):
        check_critical(sound, actor)


def check_deletion(tool: Tool, actor: Actor) -> None:
    """OnlyPeople: what people put over the tool would go with it."""
    if is_program(actor) and (tool.signed_in_only or oversight.of(tool) != oversight.Rules()):
        raise OnlyPeople(HELD)


def check_critical(sound: Checked, actor: Actor) -> None:
    """AuthoringError: a critical tool that may run unasked is for an administrator to set up, or the system itself."""
    if sound.risk_level < risk.CRITICAL or sound.hitl_mode == HitlMode.REQUIRED or actor.user_id is None:
        return
    if not may_administer(User.objects.get(pk=actor.user_id)):
        raise AuthoringError({"hitl_mode": "Only an administrator may let a tool of level L5 run without asking."})


def check_publishing(actor: Actor) -> None:
    """OnlyPeople: a person puts tools into the catalog."""
    if is_program(actor):
        raise OnlyPeople(NEEDS_PUBLISHER)


def is_program(actor: Actor) -> bool:
    """Known by a credential that a program holds; neither a person nor the system itself."""
    return not actor.is_person and actor.user_id is not None


def _loosens(tool: Tool, sound: Checked) -> bool:
    """Could the tool do, without anyone being asked, what it could not do before, or tell the approver otherwise?"""
    if gate.weaker(guard_of(tool), guard(sound.draft, sound.hitl_mode.value)):
        return True
    is_other = sound.definition_hash != tool.definition_hash
    words = (sound.draft.prompt_template, sound.draft.title) != (tool.prompt_template, tool.title)
    if sound.hitl_mode == HitlMode.REQUIRED:
        return words or (is_other and _looks_ahead(sound))
    return words or sound.draft.condition != tool.condition or (sound.risk_level > 0 and is_other)


def _looks_ahead(sound: Checked) -> bool:
    """Has it a preview with powers of its own? That runs before anyone is asked."""
    has_powers = sound.risk_level > 0 or any(kept.secret for kept in sound.variables)
    return has_powers and checking.find(sound.draft.code) is not None
