import base64
import re
from typing import Literal


def run(text: str, direction: Literal["encode", "decode"] = "encode", url_safe: bool = False) -> str:
    """Write a text in Base64, or read one that is.

    Args:
        text: the text, or the Base64 to read
        direction: encode writes Base64, decode reads it
        url_safe: write - and _ for + and /, and no = at the end; both are understood when reading
    """
    if direction == "encode":
        if url_safe:
            return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        return base64.b64encode(text.encode()).decode()
    packed = re.sub(r"\s", "", text).replace("-", "+").replace("_", "/").rstrip("=")
    if not re.fullmatch(r"[A-Za-z0-9+/]*", packed) or len(packed) % 4 == 1:
        raise ValueError("the text is not Base64")
    raw = base64.b64decode(packed + "=" * (-len(packed) % 4))
    try:
        return raw.decode()
    except ValueError:
        raise ValueError(f"it holds {len(raw)} bytes that are not UTF-8 text") from None
