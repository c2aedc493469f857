import random
from typing import Annotated, Any

LOWER, UPPER, DIGITS = "abcdefghijkmnopqrstuvwxyz", "ABCDEFGHJKLMNPQRSTUVWXYZ", "23456789"
SIGNS = "!#$%&*+-=?@_"


def run(length: Annotated[int, {"minimum": 12, "maximum": 128}] = 20, signs: bool = True) -> dict[str, Any]:
    """Make a random password; l, I, O, 0 and 1 are left out because they look alike.

    Args:
        length: how many characters
        signs: whether signs such as ! and + may be in it
    """
    kinds = [LOWER, UPPER, DIGITS, *([SIGNS] if signs else [])]
    alphabet = "".join(kinds)
    for _ in range(100):
        # Each run begins with a state that is chance of the system all through, and draws far less than it holds.
        pool = random.getrandbits(8 * length + 64)
        made = ""
        for _ in range(length):
            pool, place = divmod(pool, len(alphabet))
            made += alphabet[place]
        if all(any(character in kind for character in made) for kind in kinds):
            return {"password": made, "length": length}
    raise ValueError("no password with all kinds of characters came out; try again")
