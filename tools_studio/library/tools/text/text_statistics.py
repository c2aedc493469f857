import re
from collections import Counter
from typing import Annotated, Any

COMMON = set(
    (
        "a an and are as at be but by for from had has have he her his i in is it not of on or she so that the they "
        "this to was we were which with you"
    ).split()
)


def run(text: str, top: Annotated[int, {"minimum": 0, "maximum": 50}] = 5) -> dict[str, Any]:
    """Count the characters, words, sentences and lines of a text, and name its commonest words.

    Args:
        text: the text to measure
        top: how many of the commonest words to name; little words do not count
    """
    words = re.findall(r"\w+(?:['’-]\w+)*", text)
    sentences = [part for part in re.split(r"[.!?…]+(?:\s|$)", text) if re.search(r"\w", part)]
    telling = [word.lower() for word in words if word.lower() not in COMMON and len(word) > 1]
    return {
        "characters": len(text),
        "characters_without_spaces": len(re.sub(r"\s", "", text)),
        "words": len(words),
        "different_words": len({word.lower() for word in words}),
        "sentences": len(sentences),
        "lines": len(text.splitlines()),
        "paragraphs": len([part for part in re.split(r"\n\s*\n", text) if part.strip()]),
        "reading_minutes": round(len(words) / 230, 1),
        "common_words": [{"word": word, "count": count} for word, count in Counter(telling).most_common(top)],
    }
