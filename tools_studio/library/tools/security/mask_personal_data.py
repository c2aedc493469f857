import re
from typing import Any

KINDS = {
    "EMAIL": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "IBAN": r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b",
    "CARD": r"\b[0-9](?:[ -]?[0-9]){12,18}\b",
    "IP": r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b",
    "PHONE": r"(?<![\w.])(?:\+|00)[1-9][0-9 ()/.-]{6,18}[0-9]\b|(?<![\w.+-])0[0-9]{2,5}[ /-][0-9 -]{4,12}[0-9]\b",
}


def is_card(text: str) -> bool:
    """Whether the digits have the check digit of a payment card (Luhn)."""
    digits = [int(c) for c in reversed(text) if c.isdigit()]
    doubled = [digit * 2 - 9 * (digit > 4) if n % 2 else digit for n, digit in enumerate(digits)]
    return sum(doubled) % 10 == 0


def is_iban(text: str) -> bool:
    packed = text.replace(" ", "")
    if not 15 <= len(packed) <= 34:
        return False
    return int("".join([str(int(c, 36)) for c in packed[4:] + packed[:4]])) % 97 == 1


def is_ip(text: str) -> bool:
    return all(int(part) < 256 for part in text.split("."))


def run(text: str) -> dict[str, Any]:
    """Replace e-mail addresses, phone and card numbers, IBANs and IP addresses in a text; names are not recognised.

    Args:
        text: the text to clean
    """
    checks = {"CARD": is_card, "IBAN": is_iban, "IP": is_ip}
    counts: dict[str, int] = {}
    seen: dict[str, str] = {}
    for kind, pattern in KINDS.items():
        parts: list[str] = []
        place = 0
        for match in re.finditer(pattern, text):
            found = match.group(0)
            if kind not in checks or checks[kind](found):
                if found not in seen:
                    counts[kind] = counts.get(kind, 0) + 1
                    seen[found] = f"[{kind}_{counts[kind]}]"
                parts += [text[place : match.start()], seen[found]]
                place = match.end()
        text = "".join([*parts, text[place:]])
    return {"text": text, "replaced": counts}
