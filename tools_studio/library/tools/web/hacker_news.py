from typing import Annotated, Any

from hitl import fetch


def ask(url: str, params: dict[str, Any]) -> dict[str, Any]:
    answer = fetch(url, params=params)
    if answer["status"] != 200 or not isinstance(answer["json"], dict):
        raise ValueError(f"Hacker News answered with status {answer['status']}")
    return answer["json"]


def run(search: str = "", limit: Annotated[int, {"minimum": 1, "maximum": 30}] = 10) -> list[dict[str, Any]]:
    """List the stories on the front page of Hacker News, or search all stories.

    Args:
        search: words to search for; empty means the front page
        limit: how many stories at most
    """
    params = {"tags": "story" if search else "front_page", "hitsPerPage": limit}
    if search:
        params["query"] = search
    hits = ask("https://hn.algolia.com/api/v1/search", params).get("hits", [])
    return [
        {
            "title": hit.get("title"),
            "address": hit.get("url") or f"https://news.ycombinator.com/item?id={hit['objectID']}",
            "points": hit.get("points"),
            "comments": hit.get("num_comments"),
            "author": hit.get("author"),
            "date": str(hit.get("created_at"))[:10],
        }
        for hit in hits
    ]
