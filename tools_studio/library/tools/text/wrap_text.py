import re
from typing import Annotated


def wrapped(paragraph: str, width: int, indent: str) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in paragraph.split():
        if line and len(indent) + len(line) + 1 + len(word) > width:
            lines.append(indent + line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, indent + line] if line else lines


def run(
    text: str,
    width: Annotated[int, {"minimum": 10, "maximum": 500}] = 72,
    indent: Annotated[str, {"maxLength": 8}] = "",
) -> str:
    """Break the lines of a text so that none is wider than a number of characters; paragraphs stay apart.

    Args:
        text: the text to wrap
        width: the most characters in a line; a longer word stands alone
        indent: what every line begins with, such as "> "
    """
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    return "\n\n".join(["\n".join(wrapped(part, width, indent)) for part in paragraphs])
