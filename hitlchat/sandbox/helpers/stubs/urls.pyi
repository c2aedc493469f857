from typing import Any

def parts(url: str) -> dict[str, Any]:
    """scheme, username, password, host, port, path, query (a dict) and fragment of `url`."""
