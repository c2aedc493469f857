from typing import Any

from hitl import store

MOST = 150  # as many as find_notes can read in one go


def key(title: str) -> str:
    name = " ".join(title.lower().split())
    if not 1 <= len(name) <= 100:
        raise ValueError("title: expected 1 to 100 characters")
    return f"note:{name}"


def preview(title: str, text: str, add: bool = False) -> dict[str, str]:
    standing = store.get(key(title))
    if standing is None:
        return {"Note": title, "Now": "does not exist", "Then": text}
    return {"Note": title, "Now": standing["text"], "Then": f"{standing['text']}\n{text}" if add else text}


def run(title: str, text: str, add: bool = False) -> dict[str, Any]:
    """Keep a note for later conversations.

    Args:
        title: what the note is called; a note of the same title is replaced
        text: what to remember
        add: add the text to the note that is there instead of replacing it
    """
    standing = store.get(key(title))
    if standing is None and len(store.keys("note:")) >= MOST:
        raise ValueError(f"there are {MOST} notes already; add to one of them, or replace one")
    whole = f"{standing['text']}\n{text}" if standing and add else text
    store.set(key(title), {"title": title.strip(), "text": whole})
    return {"title": title.strip(), "replaced": standing is not None and not add, "characters": len(whole)}
