"""The documentation as pages: the files in docs/, the README, the changelog and the security policy, as they are here.

docs/index.md is the way in, and names each of the others once. Everything is read when it is first needed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from mdit_py_plugins.anchors import anchors_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from hitlchat.accounts.access import signed_in

FOLDER: Final = settings.BASE_DIR / "docs"
OTHERS: Final = ("README.md", "CHANGELOG.md", "SECURITY.md")
INDEX: Final = "index"


@dataclass(frozen=True)
class Section:
    """`text`: all that is in it, in lower case. What stands before the first title has neither `anchor` nor `title`."""

    anchor: str
    title: str
    text: str


@dataclass(frozen=True)
class Document:
    name: str
    title: str
    sections: tuple[Section, ...]
    html: SafeString

    @property
    def url(self) -> str:
        return _url(self.name)


@signed_in.reads
def page(request: HttpRequest, document: str = INDEX) -> HttpResponse:
    if document not in files():
        raise Http404(f"There is no document named {document}")
    context = {"document": read(document), "is_index": document == INDEX, "section": "documents"}
    return render(request, "chat/document.html", context)


def find(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return name and address of each section that has all of these words, in lower case: first those that have them in
    their own title, then documents that have them in theirs.
    """
    hits = []
    for document in map(read, files()):
        for section in document.sections:
            title = section.title or document.title
            if all(word in f"{document.title} {title}".casefold() or word in section.text for word in words):
                is_titled = all(word in title.casefold() for word in words)
                rank = 2 if not is_titled else 0 if section.title else 1
                name = f"{title} · {document.title}" if section.title else title
                hits.append((rank, name, f"{document.url}#{section.anchor}".rstrip("#")))
    return [(name, url) for _, name, url in sorted(hits, key=itemgetter(0))]


@cache
def files() -> dict[str, Path]:
    """Return where each document is, by its name in addresses. An installation may have been made without them."""
    others = (settings.BASE_DIR / each for each in OTHERS)
    return {each.stem.lower(): each for each in (*sorted(FOLDER.glob("*.md")), *others) if each.is_file()}


@cache
def read(name: str) -> Document:
    return laid_out(name, files()[name])


def laid_out(name: str, path: Path) -> Document:
    """Return the document with its heading apart, an anchor at each other one, and links that lead to other pages."""
    tokens = _parser.parse(path.read_text(encoding="utf-8"))
    for token in tokens:
        is_open = True
        for child in token.children or ():
            if child.type == "link_open":
                is_open = _leads(child, path)
            if child.type in ("link_open", "link_close"):
                child.hidden = not is_open
    titles = [
        _words(inline) for opening, inline in pairwise(tokens) if opening.type == "heading_open" and opening.tag == "h1"
    ]
    # The page has the title in its own head.
    first = next((at for at, token in enumerate(tokens) if token.type == "heading_close"), -1) + 1
    html = _parser.renderer.render(tokens[first:], _parser.options, {})
    sections = tuple(_sections(tokens[first:]))
    return Document(name, titles[0] if titles else name, sections, mark_safe(html))  # noqa: S308 - our own files


def _sections(tokens: Sequence[Token]) -> Iterator[Section]:
    anchor, title, text = "", "", list[str]()
    for before, token in pairwise((Token("", "", 0), *tokens)):
        if before.type == "heading_open" and before.tag == "h2":
            yield Section(anchor, title, " ".join(text).casefold())
            anchor, title, text = str(before.attrGet("id")), _words(token), []
        text.append(token.content)
    yield Section(anchor, title, " ".join(text).casefold())


def _words(inline: Token) -> str:
    return "".join(child.content for child in inline.children or ())


def _leads(link: Token, origin: Path) -> bool:
    """Let a link lead to the page of a document. Return whether it leads anywhere: other files have no page."""
    target, _, anchor = str(link.attrGet("href")).partition("#")
    if "://" in target or not target:
        return True
    there = (origin.parent / target).resolve()
    name = there.stem.lower()
    link.attrSet("href", f"{_url(name)}#{anchor}".rstrip("#"))
    return files().get(name) == there


def _url(name: str) -> str:
    return reverse("documents") if name == INDEX else reverse("document", args=[name])


class _Html(RendererHTML):
    """Renders wide things so that they scroll by themselves, also by keyboard, and pictures as their words."""

    def table_open(self, *_: Any) -> str:
        return '<div class="scroll-x" tabindex="0"><table>\n'

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"

    def image(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return escape(tokens[idx].content)

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        try:
            lexer = get_lexer_by_name(tokens[idx].info.strip() or "text")
        except ClassNotFound:
            lexer = get_lexer_by_name("text")
        coloured = highlight(tokens[idx].content, lexer, HtmlFormatter(nowrap=True))
        return f'<pre tabindex="0"><code>{coloured}</code></pre>\n'


_parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Html).enable("table")
_parser.use(anchors_plugin, min_level=2, max_level=6)
