"""What hitlchat promises, each with an id. A test that holds one says so: `@pytest.mark.guarantee("gate:truth")`.

A tool that requires approval never runs without an explicit human yes for exactly that call.
"""

from typing import Final

GUARANTEES: Final[dict[str, str]] = {
    "gate:no-yes-no-run": "A gated call is never executed before its approval is complete, from any entry point",
    "gate:one-funnel": (
        "Every route into tool execution (chat, resume, sub-agent, MCP old and new, REST, Studio test, command)"
        " passes the one gate; a test walks them all"
    ),
    "gate:one-outcome": (
        "Of any number of simultaneous decisions, exactly one outcome is recorded; the others are told so"
    ),
    "gate:same-call": (
        "What executes is byte for byte what was shown: tool, definition, arguments, caller;"
        " any difference voids the approval"
    ),
    "gate:at-most-once": (
        "An approved call starts at most once, also across SIGKILL; an interrupted one is unknown,"
        " never silently re-run"
    ),
    "gate:fail-closed": ('An error in policy, store, channel, renderer or clock means "not run", recorded as such'),
    "gate:only-people": (
        "No agent, tool, or MCP/API credential can decide; the decider is the signed-in person. The word of an MCP"
        " client counts only if an administrator trusts the client, and up to L1 unless set otherwise"
    ),
    "gate:seen": (
        "No yes counts for a card whose head and unfolded arguments have not been in view of who gave it, nor one that"
        " came from a press begun before the card stood still, from a press that is no new act (the pointer was there"
        " already), or from a letter that somebody typed"
    ),
    "gate:truth": (
        "Declined, expired, withdrawn, refused, failed and unknown are different everywhere,"
        " also in what the model reads"
    ),
    "run:survives": (
        "A waiting conversation survives reload, restart and another process answering; nothing is held in memory"
    ),
    "record:proves": (
        "Nobody who holds the database but not the key can change, remove, add or reorder what people read without"
        " `audit verify` naming it; nothing that a model or tool writes can stop the sealing"
    ),
    "audit:complete": (
        "Every ask, decision, expiry, automatic permission, start and end has an append-only record of what was shown"
        " and why"
    ),
    # Requirements that attacks on other approval gates led to.
    "SR-1": "A card's facts come from the stored call alone; what a model says stands apart, marked as its claim",
    "SR-2": "Arguments, names, descriptions and prompts are text, and become no element, request or style",
    "SR-3": "Every character that cannot be seen or misleads is shown as an escape with a warning",
    "SR-4": "Each value has a box of its own, and imitates neither labels nor buttons",
    "SR-5": "What is folded says how much it is, and keeps a dangerous call from being approved until it was unfolded",
    "SR-6": "What cannot be laid out whole does not run, and no yes counts for it",
    "SR-7": "No argument reaches the tool that was not on the card",
    "SR-8": "An author's prompt adds text, and hides nothing",
    "SR-9": "What was asked about is compared right before it runs, in every field",
    "SR-10": "Arguments come from an answer only as an explicit edit: checked, shown, judged and digested anew",
    "SR-11": "An edit cannot change the tool",
    "SR-12": "A yes is used once, also after a crash",
    "SR-13": "Only the exact word is a yes",
    "SR-14": "What holds is fixed when the question is asked; later rules may only tighten it",
    "SR-15": "What does not parse never turns into “allowed”",
    "SR-16": "Ids of approvals cannot be guessed, and open nothing",
    "SR-17": "Any error means not run",
    "SR-18": "No identity of an agent, a tool or an MCP client decides",
    "SR-19": "Nothing that a client says of itself skips the gate",
    "SR-20": "Who decides comes from the session",
    "SR-21": "Whether one may decide is looked up per approval; to others it looks as if there were none",
    "SR-22": "Links decide nothing: a page shows the card, and a signed-in person posts the answer there",
    "SR-23": "No answer comes by webhook; what we send can be verified, and a replay refused",
    "SR-24": "No other site's page opens a socket here, sends an answer, or frames the page that takes one",
    "SR-25": "What matters most is decided by others than the requester, by two people, who have just signed in",
    "SR-26": "Each decision says how the person was known, and a client's word can be refused",
    "SR-27": "No program changes settings, rules, or how often a tool asks",
    "SR-28": "A proxied tool is pinned whole: any change withholds it, shows a diff, voids grants and asks again",
    "SR-29": "A yes for a tool of one server is none for a tool of that name on another",
    "SR-30": "A new tool on a known server is not offered, and then asks",
    "SR-31": "What a server says of its tools may raise their risk, never lower it",
    "SR-32": "Every route into a tool passes the one gate",
    "SR-33": "A sealed state survives new keys and restarts, and counts for nobody and nothing else",
    "SR-34": "Only an accept runs the tool; every other answer is told apart",
    "SR-35": "A client that cannot ask is never let through",
    "SR-36": "A question of an upstream server is named as its own, and looks like no card",
    "SR-37": "What its provider executes cannot be flagged as gated",
    "SR-38": "Words of people reach the model as data, and no longer than so",
    "SR-39": "What is pressed within half a second of the card does not count",
    "SR-40": "Approve is never the default, and Enter alone on a fresh card does nothing",
    "SR-41": "Questions are limited in number",
    "SR-42": "How long an answer took since its card was shown, and whether all of it was opened, is kept and marked",
    "SR-43": "A standing yes states its exact scope before the click, and never exists for the highest risk",
    "SR-44": (
        "Secrets are masked in notices, exports and logs; notices carry no arguments unless an administrator allows it"
    ),
    "SR-45": "Every step is on record, chained by hash; a command names the first broken row; nothing is deleted",
    "SR-46": "The record holds what was shown, with its digest",
    "SR-47": "What ran unasked names the rule or grant that let it",
    "SR-48": "Timeout, cancel, decline, refusal by policy and nobody to ask are different values everywhere",
}
