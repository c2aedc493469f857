from typing import Any

from hitl import store

MOST = 150


def run(words: str = "") -> list[dict[str, Any]]:
    """Show the notes that were kept, or those that have certain words in them.

    Args:
        words: words that must all be in the note or its title; empty means every note
    """
    notes = [store.get(key) for key in store.keys("note:")[:MOST]]
    wanted = words.lower().split()
    return [note for note in notes if all(word in f"{note['title']} {note['text']}".lower() for word in wanted)]
