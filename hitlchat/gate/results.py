"""What the model reads about a call: the truth, with every outcome told apart (a contract; the words are ours)."""

from dataclasses import dataclass
from typing import Any

from hitlchat.gate import canonical, failures, limits, texts
from hitlchat.gate.models import Outcome
from hitlchat.gate.status import Status
from hitlchat.gate.texts import Texts, Told

NEVER_RAN = "The call failed before it was run. It was not executed."
NOBODY_ASKED = "Nobody was asked about this call, since enough other calls wait. It was not executed."
NOBODY_ASKED_STATUS = "nobody_asked"
STILL_RUNNING = "It was still executing when the run ended; its outcome is not known yet. Do not repeat it."

MESSAGES = {
    Status.DECLINED: "The user declined this call. It was not executed. Do not call it again for this request.",
    Status.EXPIRED: "Nobody answered the approval in time. It was not executed.",
    Status.WITHDRAWN: "The call was withdrawn before it started. It was not executed.",
    Status.REFUSED: "A policy refused this call. It was not executed.",
    Status.REJECTED: "The call was rejected. It was not executed and nobody was asked.",
    Status.FAILED: "The call failed.",
    Status.UNKNOWN: "The outcome is unknown: it may or may not have happened. Do not repeat it.",
    Status.EXECUTING: STILL_RUNNING,
}
EDITED = "The user changed the arguments before approving."
NOT_EXECUTED = (Status.DECLINED, Status.EXPIRED, Status.WITHDRAWN, Status.REFUSED, Status.REJECTED)
# Without templates: all words are ours.
OURS: Texts = {}


@dataclass(frozen=True)
class Bound:
    """How much of a text is told, in characters, and the setting that says so, if there is one."""

    characters: int
    setting: str = ""

    def cut(self, text: str) -> str:
        hidden = len(text) - self.characters
        by = f" by {self.setting}" if self.setting else ""
        told = f"\n[cut here{by}: {hidden:,} more characters are kept in the record]"
        return text if hidden <= 0 else text[: self.characters] + told


# What a model in the chat reads of a result.
IN_CHAT = Bound(16_000)


def for_model(
    call: Told, *, decline_reason: str = "", edited: bool = False, templates: Texts = OURS, bound: Bound = IN_CHAT
) -> str:
    """The text of the tool message: the result itself, or a JSON object with `status` and `message`. Where the message
    is an operator's template, what it must not change stands beside it, as `executed` and as `fact`. `bound`: what
    is beyond it is cut off, and the text says so."""
    status = Status(call.status)
    if status == Status.SUCCEEDED:
        return bound.cut(_success(call, edited, templates))
    facts: dict[str, object] = {"status": status.value, "message": MESSAGES.get(status, "It was not executed.")}
    if status in NOT_EXECUTED:
        facts["executed"] = False
    if status == Status.DECLINED and decline_reason:
        facts["reason_given_by_the_user"] = decline_reason
    if status in (Status.REFUSED, Status.REJECTED, Status.WITHDRAWN):
        facts["reason"] = call.reason
    if call.reason in limits.REASONS:
        # No policy did.
        facts |= {"status": NOBODY_ASKED_STATUS, "message": NOBODY_ASKED}
    elif words := texts.message(call, templates, feedback=decline_reason):
        # Last, as the longest: what is cut off is never a fact.
        facts |= {"fact": facts.pop("message"), "message": words}
    if status == Status.FAILED and call.error:
        facts |= _failed(call.error)
    return bound.cut(canonical.pretty({name: fact for name, fact in facts.items() if fact is not None}))


def _failed(error: dict[str, Any]) -> dict[str, object]:
    has_run = failures.ran(error)
    told = {} if has_run is not False else {"message": NEVER_RAN}
    return {**told, "executed": has_run, "error": error.get("message"), "line": error.get("line")}


def _success(call: Told, edited: bool, templates: Texts) -> str:
    if edited:
        words = texts.fill(templates.get(Outcome.EDITED, ""), call)
        return canonical.pretty(
            {
                "status": "succeeded",
                **({"fact": EDITED} if words else {}),
                "message": words or EDITED,
                "arguments": call.arguments,
                "result": call.result,
            }
        )
    return call.result if isinstance(call.result, str) else canonical.pretty(call.result)
