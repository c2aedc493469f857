"""What was found, as lines for people. Needs neither Django's settings nor a database."""

from hitlchat.record.checking import Checked
from hitlchat.record.signing import spaced


def checked_words(found: Checked, noted: str) -> list[str]:
    if found.wrong:
        return [f"Not genuine: line {found.line} {found.wrong}."]
    counts = (
        f"{plural(found.batches, 'batch', 'batches')}, {plural(found.events, 'event')}"
        f", {plural(found.receipts, 'receipt')}"
    )
    lines = [f"As it was written on {found.at}: {counts}."]
    if found.hidden:
        lines.append(f"{plural(found.hidden, 'value')} in it are kept back as secret; their hashes stand for them.")
    if found.unreadable:
        count = plural(found.unreadable, "event")
        lines.append(f"{count} in it could not be read as events when they were sealed: only their hashes are here.")
    lines.append(f"Signed with the key {spaced(found.key)}")
    lines.append(
        "That is the key that you named, or one that it vouches for."
        if noted
        else "Compare this with the fingerprint that you noted: the file alone cannot tell whose key it is."
    )
    return lines


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
