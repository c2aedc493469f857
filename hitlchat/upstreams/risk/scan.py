"""Reading names, descriptions and schemas for what a model would obey and a person would not see."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Literal

from hitlchat.base.canonical import storable
from hitlchat.base.lookalikes import BLANKS, fold, words
from hitlchat.base.schemas import step
from hitlchat.base.sentences import translatable
from hitlchat.base.visible import HIDDEN_CATEGORIES, see
from hitlchat.upstreams.risk.aliases import mentions
from hitlchat.upstreams.risk.fingerprint import Offered

Severity = Literal["warn", "block"]

_BEFORE, _AFTER, _LONGEST = 30, 60, 220
# What a column of warnings holds of one tool.
MOST_WARNINGS = 20
SHORT_TEXT = 60
LONGEST_TEXT = 20_000
MOST_TEXTS = 10_000
MOST_CHARACTERS = 400_000
MOST_FINDINGS = 100
LONG_TEXT = 5_000
_BASE64 = re.compile(r"[A-Za-z0-9+/]{80,}|[A-Za-z0-9_-]{100,}")
_ENCODED = (
    re.compile(r"(?:[0-9a-fA-F]{2}){65,}"),
    re.compile(r"(?:\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}|&#x?[0-9a-fA-F]{1,6};){8,}"),
    re.compile(r"\bdata:[a-z]{1,20}/[a-z0-9.+-]{1,60};base64,", re.IGNORECASE),
)
_PADDING = re.compile(r"\s{80,}|(?:\n[ \t]{0,40}){15,}")
# What an emoji is put together with, right where it belongs.
_EMOJI = r"\xa9\xae\u203c-\u3299\U0001f000-\U0001faff"
_JOINED = re.compile(
    rf"(?<=[{_EMOJI}])[\ufe0e\ufe0f]|(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])|(?<=[0-9#*])\ufe0f\u20e3"
)
_UNSEEN: tuple[tuple[str, Severity, re.Pattern[str], str], ...] = (
    ("tag-characters", "block", re.compile("[\U000e0000-\U000e007f]"),
     "Hides a text in tag characters, which only a model reads."),
    ("direction-override", "block", re.compile("[\u202a-\u202e\u2066-\u2069]"),
     "Turns the direction of writing, so that what is shown is not what is said."),
    ("zero-width", "block", re.compile("[\u200b-\u200d\u2060\ufeff\u180e]"),
     "Has characters without a width: words may be split or hidden by them."),
    ("terminal-codes", "block", re.compile(r"[\x1b\x9b]|\\(?:x1b|u001b|033|e)\["),
     "Has control codes of a terminal, which can hide or repaint text."),
    ("variation-selectors", "block", re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2}|[\U000e0100-\U000e01ef]"),
     "Has variation selectors in places where they mean nothing; a text can be smuggled in them."),
)  # fmt: skip
_ODD = re.compile(r"[^\x20-\x7e\n\t]")
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
class Finding:
    """One signal at one place: `where`, a JSON pointer into the upstream's definition; `excerpt`, the text around it,
    all visible; `sentence`, for a person. `block`: not to be offered before a person has read this and said so.
    """

    id: str
    severity: Severity
    where: str
    excerpt: str
    sentence: str


@dataclass(frozen=True)
class OtherNames:
    """Names to look out for: those of tools and servers other than the one that is scanned, and of what is its own."""

    tools: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()


_NOTHING = OtherNames()


def trips(findings: Iterable[Finding]) -> bool:
    """Return whether a text works on its reader: the tool forfeits what approval would be credited with."""
    # A long text is hard to judge, and not written to deceive.
    return any(finding.id != "overlong" for finding in findings)


def blocks(findings: Iterable[Finding]) -> bool:
    return any(finding.severity == "block" for finding in findings)


def findings_of(warnings: Iterable[dict[str, Any]]) -> tuple[Finding, ...]:
    return tuple(Finding(**each) for each in warnings)


def as_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings for a JSON column: those that block first, so that none of them is cut off."""
    ordered = sorted(findings, key=lambda finding: finding.severity != "block")
    return [{key: storable(text) for key, text in asdict(each).items()} for each in ordered[:MOST_WARNINGS]]


def excerpt(text: str, start: int, end: int) -> str:
    """The stretch from `start` to `end` with a little around it, everything visible, on one line."""
    first, last = max(0, start - _BEFORE), min(len(text), end + _AFTER, start + _LONGEST)
    shown = " ".join(see(text[first:last]).plain.split())
    return f"{'…' if first else ''}{shown}{'…' if last < len(text) else ''}"


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
    "system prompt", "conversation history", "chat history", "chain of thought", "previous messages", "sidenote",
}  # fmt: skip
_NEGATED = re.compile(r"(?:\bnot|n't|\bnever|\bwithout|\bavoid)\s+(?:\w+\s+){0,2}\Z")
_LOOK_BACK = 40


def phrases_in(folded: str) -> Iterator[tuple[Phrase, int, int]]:
    """Yield each phrase that the text contains, once, with where it stands."""
    for phrase in PHRASES:
        for match in phrase.pattern.finditer(folded):
            before = folded[max(0, match.start() - _LOOK_BACK) : match.start()]
            if not (phrase.negatable and _NEGATED.search(before)):
                yield phrase, match.start(), match.end()
                break


@dataclass(frozen=True)
class Text:
    """`name`: an identifier, whose words are run together."""

    where: str
    text: str
    name: bool = False


