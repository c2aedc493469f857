import random
from typing import Annotated


def run(count: Annotated[int, {"minimum": 1, "maximum": 100}] = 1) -> list[str]:
    """Make random identifiers (UUID version 4).

    Args:
        count: how many
    """
    made = []
    for _ in range(count):
        digits = f"{random.getrandbits(128):032x}"
        digits = f"{digits[:12]}4{digits[13:16]}{'89ab'[int(digits[16], 16) % 4]}{digits[17:]}"
        made.append("-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]]))
    return made
