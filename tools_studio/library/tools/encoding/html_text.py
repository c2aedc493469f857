import re
from typing import Literal

NAMED = {
    "amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "nbsp": "\u00a0", "copy": "©", "reg": "®",
    "trade": "™", "hellip": "…", "ndash": "–", "mdash": "—", "laquo": "«", "raquo": "»", "lsquo": "‘", "rsquo": "’",
    "ldquo": "“", "rdquo": "”", "bdquo": "„", "euro": "€", "pound": "£", "cent": "¢", "yen": "¥", "sect": "§",
    "para": "¶", "deg": "°", "plusmn": "±", "times": "×", "divide": "÷", "middot": "·", "bull": "•", "larr": "←",
    "rarr": "→", "uarr": "↑", "darr": "↓", "auml": "ä", "ouml": "ö", "uuml": "ü", "Auml": "Ä", "Ouml": "Ö",
    "Uuml": "Ü", "szlig": "ß", "eacute": "é", "egrave": "è", "ecirc": "ê", "agrave": "à", "acirc": "â",
    "ccedil": "ç", "ntilde": "ñ", "oslash": "ø", "aring": "å", "aelig": "æ",
}  # fmt: skip


def character(name: str) -> str:
    """What an entity stands for; one that is not known stays as it is."""
    if name.startswith("#"):
        number = int(f"0{name[1:]}", 0) if name[1:2] in ("x", "X") else int(name[1:])
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return NAMED.get(name, f"&{name};")


def plain(text: str) -> str:
    """The words of a page without its tags, one line for each block."""
    kept = re.sub(r"(?is)<(script|style|head)\b.*?</(script|style|head)\s*>|<!--.*?-->", " ", text)
    kept = re.sub(r"\s+", " ", kept)
    kept = re.sub(r"(?i)</?(br|p|div|li|h[1-6]|tr|table|ul|ol)\b[^>]*>", "\n", kept)
    lines = decode(re.sub(r"<[^>]*>", "", kept)).split("\n")
    return "\n".join([line.strip() for line in lines if line.strip()])


def decode(text: str) -> str:
    parts = re.split(r"&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});", text)
    return "".join([character(part) if n % 2 else part for n, part in enumerate(parts)])


def run(text: str, action: Literal["encode", "decode", "remove tags"] = "encode") -> str:
    """Write a text so that HTML shows it as it is, read such a text back, or keep only the words of a page.

    Args:
        text: the text, or the HTML
        action: encode writes &lt; for < and so on, decode reads entities, "remove tags" keeps the words
    """
    if action == "encode":
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return escaped.replace('"', "&quot;").replace("'", "&#x27;")
    return decode(text) if action == "decode" else plain(text)
