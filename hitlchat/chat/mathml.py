"""Formulas that a model writes in LaTeX, as MathML that can do nothing but be read."""

import logging
import re
from functools import lru_cache
from html import unescape
from typing import Final
from xml.etree.ElementTree import Element, tostring

from latex2mathml.converter import convert_to_element

logger = logging.getLogger(__name__)

LONGEST: Final = 2000
# The presentation elements of MathML Core (W3C) that text can be set with.
TAGS: Final = {
    *("math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mfrac", "msqrt", "mroot", "mstyle", "mphantom"),
    *("msub", "msup", "msubsup", "munder", "mover", "munderover", "mmultiscripts", "mprescripts", "none"),
    *("mtable", "mtr", "mtd", "menclose"),
}
ATTRIBUTES: Final = {
    *("display", "stretchy", "fence", "form", "separator", "accent", "accentunder", "minsize", "maxsize", "width"),
    *("columnalign", "columnlines", "rowlines", "linethickness", "mathvariant", "notation", "displaystyle"),
    *("scriptlevel", "movablelimits", "symmetric", "largeop"),
}
# A few commands of its own that use each other have a formula of 600 characters take seconds.
MACROS: Final = re.compile(r"\\(newcommand|renewcommand|newenvironment|def)\b")
# Environments that the library does not know, by those that look the same.
ALIKE: Final = {
    **dict.fromkeys(("aligned", "flalign", "flalign*"), "align*"),
    **dict.fromkeys(("gathered", "gather", "gather*", "multline", "multline*", "equation", "equation*"), "matrix"),
    "dcases": "cases",
}
ENVIRONMENT: Final = re.compile(r"\\(begin|end)\{([a-z]+\*?)\}")
# Words and small lengths: nothing may move over what stands beside the formula.
VALUE: Final = re.compile(r"[a-z -]{1,40}|-?[0-2](\.\d{1,4})?(em)?|\d{1,3}%")


@lru_cache(maxsize=2048)
def mathml(latex: str, *, block: bool) -> str:
    """Return `latex` as a `math` element, whose text is escaped; empty if it cannot be set."""
    if len(latex) > LONGEST or MACROS.search(latex):
        return ""
    latex = ENVIRONMENT.sub(lambda edge: f"\\{edge[1]}{{{ALIKE.get(edge[2], edge[2])}}}", latex)
    try:
        element = convert_to_element(latex, display="block" if block else "inline")
    except Exception:
        # The library has no common kind of error for what it cannot read.
        logger.exception("A formula could not be rendered, so its source is shown")
        return ""
    _tame(element)
    return tostring(element, encoding="unicode")


def _tame(element: Element) -> None:
    """Keep what sets a formula: links, styles and colours are for pages of ours alone."""
    if element.tag not in TAGS:
        element.tag = "mrow"
    allowed = {name: value for name, value in element.attrib.items() if name in ATTRIBUTES and VALUE.fullmatch(value)}
    element.attrib = allowed
    # The library writes signs as character references, and counts on nobody escaping them.
    element.text = unescape(element.text) if element.text else element.text
    element.tail = unescape(element.tail) if element.tail else element.tail
    for child in element:
        _tame(child)
