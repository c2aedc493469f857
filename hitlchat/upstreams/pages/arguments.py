"""A program's arguments as lines: one on each, exactly as the program gets it.

What would not survive that, such as an empty argument or one with a line break, stands in double quotes, as in JSON.
"""

import json
from collections.abc import Iterable

LONGEST_SAID = 60
ONE = "is one argument, with the space in it. Did you mean two lines?"


def lines(arguments: Iterable[str]) -> str:
    return "\n".join(map(_line, arguments))


def read(text: str) -> tuple[str, ...]:
    """The arguments of `text`; empty lines are none."""
    return tuple(_argument(line) for line in text.replace("\r\n", "\n").split("\n") if line.strip())


def hints(arguments: Iterable[str]) -> list[str]:
    """What is probably meant otherwise, in sentences."""
    joined = (arg for arg in arguments if arg.startswith("-") and "=" not in arg and len(arg.split()) > 1)
    return [f"“{arg if len(arg) < LONGEST_SAID else arg[:LONGEST_SAID] + '…'}” {ONE}" for arg in joined]


def _line(argument: str) -> str:
    plain = argument.strip() == argument != "" and not any(ch in argument for ch in "\r\n")
    return argument if plain and not argument.startswith('"') else json.dumps(argument, ensure_ascii=False)


def _argument(line: str) -> str:
    line = line.strip()
    if not line.startswith('"'):
        return line
    try:
        meant = json.loads(line)
    except ValueError:
        return line
    return meant if isinstance(meant, str) else line
