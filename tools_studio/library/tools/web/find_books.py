from typing import Annotated, Any

from hitl import fetch


def ask(url: str, params: dict[str, Any]) -> dict[str, Any]:
    answer = fetch(url, params=params)
    if answer["status"] != 200 or not isinstance(answer["json"], dict):
        raise ValueError(f"Open Library answered with status {answer['status']}")
    return answer["json"]


def run(search: str, limit: Annotated[int, {"minimum": 1, "maximum": 20}] = 5) -> dict[str, Any]:
    """Search books by title, author or ISBN, at Open Library.

    Args:
        search: words from the title, the author's name, or an ISBN
        limit: how many at most
    """
    fields = "key,title,author_name,first_publish_year,edition_count"
    found = ask("https://openlibrary.org/search.json", {"q": search, "limit": limit, "fields": fields})
    return {
        "total": found.get("numFound", 0),
        "books": [
            {
                "title": book.get("title"),
                "authors": book.get("author_name", [])[:5],
                "first_published": book.get("first_publish_year"),
                "editions": book.get("edition_count"),
                "address": f"https://openlibrary.org{book['key']}",
            }
            for book in found.get("docs", [])
        ],
    }
