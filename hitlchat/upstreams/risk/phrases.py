"""What texts say to a model instead of about their tool, as findings of a scan.

Every repetition is bounded, or ends where the next piece begins, so that reading takes time linear in the text.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from hitlchat.base.visible import see

Severity = Literal["warn", "block"]

# These say that a text is hard to judge, not that it was written to deceive.
_HARMLESS = {"overlong"}
_BEFORE, _AFTER, _LONGEST = 30, 60, 220


@dataclass(frozen=True)
class Finding:
    """One signal at one place.

    `where` is a JSON pointer into the upstream's definition (`/inputSchema/properties/path/description`), `excerpt` the
    text around it with hidden characters as escapes, `sentence` what it means, for a person. `warn`: shown beside the
    tool; `block`: the tool is not to be offered before a person has read this and said so.
    """

    id: str
    severity: Severity
    where: str
    excerpt: str
    sentence: str


def trips(findings: Iterable[Finding]) -> bool:
    """Whether the tool forfeits what approval would be credited with: any sign of a text that works on its reader."""
    return any(finding.id not in _HARMLESS for finding in findings)


def blocks(findings: Iterable[Finding]) -> bool:
    return any(finding.severity == "block" for finding in findings)


def excerpt(text: str, start: int, end: int) -> str:
    """The stretch from `start` to `end` with a little around it, everything visible, on one line."""
    first, last = max(0, start - _BEFORE), min(len(text), end + _AFTER, start + _LONGEST)
    shown = " ".join(see(text[first:last]).plain.split())
    return f"{'…' if first else ''}{shown}{'…' if last < len(text) else ''}"


# Within one sentence, and not far.
_NEAR = r"[^.!?]{0,60}?"
_NOT = r"\b(?:do\s+not|don'?t|never|must\s+not|should\s+not|shall\s+not|cannot|avoid|without)\s+(?:ever\s+)?"
_USER = r"(?:the|your|this)\s+(?:end[\s-])?(?:user|human|operator|person)\b(?!'s)"
_TELL = (
    r"(?:let|(?:tell|inform|notify|alert|warn|mention|show|report|explain|say)(?:ing)?|(?:reveal|disclos)(?:e|ing)?)"
)
_ORDERS = r"(?:instructions?|prompts?|rules?|guidelines?|directions|policy|policies|commands?|constraints|safeguards)\b"
_CALL = r"(?:call(?:ing)?|us(?:e|ing)|invok(?:e|ing)|run(?:ning)?|execut(?:e|ing))"
_YES = r"(?:approval|confirmation|consent|permission)\b"


@dataclass(frozen=True)
class Phrase:
    """`negatable`: no finding where a “not” stands right before it."""

    id: str
    severity: Severity
    sentence: str
    pattern: re.Pattern[str]
    negatable: bool = False


def _phrase(id: str, severity: Severity, sentence: str, *patterns: str, negatable: bool = False) -> Phrase:
    return Phrase(id, severity, sentence, re.compile("|".join(f"(?:{each})" for each in patterns)), negatable)


PHRASES = (
    _phrase(
        "hidden-instruction", "block", "Tells the model to disregard the instructions it was given.",
        r"\b(?:ignore|disregard|forget|neglect|override)\b(?:\s+\w+){0,3}?\s+"
        rf"(?:previous|prior|above|earlier|preceding|system|safety)\b(?:\s+\w+){{0,2}}?\s+{_ORDERS}",
        r"\b(?:ignore|disregard|forget|override|bypass)\b(?:\s+\w+){0,2}?\s+(?:all|any|your|other|existing|original)\b"
        r"(?:\s+\w+){0,2}?\s+(?:instructions|prompts?|guidelines)\b",
        rf"\bforget\s+(?:everything|all)\b{_NEAR}\b(?:above|before|told|said|learned)\b",
        r"\b(?:new|real|actual|secret|hidden|updated)\s+(?:system\s+)?(?:instructions?|orders)\s*(?:follow\b|:)",
        rf"\b(?:overrides?|supersedes?|takes?\s+(?:precedence|priority)\s+over)\s+(?:\w+\s+){{0,2}}"
        rf"(?:all|any|other|previous|your|system)\s+(?:\w+\s+){{0,2}}{_ORDERS}",
    ),
    _phrase(
        "secrecy", "block", "Tells the model to keep something from the person it works for.",
        rf"{_NOT}{_TELL}\b{_NEAR}\b{_USER}",
        rf"{_NOT}(?:mention|reveal|disclose)\s+(?:this|that|it|these|any\s+of)\b",
        r"\bkeep\s+(?:this|that|it|these)\b(?:\s+\w+){0,3}?\s+(?:secret|hidden|confidential)\b",
        rf"\b(?:hide|conceal)\b{_NEAR}\bfrom\s+{_USER}",
        r"\b(?:user|human|person)\s+(?:must|should|does|need)\s*(?:not|n't)\s+(?:know|see|notice|be\s+(?:told|aware))",
    ),
    _phrase(
        "command-markup", "block", "Uses markup that models take for orders from whoever runs them.",
        r"<\s{0,3}/?\s{0,3}(?:important|system|secret|hidden|critical|admin|sys|assistant|override)\b[^<>]{0,40}>",
        r"<\|[a-z_]{1,30}\|>|\[/?inst\]|<<\s{0,3}sys\s{0,3}>>|#{2,6}\s*(?:system|new\s+instructions?)\s*(?::|\n|$)",
    ),
    _phrase("html-comment", "warn", "Has an HTML comment, which many viewers don't show.", r"<!--"),
    _phrase(
        "role-hijack", "block", "Tries to give the model another role.",
        r"\byou\s+are\s+(?:now|no\s+longer)\s+(?:an?|the|in|acting|operating|free|bound|going)\b",
        r"\bfrom\s+now\s+on\b,?\s+(?:you|always|ignore|act|respond|every)\b",
        r"\b(?:pretend|act|behave|respond)\s+(?:as\s+if\s+you|(?:to\s+be|as)\s+(?:an?\s+|the\s+)?"
        r"(?:unrestricted|admin\w{0,10}|root|system|developer\s+mode|dan|jailbroken)\b)",
        r"(?:^|\n)[ \t]{0,20}(?:system|assistant)\s{0,5}:\s{0,5}(?:you|ignore|from\s+now|override|new)\b",
        r"\b(?:developer|god|jailbreak|dan)\s+mode\s+(?:is\s+)?(?:on|enabled|activated|active)\b",
    ),
    _phrase(
        "approval-imitation", "block", "Uses the words of an approval, as if a person had given one.",
        r"\b(?:user|human|person|administrator|admin|operator)\s+(?:has\s+|have\s+)?already\s+"
        r"(?:approved|agreed|confirmed|consented|authori[sz]ed|accepted)",
        r"\bapprove\s*:\s*run\b|\bdecline\s*:\s*don'?t\s+run\b|\bi\s+reviewed\s+(?:the\s+arguments|and\s+accept)",
        r"\brisk\s+(?:level\s*)?:?\s*l[0-5]\b|\bl[0-5]\s*(?:-|\u2013|:)\s*(?:verified|safe)\b",
        r"\b(?:approved|verified|trusted)\s+by\s+(?:the\s+)?(?:administrator|admin|operator|hitlchat|security\s+team)\b",
    ),
    _phrase(
        "no-asking", "warn", "Says that nobody needs to be asked.",
        rf"\b(?:no|skip(?:ping)?|bypass(?:ing)?)\s+(?:(?:any|further|the|human|user|manual)\s+){{0,3}}{_YES}",
        rf"\b(?:do\s+not|don'?t|never|without)\s+ask(?:ing)?\b[^.!?\n]{{0,40}}?\b{_YES}",
    ),
    _phrase(
        "cross-tool", "warn", "Gives orders about other tools.",
        rf"\b(?:before|after|instead\s+of|prior\s+to|when(?:ever)?)\s+(?:you\s+)?{_CALL}\s+"
        r"(?:any|all|every|each|another|the\s+other|other)\b[^.!?\n]{0,30}?\b(?:tools?|functions?|servers?)\b",
        r"\b(?:before|instead\s+of|prior\s+to)\s+(?:any|all|every|each|the)\s+other\s+(?:tools?|functions?|servers?)\b",
        r"\b(?:never|do\s+not|don'?t)\s+(?:call|use|invoke|run)\s+(?:any|all|the)\s+other\s+(?:tools?|servers?)\b",
        r"\b(?:whenever|every\s+time|each\s+time|if)\s+(?:\w+\s+){0,3}(?:another|any\s+other)\s+(?:tool|server)\b",
    ),
    _phrase(
        "exfiltration", "block", "Asks for the conversation or the model's own instructions to be handed over.",
        r"\b(?:include|pass|send|attach|append|forward|put|copy|paste|upload|provide|insert|place)\s+"
        r"(?:(?:the|this|our|your|my|entire|full|whole|complete|all|of|current|verbatim|previous)\s+){0,5}"
        r"(?:conversation(?!\s?id)|(?:chat|message|conversation)\s+(?:history|log|transcript)|system\s+prompt"
        r"|(?:previous|prior|earlier)\s+messages)\b",
        negatable=True,
    ),
    _phrase(
        "exfiltration", "block", "Asks for secrets to be read or sent.",
        r"\b(?:include|pass|send|attach|append|forward|copy|paste|upload|read|collect|gather|extract|leak|exfiltrate)\s+"
        r"(?:(?:the|of)\s+)?(?:all|any|every|user'?s|stored|found|known|available|their|his|her)\s+"
        r"(?:(?:the|of|your|stored|found|available|known|user'?s)\s+){0,3}"
        r"(?:api\s+keys?|passwords?|credentials?|secrets?|(?:access\s+)?tokens?|private\s+keys?"
        r"|env(?:ironment)?\s+var(?:iable)?s?|cookies)\b",
        negatable=True,
    ),
    _phrase(
        "exfiltration", "block", "Asks for files that hold keys or passwords.",
        r"\b(?:read|reading|send|include|pass|attach|upload|open|cat|copy|provide|contents?\s+(?:of|from))\b"
        r"[^!?\n]{0,60}?(?:\.ssh\b|\bid[\s_]rsa\b|\bid[\s_]ed25519\b|\bssh\s+(?:private\s+)?keys?\b|/etc/(?:passwd|shadow)\b"
        r"|\.aws/credentials|\bmcp\.json\b|\bclaude_desktop_config\b|\.netrc\b|\.git-credentials|\.kube/config)",
        negatable=True,
    ),
    _phrase(
        "private-files", "warn", "Names a file in which keys or passwords are kept.",
        r"\.ssh[/\\]|\bid[\s_](?:rsa|ed25519)\b|/etc/(?:passwd|shadow)\b|\.aws/credentials|\.git-credentials",
        r"\.cursor/mcp\.json|\bclaude_desktop_config\b|\.kube/config\b",
    ),
    _phrase(
        "remote-image", "warn", "Has an image that would be fetched from elsewhere when shown.",
        r"!\[[^\]\n]{0,200}\]\(\s{0,5}(?:https?:)?//|<\s{0,3}img\b",
    ),
)  # fmt: skip
# Arguments by these names make a model hand over what it was told, without any instruction.
COVETOUS = {
    "system prompt",
    "conversation history",
    "chat history",
    "chain of thought",
    "previous messages",
    "sidenote",
}
_NEGATED = re.compile(r"(?:\bnot|n't|\bnever|\bwithout|\bavoid)\s+(?:\w+\s+){0,2}\Z")
_LOOK_BACK = 40


def said(folded: str) -> Iterator[tuple[Phrase, int, int]]:
    """Each phrase that the text contains, once, with where it stands."""
    for phrase in PHRASES:
        for match in phrase.pattern.finditer(folded):
            if not (phrase.negatable and _negated(folded, match.start())):
                yield phrase, match.start(), match.end()
                break


def _negated(folded: str, start: int) -> bool:
    return bool(_NEGATED.search(folded[max(0, start - _LOOK_BACK) : start]))
