import re
from typing import Any, Literal

UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
ADDRESS = r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?"


def quote(text: str) -> str:
    return "".join([chr(b) if chr(b) in UNRESERVED else f"%{b:02X}" for b in text.encode()])


def unquote(text: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise ValueError("a % is not followed by two hexadecimal digits")
    parts = re.split(r"((?:%[0-9A-Fa-f]{2})+)", text)
    try:
        spelled = [bytes.fromhex(part.replace("%", "")).decode() if n % 2 else part for n, part in enumerate(parts)]
    except ValueError:
        raise ValueError("the bytes after the % are not UTF-8 text") from None
    return "".join(spelled)


def taken_apart(address: str) -> dict[str, Any]:
    match = re.fullmatch(ADDRESS, address)
    if match is None or not match.group(2):
        raise ValueError("expected a whole address such as https://example.com/page?q=1")
    scheme, host, path, query, fragment = match.groups()
    pairs = [pair.partition("=") for pair in (query or "").split("&") if pair]
    return {
        "scheme": scheme or "",
        "host": host,
        "path": unquote(path),
        "query": [{"name": unquote(k.replace("+", " ")), "value": unquote(v.replace("+", " "))} for k, _, v in pairs],
        "fragment": unquote(fragment or ""),
    }


def run(text: str, action: Literal["encode", "decode", "take apart"] = "encode") -> dict[str, Any]:
    """Write a text so that it can stand in a web address, read it back, or take an address apart.

    Args:
        text: the text, or the address
        action: encode writes %20 for a space and so on, decode reads it, "take apart" shows the parts of an address
    """
    if action == "take apart":
        return {"parts": taken_apart(text.strip())}
    return {"text": quote(text) if action == "encode" else unquote(text)}
