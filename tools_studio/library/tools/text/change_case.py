import re
import unicodedata
from typing import Literal

SMALL = "a an and as at but by for in nor of on or the to with".split()


def plain(text: str) -> str:
    """Without accents: é becomes e, ß becomes ss."""
    spelled = text.replace("ß", "ss").replace("æ", "ae").replace("ø", "o").replace("Ø", "O").replace("ł", "l")
    return "".join([c for c in unicodedata.normalize("NFKD", spelled) if not unicodedata.combining(c)])


def words(text: str) -> list[str]:
    """The words of a text or of a name such as `orderId` or `order_id`."""
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", text))
    return [word.lower() for word in re.findall(r"[^\W_]+", apart)]


def title(text: str) -> str:
    found = text.split(" ")
    last = len(found) - 1
    kept = [w.lower() if w.lower() in SMALL and 0 < n < last else w[:1].upper() + w[1:] for n, w in enumerate(found)]
    return " ".join(kept)


def sentence(text: str) -> str:
    lowered = text.lower()
    starts = {0} | {match.end() for match in re.finditer(r"[.!?]\s+", lowered)}
    return "".join([c.upper() if n in starts else c for n, c in enumerate(lowered)])


def run(
    text: str,
    case: Literal["upper", "lower", "title", "sentence", "camel", "pascal", "snake", "kebab", "constant", "slug"],
) -> str:
    """Write a text in another case, or make a name of it for code or for a web address.

    Args:
        text: the text or name
        case: the case to write it in; slug is kebab without accents, for web addresses
    """
    if case in ("upper", "lower"):
        return text.upper() if case == "upper" else text.lower()
    if case in ("title", "sentence"):
        return title(text) if case == "title" else sentence(text)
    found = words(plain(text) if case == "slug" else text)
    if not found:
        raise ValueError("the text has no letters or digits to make a name of")
    pascal = [word[:1].upper() + word[1:] for word in found]
    made = {
        "camel": "".join([found[0], *pascal[1:]]),
        "pascal": "".join(pascal),
        "snake": "_".join(found),
        "constant": "_".join(found).upper(),
    }
    return made.get(case, "-".join(found))
