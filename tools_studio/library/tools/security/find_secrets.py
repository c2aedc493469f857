import math
import re
from collections import Counter
from typing import Any

KINDS = {
    "private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "AWS access key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "GitHub token": r"\bgh[pousr]_[A-Za-z0-9]{36,}\b|\bgithub_pat_[A-Za-z0-9_]{22,}\b",
    "Slack token": r"\bxox[abprs]-[A-Za-z0-9-]{10,}\b",
    "Google API key": r"\bAIza[0-9A-Za-z_-]{35}\b",
    "Stripe key": r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}\b",
    "API key": r"\bsk-[A-Za-z0-9_-]{20,}\b",
    "JSON Web Token": r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*",
    "password in an address": r"\b[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s:@]+@",
    "password": r"(?i)\b(?:password|passwd|pwd|secret|api[_-]?key|token)\b[\"']?\s*[:=]\s*[\"']?([^\s\"',;]{6,})",
}


def spread(text: str) -> float:
    """How much of a surprise each character is, in bits: words have about 3, keys 4 and more."""
    counts = Counter(text).values()
    return -sum([count / len(text) * math.log2(count / len(text)) for count in counts])


def masked(text: str) -> str:
    return f"{text[:4]}… ({len(text)} characters)"


def run(text: str) -> dict[str, Any]:
    """Find keys, tokens and passwords that should not be in a text; they are shown by their first letters only.

    Args:
        text: the text, such as a log, a configuration or a piece of code
    """
    found: list[dict[str, Any]] = []
    for number, line in enumerate(text.splitlines(), 1):
        taken: list[str] = []
        for kind, pattern in KINDS.items():
            for match in re.finditer(pattern, line):
                if not any(match.group(0) in other or other in match.group(0) for other in taken):
                    taken.append(match.group(0))
                    found.append({"line": number, "kind": kind, "shown": masked(match.group(0))})
        for match in re.finditer(r"[A-Za-z0-9+/_-]{32,}={0,2}", line):
            word = match.group(0)
            if spread(word) > 4.2 and not any(word in other or other in word for other in taken):
                found.append({"line": number, "kind": "random-looking text", "shown": masked(word)})
    return {"clean": not found, "count": len(found), "found": found[:200]}
