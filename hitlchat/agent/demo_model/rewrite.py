"""Questions that stand for a request in other words: what they ask is worked out or converted."""

import re

_HOW_MANY = re.compile(
    r"\bhow (?:many|much) ([^\W\d]+) (?:are (?:there )?in|is in|are|is|in|make) (-?\d[\d.,]*) ?([^\W\d]+)",
    re.IGNORECASE,
)
_NUMBER = r"-?\d+(?:\.\d+)?"
_SHARE = re.compile(
    rf"^(?:what is |what's |how much is |work out |calculate )?({_NUMBER}) ?(?:%|percent) of ({_NUMBER})[?.!]*$",
    re.IGNORECASE,
)
_SUM = re.compile(
    r"^(?:what is|what's|how much is|work out) (?!\d{4}-\d\d-\d\d)(?=[^a-z]{0,200}?\d[ ()]{0,9}[+*/^-])"
    r"([\d ().+*/^-]{3,200})[?=]*$",
    re.IGNORECASE,
)
_MONEY = re.compile(
    rf"^(?:what is|what's|how much is|convert|change) ({_NUMBER}) ?((?-i:[A-Z]{{3}}))"
    r" (?:in|to|into) ((?-i:[A-Z]{3}))\b",
    re.IGNORECASE,
)


def plainly(text: str) -> str:
    """`text` with `how many miles are 10 km`, `15% of 240`, `3 + 4` and `10 USD in EUR` put as what is to be done."""
    text = _HOW_MANY.sub(r"convert \2 \3 to \1", text).strip()
    text = _SHARE.sub(r"calculate \1 / 100 * \2", text)
    text = _SUM.sub(r"calculate \1", text)
    return _MONEY.sub(r"exchange \1 \2 to \3", text)
