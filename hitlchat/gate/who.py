"""Deciders in words: who decides a call and how they were known, for the card, and for whoever asks and may not."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.sentences import translatable
from hitlchat.base.visible import Seen, see
from hitlchat.gate import deciders, oversight
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval, DecidedBy, Decision, Handling, Verdict

LONGEST_CLAIM = 100

# For whom a call is, where rules are spoken of and no call.
REQUESTER = gettext_noop("the person it is called for")
NEVER = gettext_noop("Never the person it is called for.")
NOBODY: Final = gettext_noop("Nobody can decide now, so this call will not run.")
# What a person did, and what their words with it are.
DONE: Final[dict[str, str]] = {
    Verdict.APPROVE: "Approved",
    Verdict.DECLINE: "Declined",
    Verdict.SUGGEST: "Declined",
    Verdict.ANSWER: "Answered in the tool's place",
}
REASONS: Final[dict[str, str]] = {
    Verdict.APPROVE: "Note",
    Verdict.DECLINE: "Reason",
    Verdict.SUGGEST: "To do instead",
    Verdict.ANSWER: "Reason",
}

Stance = Literal["may", "said", "others"]


@dataclass(frozen=True)
class Standing:
    """The standing of one person on one question.

    `said`: who decides, where there is something to say of it. `stance`: they may decide, have said yes, or others
    decide. `yes`: who said yes so far. `stuck`: why it cannot be approved as people and rules are. `sign_in`: why
    not before they sign in again. `moves`: others can change it. `ages`: time can, and signing in. `absent`: in
    whose place they decide. `by`: who else gave the yes that counts for them. `on_it`: who says that they look at
    it, until `until`; `own`: the person themselves. `turn`: in a chain, who is asked now; `has_passed`: after the
    person's own yes, others.
    """

    said: Seen | None
    stance: Stance
    quorum: int = 1
    yes: tuple[Seen, ...] = ()
    stuck: str = ""
    sign_in: str = ""
    moves: bool = False
    ages: bool = False
    on_it: Seen | None = None
    absent: Seen | None = None
    by: Seen | None = None
    until: datetime | None = None
    own: bool = False
    turn: str = ""
    has_passed: bool = False

    @property
    def several(self) -> bool:
        return self.quorum > 1

    @property
    def mark(self) -> str:
        """Return a text that changes whenever what is shown changes."""
        on_it = f".{self.until.timestamp():.0f}" if self.until else ""
        again, absent = "again" if self.sign_in else "", f".{self.absent.plain}" if self.absent else ""
        return f"{self.stance}.{len(self.yes)}.{'stuck' if self.stuck else ''}.{again}{on_it}{absent}"


def claim(name: str) -> str:
    """Return what a client calls itself, as it is kept.

    At most LONGEST_CLAIM characters, of which the last says if it was cut.
    """
    text = storable(name).strip()
    return text if len(text) <= LONGEST_CLAIM else text[: LONGEST_CLAIM - 1] + "…"


def how(decision: Decision) -> str:
    """Return how a person was known, to be read behind their name, and shown like any text of others."""
    match decision.means:
        case "session":
            return gettext_noop("signed in")
        case "token" if decision.token_name:
            token_name = canonical.pretty(decision.token_name)
            return translatable(f"with the approver token {token_name}")
        case "token":
            return gettext_noop("with a token")
        case "console":
            return gettext_noop("at the console")
        case "elicitation":
            claimed = canonical.pretty(decision.client)
            who = f"the MCP client that calls itself {claimed}" if decision.client else "a nameless MCP client"
            token = f" (token {canonical.pretty(decision.token_name)})" if decision.token_name else ""
            return f"or so says {who}{token}"
        case _:
            other = canonical.pretty(decision.means)
            return translatable(f"authenticated by {other}")


def stance_of(approval: Approval, viewer: Actor) -> Standing:
    """Return the standing of an open question. Costs no query where the requester decides."""
    call = approval.call
    may, absent = deciders.right_of(viewer, call)
    found = Standing(
        unusual_rules(approval),
        "may" if may else "others",
        sign_in=_sign_in(approval, viewer) if may else "",
        ages=may and deciders.is_asked_of(approval),
        absent=see(absent.get_username()) if absent else None,
    )
    if call.oversight_digest == "":
        return found
    yes = {each.absent_id or each.person_id: each for each in deciders.counted_of(approval.pk)}
    seat = absent.pk if absent else viewer.user_id
    own = next((each for of, each in yes.items() if of == seat or each.person_id == viewer.user_id), None)
    names = tuple(see(name(each)) for each in yes.values())
    turn = oversight.whose_turn(approval.disclosure["whoDecides"], call)
    found = replace(found, quorum=call.quorum, yes=names, stuck=_stuck(approval, [*yes]), moves=True, turn=_turn(turn))
    # Where enough have said yes and it waits all the same, since one of them was away, one more click is all it needs.
    if (may or turn) and own is not None and len(yes) < call.quorum:
        by = None if own.person_id == viewer.user_id else see(name(own))
        found = replace(found, stance="said", by=by, has_passed=not may)
    row = on_it(approval)
    if row is None:
        return found
    who = see(row.person.get_username())
    return replace(found, on_it=who, until=row.until, own=row.person_id == viewer.user_id)


def name(decision: Decision) -> str:
    """Return who decided, and in whose place if not in their own."""
    person, absent = decision.person.get_username(), decision.absent_name
    return translatable(f"{person} for {absent}") if absent else person


def on_it(approval: Approval) -> Handling | None:
    """Return who says now that they are on it; None where its tool has no rules, and one person decides."""
    row: Handling | None = getattr(approval, "handling", None) if approval.call.oversight_digest else None
    return row if row and row.until > timezone.now() and row.person.is_active else None


def unusual_rules(approval: Approval) -> Seen | None:
    """Return the sentences, unless all they say is that the requester decides."""
    rules = approval.disclosure["whoDecides"]
    is_plain = rules["digest"] == "" and rules["freshSignInMinutes"] is None
    return None if is_plain and not deciders.was_enough(approval) else see(sentences(approval))


def sentences(approval: Approval) -> str:
    """Return the sentences as they were shown when it was asked."""
    name = approval.disclosure["caller"]["name"]
    rules = words(approval.disclosure["whoDecides"], name)
    if not deciders.was_enough(approval):
        return rules
    client = translatable(f"{name} can also answer in the MCP client that asks: an administrator trusts it.")
    return f"{rules} {client}"


def words(rules: dict[str, Any], requester: str) -> str:
    """Return the sentences about `rules`, which are as a disclosure has them, or as `Rules.as_json`."""
    parts = [_deciding(rules, requester)]
    if rules["notTheRequester"]:
        parts.append(NEVER if requester == REQUESTER else translatable(f"Never {requester}, for whom it is called."))
    if rules["escalateAfterSeconds"] is not None:
        duration, people = _duration(rules["escalateAfterSeconds"]), _people(rules["escalateTo"])
        parts.append(translatable(f"After {duration} without an outcome, {people} may decide too."))
    if minutes := rules.get("freshSignInMinutes"):
        parts.append(translatable(f"Approval requires a sign-in within {deciders.last_minutes(minutes)}."))
    return " ".join(parts)


def _sign_in(approval: Approval, viewer: Actor) -> str:
    try:
        deciders.require(viewer, approval)
    except deciders.NotEntitled as needed:
        return str(needed)
    return ""


def _deciding(rules: dict[str, Any], requester: str) -> str:
    quorum, group = rules["quorum"], rules["group"]
    if rules.get("inOrder"):
        return _in_order([_people(rules[each]) for each in ("group", "second", "third")[:quorum]])
    match DecidedBy(rules["decidedBy"]):
        case DecidedBy.REQUESTER:
            return translatable(f"{requester} decides.")
        case DecidedBy.APPROVERS if quorum == 1:
            return gettext_noop("An approver decides.")
        case DecidedBy.APPROVERS:
            return translatable(f"{quorum} different approvers have to approve.")
        case DecidedBy.GROUP if quorum == 1:
            return translatable(f"One of {_people(group)} decides.")
        case DecidedBy.GROUP:
            if group is None:
                return translatable(f"{quorum} different people of a group that was deleted have to approve.")
            return translatable(f"{quorum} different people of the group “{group['name']}” have to approve.")


def _in_order(people: list[str]) -> str:
    first, second, third = (*people, "")[:3]
    if not third:
        return translatable(f"First one of {first} has to approve, then one of {second}.")
    return translatable(f"First one of {first} has to approve, then one of {second}, then one of {third}.")


def _turn(group: dict[str, Any] | None) -> str:
    if group is None:
        return ""
    people = _people(group)
    return translatable(f"Now one of {people} has to approve.")


def _people(group: dict[str, Any] | None) -> str:
    if group is None:
        return gettext_noop("the people of a group that was deleted")
    return translatable(f"the people of the group “{group['name']}”")


def _duration(seconds: int) -> str:
    if seconds % 86400 == 0:
        return gettext_noop("1 day") if seconds == 86400 else translatable(f"{seconds // 86400} days")
    if seconds % 3600 == 0:
        return gettext_noop("1 hour") if seconds == 3600 else translatable(f"{seconds // 3600} hours")
    if seconds % 60 == 0:
        return gettext_noop("1 minute") if seconds == 60 else translatable(f"{seconds // 60} minutes")
    return gettext_noop("1 second") if seconds == 1 else translatable(f"{seconds} seconds")


def _stuck(approval: Approval, yes: list[int]) -> str:
    """Return why it cannot be approved. `yes`: for whom one counts already."""
    quorum = approval.call.quorum
    if oversight.in_turn(approval.disclosure["whoDecides"]):
        is_able = deciders.able.define(approval.call_id).exclude(pk__in=yes).exists()
        return "" if is_able else NOBODY
    able = deciders.able(approval.call_id).count(quorum)
    if able >= quorum:
        return ""
    if able == 0:
        return NOBODY
    return translatable(f"This call cannot be approved now: {quorum} people are needed, but only {able} can decide.")
