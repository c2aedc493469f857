"""The texts of templates as a person would meet them, and which of them no translation reaches."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final

from django.template.base import Lexer, Token, TokenType

SHOWN: Final = ("alt", "aria-description", "aria-label", "aria-roledescription", "placeholder", "title")
# What is code, or the name of a key or of a thing that has the same name everywhere.
AS_IT_IS: Final = ("code", "kbd", "pre", "script", "style", "svg")
NAMES: Final = re.compile(
    r"\b(?:hitlchat|HITL_[A-Z]+|MCP|JSON|OAuth|Slack|Python|HTTP|REST|URL|SHA-256|L[0-5]|stdio|(?:Tool )?Studio"
    r"|true|false|[a-z]+-page)\b"
)
WORD: Final = re.compile(r"[^\W\d_]{2}")
# Texts that a tag passes on, and filters that know English only.
PASSED: Final = re.compile(
    r"""(?<![=!<>])=\s*"([^"]*[A-Z ][^"]*)"|\|(pluralize)|\|(?:default|yesno)(?:_if_none)?:"([^"]*[^\W\d_]{2}[^"]*)\""""
)


def bare(template: str) -> list[str]:
    """Return the texts of a template that are outside of `translate` and `blocktranslate`."""
    reader = _Reader()
    reader.feed("".join(_html(template)))
    reader.close()
    return [text for text in (*reader.found, *_passed(template)) if WORD.search(NAMES.sub("", text))]


def _html(template: str) -> Iterator[str]:
    """Yield what is left without tags and translated texts; a value leaves a sign where it stands."""
    translated = False
    for token in Lexer(template).tokenize():
        if token.token_type == TokenType.BLOCK:
            translated = _within(token, within=translated)
        elif not translated and token.token_type == TokenType.TEXT:
            yield token.contents
        elif not translated and token.token_type == TokenType.VAR:
            yield "0"


def _within(token: Token, *, within: bool) -> bool:
    name = token.split_contents()[0]
    return name == "blocktranslate" or (within and name != "endblocktranslate")


def _passed(template: str) -> Iterator[str]:
    for token in Lexer(template).tokenize():
        if token.token_type in (TokenType.BLOCK, TokenType.VAR):
            yield from ("".join(found) for found in PASSED.findall(token.contents))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in AS_IT_IS:
            self._inside.append(tag)
        self.found += [value for name, value in attrs if name in SHOWN and value]

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            self._inside.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.found.append(data.strip())
