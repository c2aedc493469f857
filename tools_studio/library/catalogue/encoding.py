"""Texts as bytes, addresses and HTML have them."""

from typing import Any

from tools_studio.library.catalogue.shipped import pure

_SHARED: dict[str, Any] = {"group": "encoding", "category": "Encoding"}

ENCODING = (
    pure(
        "base64_text",
        "Base64 text",
        "Base64 text (direction: {args.direction}, text: {args.text})",
        {"text": "Grüße aus Köln", "direction": "encode"},
        tags=("base64",),
        **_SHARED,
    ),
    pure(
        "hex_text",
        "Hex text",
        "Hex text (direction: {args.direction}, text: {args.text})",
        {"text": "48 65 6c 6c 6f", "direction": "decode"},
        tags=("hexadecimal",),
        **_SHARED,
    ),
    pure(
        "url_text",
        "URL text",
        "URL text (action: {args.action}, text: {args.text})",
        {"text": "https://example.com/a%20b?q=tea+cup", "action": "take apart"},
        tags=("url", "percent"),
        **_SHARED,
    ),
    pure(
        "html_text",
        "HTML text",
        "HTML text (action: {args.action}, text: {args.text})",
        {"text": "<p>Fish &amp; chips</p>", "action": "remove tags"},
        tags=("html", "entities"),
        **_SHARED,
    ),
)
