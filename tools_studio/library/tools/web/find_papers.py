from typing import Annotated, Any

from hitl import fetch


def ask(url: str, params: dict[str, Any]) -> dict[str, Any]:
    answer = fetch(url, params=params)
    if answer["status"] != 200 or not isinstance(answer["json"], dict):
        raise ValueError(f"Crossref answered with status {answer['status']}")
    return answer["json"]


def published(item: dict[str, Any]) -> str:
    parts = item.get("issued", {}).get("date-parts", [[None]])[0]
    return "-".join([f"{part:02d}" for part in parts if part])


def run(search: str, limit: Annotated[int, {"minimum": 1, "maximum": 20}] = 5) -> dict[str, Any]:
    """Search scientific papers and books by title, author or topic, at Crossref.

    Args:
        search: words from the title, names of authors, or a topic
        limit: how many at most
    """
    params = {"query": search, "rows": limit, "select": "DOI,title,author,container-title,issued,URL,type"}
    found = ask("https://api.crossref.org/works", params).get("message", {})
    return {
        "total": found.get("total-results", 0),
        "papers": [
            {
                "title": " ".join(item.get("title", [])) or "(no title)",
                "authors": [
                    f"{each.get('given', '')} {each.get('family', each.get('name', ''))}".strip()
                    for each in item.get("author", [])[:10]
                ],
                "in": " ".join(item.get("container-title", [])),
                "published": published(item),
                "doi": item.get("DOI", ""),
                "address": item.get("URL", ""),
            }
            for item in found.get("items", [])
        ],
    }