def texts(tool: Offered) -> Iterator[Text]:
    """Name, title, description, hints, and each key and each text of the schemas: a model reads them all."""
    yield Text("/name", tool.name, name=True)
    waiting: list[tuple[str, Any]] = [
        ("/outputSchema", tool.output_schema), ("/inputSchema", tool.input_schema), ("/annotations", tool.annotations),
        ("/description", tool.description), ("/title", tool.title),
    ]  # fmt: skip
    # Without recursion: how deep a schema goes is the upstream's choice.
    while waiting:
        place, found = waiting.pop()
        if isinstance(found, str):
            yield Text(place, found)
        elif isinstance(found, dict):
            inner = [(step(place, key), key, each) for key, each in found.items()]
            yield from (Text(at, key, name=True) for at, key, _ in inner)
            waiting.extend((at, each) for at, _, each in reversed(inner))
        elif isinstance(found, list):
            waiting.extend(reversed([(step(place, index), each) for index, each in enumerate(found)]))


@dataclass(frozen=True)
class Match:
    """A signal found in one text, from `start` to `end`."""

    id: str
    severity: Severity
    sentence: str
    start: int
    end: int


def unseen(text: str) -> list[Match]:
    """Return at most one match per kind. Line ends of any system, emoji and spaces of other widths are no finding."""
    # A character stands in for each one taken out: places must stay what they are.
    text = _JOINED.sub(lambda match: " " * len(match[0]), text).replace("\r\n", " \n")
    if not _ODD.search(text) and "\\" not in text:
        return []
    found = [
        Match(id, severity, sentence, match.start(), match.end())
        for id, severity, pattern, sentence in _UNSEEN
        if (match := pattern.search(text))
    ]
    return found or list(_rest(text))


def _rest(text: str) -> Iterator[Match]:
    first = next((index for index, char in enumerate(text) if _hidden(char)), None)
    if first is not None:
        yield Match("hidden-characters", "warn", "Has invisible characters.", first, first + 1)
        return
    plain = "".join(" " if unicodedata.category(char) == "Zs" else char for char in text)
    seen = see(plain)
    if seen.warnings:
        odd = _ODD.search(plain)
        start = odd.start() if odd else 0
        yield Match("look-alikes", "warn", " ".join(seen.warnings), start, start + 1)


def _hidden(char: str) -> bool:
    if " " <= char <= "~" or char in "\n\t":
        return False
    category = unicodedata.category(char)
    return (category in HIDDEN_CATEGORIES and category != "Zs") or char in BLANKS


def blobs(text: str) -> Iterator[Match]:
    # Words run together have few digits or one case; encodings have everything.
    kinds = str.isupper, str.islower, str.isdigit
    plain = (match for match in _BASE64.finditer(text) if all(any(map(kind, match[0])) for kind in kinds))
    others = (match for pattern in _ENCODED if (match := pattern.search(text)))
    if match := next(chain(plain, others), None):
        sentence = "Has an encoded stretch that a person cannot read and a model may decode."
        yield Match("encoded", "warn", sentence, match.start(), match.end())
    if match := _PADDING.search(text):
        sentence = "Pushes its text out of view with white space."
        yield Match("padding", "warn", sentence, max(0, match.start() - 1), match.end())
    if len(text) > LONG_TEXT:
        sentence = translatable(f"Is {len(text):,} characters long: more than most people read.")
        yield Match("overlong", "warn", sentence, 0, 0)


def scan(tool: Offered, others: OtherNames = _NOTHING) -> tuple[Finding, ...]:
    """Return at most a hundred findings, in linear time. One of them says where a part was too large to be read."""
    return tuple(islice(_findings(tool, others), MOST_FINDINGS))


def _findings(tool: Offered, others: OtherNames) -> Iterator[Finding]:
    left = MOST_CHARACTERS
    for count, text in enumerate(texts(tool)):
        left -= len(text.text)
        if left < 0 or count >= MOST_TEXTS:
            sentence = "The definition is too large to be scanned; nothing from here on was read."
            yield Finding("unread", "block", text.where, "", sentence)
            return
        raw = text.text[:LONGEST_TEXT]
        signals = _short(raw, text.name) if len(raw) <= SHORT_TEXT else _signals(raw, text.name)
        for match in (*signals, *_names(raw, others, tool.name)):
            yield Finding(match.id, match.severity, text.where, excerpt(raw, match.start, match.end), match.sentence)
        if len(text.text) > LONGEST_TEXT:
            sentence = translatable(f"Only the first {LONGEST_TEXT:,} of {len(text.text):,} characters were scanned.")
            yield Finding("unread", "block", text.where, "", sentence)


def _signals(raw: str, is_name: bool) -> tuple[Match, ...]:
    found = [*unseen(raw), *blobs(raw)]
    if not is_name:
        folded = fold(raw)
        for phrase, start, end in phrases_in(folded.text):
            first, last = folded.place(start), folded.place(end - 1) + 1
            found.append(Match(phrase.id, phrase.severity, phrase.sentence, first, last))
        return tuple(found)
    spaced = fold(words(raw)).text
    found += [Match(phrase.id, phrase.severity, phrase.sentence, 0, len(raw)) for phrase, _, _ in phrases_in(spaced)]
    if spaced.strip() in COVETOUS:
        found.append(Match("covetous-argument", "warn", "Its name asks the model for its instructions.", 0, len(raw)))
    return tuple(found)


# Most texts of a schema are its keywords, again and again.
_short = lru_cache(maxsize=4096)(_signals)


def _names(raw: str, others: OtherNames, own: str) -> Iterator[Match]:
    if found := next(mentions(raw, others.tools, own), None):
        yield Match("other-tool", "warn", f"Names “{found.name}”, a tool from elsewhere.", found.start, found.end)
    if found := next(mentions(raw, others.servers), None):
        yield Match("other-server", "warn", f"Names “{found.name}”, another server.", found.start, found.end)
