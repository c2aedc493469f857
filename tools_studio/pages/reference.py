"""The page about the Python that tools are written in: docs/tool-python.md, with a list of its sections."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from mdit_py_plugins.anchors import anchors_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from tools_studio.pages.page import author_only, side

DOCUMENT = Path("docs") / "tool-python.md"
LISTED = "h2"


@dataclass(frozen=True)
class Reference:
    title: str
    # Each with its anchor and its title.
    sections: list[tuple[str, str]]
    html: SafeString


class _Html(RendererHTML):
    """Renders wide things so that they scroll by themselves, also by keyboard."""

    def table_open(self, *_: Any) -> str:
        return '<div class="scroll-x" tabindex="0"><table>\n'

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        try:
            lexer = get_lexer_by_name(tokens[idx].info.strip() or "text")
        except ClassNotFound:
            lexer = get_lexer_by_name("text")
        coloured = highlight(tokens[idx].content, lexer, HtmlFormatter(nowrap=True))
        return f'<pre tabindex="0"><code>{coloured}</code></pre>\n'


_parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Html).enable("table")
_parser.use(anchors_plugin, min_level=2, max_level=6)


@author_only
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    file = settings.BASE_DIR / DOCUMENT
    if not file.is_file():
        raise Http404(f"{DOCUMENT} is not part of this installation")
    reference = render_document(file.read_text(encoding="utf-8"))
    return render(request, "studio/python.html", {"reference": reference, **side(request)})


def render_document(text: str) -> Reference:
    """The Markdown of our own documents as a page: its heading apart, and an anchor at each other one."""
    tokens = _parser.parse(text)
    titles = [
        (opening, "".join(child.content for child in inline.children or ()))
        for opening, inline in pairwise(tokens)
        if opening.type == "heading_open"
    ]
    title = next((words for opening, words in titles if opening.tag == "h1"), "")
    sections = [(str(opening.attrGet("id")), words) for opening, words in titles if opening.tag == LISTED]
    # The page has the title in its own head.
    first = next((at for at, token in enumerate(tokens) if token.type == "heading_close"), -1) + 1
    body = tokens[first:] if tokens and tokens[0].tag == "h1" else tokens
    html = _parser.renderer.render(body, _parser.options, {})
    return Reference(title, sections, mark_safe(html))  # noqa: S308 - our own file, and no HTML in it passes
