"""Whether a call leaves out what the sentence says: then it is better to ask than to guess."""

import re
from itertools import pairwise

from hitlchat.agent.demo_model.draft import Draft
from hitlchat.agent.demo_model.tools import Tool
from hitlchat.agent.demo_model.words import canonical, leads_away, tokens

CURRENCY = re.compile(r"[€$£]\s?\d|\d\s?(?:€|(?:EUR|USD|GBP|CHF|JPY|euros?|dollars?)\b)", re.IGNORECASE)
_MONEY = frozenset(map(canonical, ("eur", "usd", "gbp", "chf", "jpy", "euro", "dollar", "pound")))
_JOINED = re.compile(r"\b(?:with|by|in|into|to|from|for|of|as|on|at)\b", re.IGNORECASE)
# What people ask for anything with.
_ASKED_WITH = """
    add any anything call check create describe do fetch find get give know let look many make much need open print put
    read run say see show something take tell turn use want work write
"""
_ASKING = frozenset(map(canonical, _ASKED_WITH.split()))


def leaves_out(draft: Draft, tool: Tool, masked: str, share: float, others: frozenset[str]) -> bool:
    """Whether the call has no good place for a value, or for a word that says what is wanted.

    `masked` is the text without what is quoted; `share` says how much of the tool's name was heard, and `others` are
    the words that the names of all tools are made of.
    """
    if draft.complete:
        return False
    if draft.missing():
        return share < 1 and not draft.values and bool(_unused_words(draft, tool, masked))
    if _has_unused_facts(draft, tool) or _is_mixed_up(draft):
        return True
    if draft.guessed and share < 1 and _guesses_too_much(draft, share, others - tool.vocabulary - _ASKING):
        return True
    guessed = share < 1 or draft.guessed or not any(param.required for param in draft.params)
    return guessed and bool(_unused_words(draft, tool, masked))


def _guesses_too_much(draft: Draft, share: float, others: frozenset[str]) -> bool:
    """Whether the rest of the sentence, which became an argument, may well be about another tool."""
    chosen = any(param.enum and param.name in draft.values for param in draft.params)
    rest = " ".join(str(draft.values[param.name]) for param in draft.params if param.name == draft.guessed)
    return (not share and not chosen) or any(canonical(word.text) in others for word in tokens(rest))


def _is_mixed_up(draft: Draft) -> bool:
    """Whether quotes that were told apart only by their order are joined by words that may mean another order."""
    pairs = pairwise(sorted(draft.in_order, key=lambda fact: fact.start))
    return any(_JOINED.search(draft.text[first.end : second.start]) for first, second in pairs)


def _has_unused_facts(draft: Draft, tool: Tool) -> bool:
    """Whether a value in the text is no argument. The rest of a row of numbers will be calls of its own."""
    rows = any(param.is_label for param in draft.params)
    unused = [fact for fact in draft.facts() if not (rows and fact.kind == "number")]
    return any(canonical(draft.text[fact.start : fact.end]) not in tool.vocabulary for fact in unused)


def _unused_words(draft: Draft, tool: Tool, masked: str) -> list[str]:
    known = tool.vocabulary | _ASKING | _MONEY
    free = [word.text for word in tokens(masked) if draft.is_free(word.start, word.end)]
    return [word for word in free if not (leads_away(word) or word[0].isdigit() or canonical(word) in known)]
