import base64
import json
from datetime import datetime, timedelta
from typing import Any

MOMENTS = ["iat", "nbf", "exp", "auth_time"]
EPOCH = datetime(1970, 1, 1)


def part(text: str, name: str) -> dict[str, Any]:
    packed = text.replace("-", "+").replace("_", "/")
    try:
        found = json.loads(base64.b64decode(packed + "=" * (-len(packed) % 4)).decode())
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"the {name} of the token cannot be read")
    return found


def run(token: str) -> dict[str, Any]:
    """Show what a JSON Web Token says. The signature is NOT checked: anybody can write such a token.

    Args:
        token: the token, three parts with dots between them
    """
    parts = token.strip().removeprefix("Bearer ").split(".")
    if len(parts) != 3:
        raise ValueError(f"expected three parts with dots between them, not {len(parts)}")
    header, claims = part(parts[0], "header"), part(parts[1], "body")
    times = {
        name: (EPOCH + timedelta(seconds=claims[name])).isoformat() + "Z"
        for name in MOMENTS
        if type(claims.get(name)) in (int, float) and 0 <= claims[name] < 253402300800
    }
    warnings = ["the signature was not checked"]
    if str(header.get("alg", "none")).lower() == "none" or not parts[2]:
        warnings.append("the token is not signed at all")
    if "exp" not in claims:
        warnings.append("the token never expires")
    return {"header": header, "claims": claims, "times": times, "warnings": warnings}
