import math
import re
from typing import Any

COMMON = (
    "password letmein welcome qwerty qwertz asdf iloveyou admin login monkey dragon football baseball sunshine "
    "princess master shadow secret abc123 trustno1 changeme hello summer winter"
).split()
ROWS = ["qwertyuiop", "asdfghjkl", "zxcvbnm", "abcdefghijklmnopqrstuvwxyz", "01234567890"]
SWAPS = [["4", "a"], ["@", "a"], ["3", "e"], ["1", "l"], ["!", "i"], ["0", "o"], ["$", "s"], ["5", "s"], ["7", "t"]]


def weak_parts(password: str) -> list[str]:
    """What a guesser tries first, in words for a person."""
    lowered = password.lower()
    plain = lowered
    for digit, letter in SWAPS:
        plain = plain.replace(digit, letter)
    found = [f"contains the common word {word!r}" for word in COMMON if word in lowered or word in plain]
    rows = [row for line in ROWS for row in (line, line[::-1])]
    if any(row[n : n + 4] in lowered for row in rows for n in range(len(row) - 3)):
        found.append("contains neighbouring keys or letters, such as qwert or 1234")
    if re.search(r"(.)\1\1", password) or re.search(r"(..+)\1", lowered):
        found.append("repeats itself")
    if re.search(r"(19|20)[0-9]{2}", password):
        found.append("contains a year")
    return found


def run(password: str) -> dict[str, Any]:
    """Estimate how hard a password is to guess, and say what makes it weak; it is not repeated in the answer.

    Args:
        password: the password to judge
    """
    kinds = {"lower case": "[a-z]", "upper case": "[A-Z]", "digits": "[0-9]", "signs": "[^A-Za-z0-9]"}
    used = [name for name, pattern in kinds.items() if re.search(pattern, password)]
    size = sum([{"lower case": 26, "upper case": 26, "digits": 10, "signs": 33}[name] for name in used])
    problems = weak_parts(password)
    bits = len(set(password)) ** 0.5 * len(password) ** 0.5 * math.log2(size) if size else 0
    if len(password) < 12:
        problems.append("is shorter than 12 characters")
    bits = max(0, round(bits - 15 * len(problems)))
    words = ["very weak", "weak", "fair", "strong", "very strong"]
    score = len([limit for limit in (28, 45, 60, 80) if bits >= limit])
    return {"strength": words[score], "score": score, "bits": bits, "kinds": used, "problems": problems}
