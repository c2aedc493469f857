from typing import Any, Literal

from hitl import fetch


def ask(url: str, params: dict[str, Any]) -> dict[str, Any]:
    answer = fetch(url, params=params)
    if answer["status"] != 200 or not isinstance(answer["json"], dict):
        raise ValueError(f"Wikipedia answered with status {answer['status']}")
    return answer["json"]


def run(title: str, language: Literal["en", "de", "fr", "es"] = "en") -> dict[str, Any]:
    """Read the first section of a Wikipedia article.

    Args:
        title: the title of the article, such as Ada Lovelace
        language: the language of the Wikipedia
    """
    params = {
        "action": "query", "format": "json", "formatversion": 2, "redirects": 1, "titles": title.strip(),
        "prop": "extracts|description|info|pageprops", "exintro": 1, "explaintext": 1, "inprop": "url",
        "ppprop": "disambiguation",
    }  # fmt: skip
    answer = ask(f"https://{language}.wikipedia.org/w/api.php", params)
    pages = answer.get("query", {}).get("pages", [])
    if not pages or pages[0].get("missing") or pages[0].get("invalid"):
        raise ValueError(f"there is no article {title!r}; mind capital letters, or look for another title")
    page = pages[0]
    return {
        "title": page["title"],
        "description": page.get("description", ""),
        "text": page.get("extract", "")[:6000],
        "address": page.get("fullurl", ""),
        "is_a_list_of_meanings": "disambiguation" in page.get("pageprops", {}),
    }
