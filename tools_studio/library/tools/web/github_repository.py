import re
from typing import Any

from hitl import fetch


def run(repository: str) -> dict[str, Any]:
    """Describe a public repository on GitHub: what it is, its language, licence, stars and last change.

    Args:
        repository: owner and name, such as django/django
    """
    if not re.fullmatch(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9_.-]{1,100}", repository) or repository.endswith(("/.", "/..")):
        raise ValueError("repository: expected owner and name, such as django/django")
    answer = fetch(f"https://api.github.com/repos/{repository}", headers={"accept": "application/vnd.github+json"})
    if answer["status"] in (301, 404):
        raise ValueError(f"there is no public repository {repository}, or it was renamed")
    if answer["status"] in (403, 429):
        raise ValueError("GitHub answers no more questions from here for now; try again in an hour")
    found = answer["json"]
    if answer["status"] != 200 or not isinstance(found, dict):
        raise ValueError(f"GitHub answered with status {answer['status']}")
    return {
        "name": found["full_name"],
        "description": found.get("description") or "",
        "language": found.get("language") or "",
        "license": (found.get("license") or {}).get("spdx_id", ""),
        "stars": found.get("stargazers_count"),
        "forks": found.get("forks_count"),
        "open_issues": found.get("open_issues_count"),
        "topics": found.get("topics", []),
        "last_change": found.get("pushed_at"),
        "archived": found.get("archived", False),
        "address": found.get("html_url"),
    }
