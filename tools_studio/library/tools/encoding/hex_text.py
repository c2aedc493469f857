import re
from typing import Literal


def run(text: str, direction: Literal["encode", "decode"] = "encode", separator: Literal["", " ", ":"] = "") -> str:
    """Write the UTF-8 bytes of a text in hexadecimal digits, or read them back.

    Args:
        text: the text, or the digits to read
        direction: encode writes digits, decode reads them
        separator: what stands between two bytes when writing
    """
    if direction == "encode":
        return separator.join([f"{byte:02x}" for byte in text.encode()])
    digits = re.sub(r"\\x|0x|[\s:,-]", "", text)
    if not re.fullmatch(r"(?:[0-9a-fA-F]{2})*", digits):
        raise ValueError("expected pairs of the digits 0 to 9 and a to f")
    raw = bytes.fromhex(digits)
    try:
        return raw.decode()
    except ValueError:
        raise ValueError(f"the {len(raw)} bytes are not UTF-8 text") from None
