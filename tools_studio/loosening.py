"""Who may make a tool ask less often, or do more without being asked."""

from django.contrib.auth.models import User

from hitlchat.accounts.roles import may_administer
from hitlchat.gate import oversight
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import HitlMode, Tool
from tools_studio import previews, risk
from tools_studio.drafts import AuthoringError, Checked

NEEDS_PERSON = (
    "Only a person may let a tool do more, ask less, or ask in other words: sign in, or use an approver token."
)

HELD = (
    "Only a person may delete a tool about which others than the requester decide, or that only signed-in people "
    "approve: another tool could take its name without that. Sign in, or use an approver token."
)


class OnlyPeople(Exception):
    """A program's credential tried to make a tool ask less often; that is for people (SR-27)."""


def lowers(tool: Tool, mode: str | None) -> bool:
    """Would `mode` ask less often than the tool does now?"""
    return mode is not None and strictness(mode) < strictness(tool.hitl_mode)


def trusts_clients(tool: Tool, *, signed_in_only: bool) -> bool:
    """Would the word of an MCP client be enough, where a signed-in person must decide now?"""
    return tool.signed_in_only and not signed_in_only


def strictness(mode: str) -> int:
    """How often `mode` asks: 0 never, 1 when policies say so, 2 every time."""
    return [HitlMode.DISABLED, HitlMode.CONDITIONAL, HitlMode.REQUIRED].index(HitlMode(mode))


def check_new(sound: Checked, actor: Actor) -> None:
    """OnlyPeople, or AuthoringError: `actor` may not make this tool."""
    if _is_program(actor) and sound.risk_level > 0 and (sound.hitl_mode != HitlMode.REQUIRED or _looks_ahead(sound)):
        raise OnlyPeople(NEEDS_PERSON)
    check_critical(sound, actor)


def check_change(tool: Tool, sound: Checked, actor: Actor) -> None:
    """OnlyPeople, or AuthoringError: `actor` may not make `tool` what `sound` is."""
    if _is_program(actor) and _loosens(tool, sound):
        raise OnlyPeople(NEEDS_PERSON)
    standing = (tool.definition_hash, tool.hitl_mode, tool.condition)
    if standing != (sound.definition_hash, sound.hitl_mode, sound.draft.condition):
        check_critical(sound, actor)


def check_deletion(tool: Tool, actor: Actor) -> None:
    """OnlyPeople: what people put over the tool would go with it."""
    if _is_program(actor) and (tool.signed_in_only or oversight.of(tool) != oversight.Rules()):
        raise OnlyPeople(HELD)


def check_critical(sound: Checked, actor: Actor) -> None:
    """AuthoringError: a critical tool that may run unasked is for an administrator to set up, or the system itself."""
    if sound.risk_level < risk.CRITICAL or sound.hitl_mode == HitlMode.REQUIRED or actor.user_id is None:
        return
    if not may_administer(User.objects.get(pk=actor.user_id)):
        raise AuthoringError({"hitl_mode": "Only an administrator may let a tool of level L5 run without asking."})


def _is_program(actor: Actor) -> bool:
    """Known by a credential that a program holds; neither a person nor the system itself."""
    return not actor.is_person and actor.user_id is not None


def _loosens(tool: Tool, sound: Checked) -> bool:
    """Could the tool do, without anyone being asked, what it could not do before, or tell the approver otherwise?"""
    if lowers(tool, sound.hitl_mode) or trusts_clients(tool, signed_in_only=sound.draft.signed_in_only):
        return True
    is_other = sound.definition_hash != tool.definition_hash
    words = (sound.draft.prompt_template, sound.draft.title) != (tool.prompt_template, tool.title)
    if sound.hitl_mode == HitlMode.REQUIRED:
        return words or (is_other and _looks_ahead(sound))
    return words or sound.draft.condition != tool.condition or (sound.risk_level > 0 and is_other)


def _looks_ahead(sound: Checked) -> bool:
    """Has it a preview with powers of its own? That runs before anyone is asked."""
    has_powers = sound.risk_level > 0 or any(kept.secret for kept in sound.variables)
    return has_powers and previews.find(sound.draft.code) is not None
