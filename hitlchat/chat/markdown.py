"""Markdown of a model, rendered so that nothing in it can act: no raw HTML, no images, no attributes but the listed."""

import logging
import re
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from html import unescape
from itertools import islice
from typing import Any
from xml.etree.ElementTree import Element, tostring

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.texmath import texmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from hitlchat.base import visible

TAGS = {
    *("p", "br", "hr", "strong", "em", "s", "code", "pre", "span", "a", "blockquote", "ul", "ol", "li", "sup"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES: dict[str, set[str]] = {
    "a": {"href", "title", "target"},
    **{tag: {"class"} for tag in ("code", "li", "span", "td", "th")},
    "ol": {"start"},
    "pre": {"data-language"},
}
# What may be wider than the page is scrolled by keyboard, too.
SCROLLED = {tag: {"tabindex": "0"} for tag in ("pre", "table")}
LONGEST_HIGHLIGHTED = 20_000
# By the names that models give to languages: lexers whose time grows with the length of the text alone. Others have
# patterns that take the square or the cube of it, and nothing can end a pattern that is being searched for.
LEXERS: dict[str, str] = {
    **{name: name for name in ("c", "cpp", "css", "diff", "go", "html", "ini", "json")},
    **{name: name for name in ("python", "rust", "sql", "toml", "xml", "yaml")},
    **dict.fromkeys(("bash", "console", "sh", "shell", "zsh"), "bash"),
    **dict.fromkeys(("javascript", "js", "jsx", "mjs", "ts", "tsx", "typescript"), "javascript"),
    **dict.fromkeys(("py", "python3"), "python"),
    "c++": "cpp",
    "golang": "go",
    "h": "c",
    "htm": "html",
    "jsonc": "json",
    "patch": "diff",
    "rs": "rust",
    "svg": "xml",
    "yml": "yaml",
    "postgresql": "sql",
    "sqlite": "sql",
    "hpp": "cpp",
    "conf": "ini",
}
# In which patterns for the end of a line search in vain, from each of its blanks.
LONG_GAP = re.compile(r"\s{200}")
LINE_END = re.compile(r"\r\n|\r|\n")
# Of cleaned HTML, in which attributes stand in double quotes.
TAG = re.compile(r"""(<(?:[^">]|"[^"]*")*>)""")
# White space of other widths, which models write in numbers and between East Asian words; all of it can be seen.
SPACES = re.compile(r"([\u1680\u2000-\u200a\u202f\u205f\u3000]+)")
PLAIN_BEYOND = 30_000
PLAIN_BLOCK_BEYOND = 10_000
STEP = 1000
# What a message may come to as HTML: with the rest of a frame it stays below what a server lets through in one.
MOST_HTML = 256 * 1024
# Of characters to be looked at: for each of MARKERS the rest of its paragraph, in vain, and that of the text for what
# begins a block with OPENERS.
MOST_WORK = 30_000_000
# Of one that is still written, and laid out again and again.
MOST_WORK_WRITING = 3_000_000
MARKERS = re.compile(r"\\[(\[]|[\[$]")
OPENERS = re.compile(r"^[ \t>*+0-9.)-]*(?:\\\[|\$\$|`{3}|~{3})", re.MULTILINE)
# A short row of a table is filled up to the columns of its head.
MOST_CELLS = 20_000
COLUMNS = re.compile(r"^[ \t>|:+*0-9.)-]+$", re.MULTILINE)
# A line behind a quote may belong to it, and those behind it: all of them are looked at for each such quote.
MOST_LAZY = 100_000
LAZY = re.compile(r"^[ \t*+0-9.)-]*>.*\n(?![ \t]*(?:>|$))", re.MULTILINE)
MOST_FORMULAS = 500
LONGEST_FORMULAS = 12_000
# Marks, which `_linked` makes links of once everything is cleaned: no model writes code with such a class.
FOOTNOTES = {
    "footnote_ref": '<sup><code class="note-ref">{number}.{mention}</code></sup>',
    "footnote_block_open": "<hr><ol>",
    "footnote_block_close": "</ol>",
    "footnote_open": '<li><code class="note-at">{number}.{mention}</code>',
    "footnote_close": "</li>",
    "footnote_anchor": ' <code class="note-back">{number}.{mention}</code>',
}
FOOTNOTE = re.compile(r'(<li>| )?<code class="note-(ref|at|back)">(\d+)\.(\d+)</code>')
ADDRESS = re.compile(r"\bhttps?://\w[^\s<>\"`|\\^{}]{1,2000}", re.IGNORECASE)
ENDS = "?!.,:;*_~'…“”"
# Of a picture that is not loaded.
LONGEST_ADDRESS = 200
BOXES = {"[ ] ": "☐ ", "[x] ": "☑ "}
FORMULA = re.compile(r'<code class="math-(inline|block)">([^<]*)</code>')
LONGEST_FORMULA = 2000
# The presentation elements of MathML Core (W3C) that text can be set with.
MATH_TAGS = {
    *("math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mfrac", "msqrt", "mroot", "mstyle", "mphantom"),
    *("msub", "msup", "msubsup", "munder", "mover", "munderover", "mmultiscripts", "mprescripts", "none"),
    *("mtable", "mtr", "mtd", "menclose"),
}
MATH_ATTRIBUTES = {
    *("display", "stretchy", "fence", "form", "separator", "accent", "accentunder", "minsize", "maxsize", "width"),
    *("columnalign", "columnlines", "rowlines", "linethickness", "mathvariant", "notation", "displaystyle"),
    *("scriptlevel", "movablelimits", "symmetric", "largeop"),
}
# A few commands of its own that use each other have a formula of 600 characters take seconds.
MACROS = re.compile(r"\\(newcommand|renewcommand|newenvironment|def)\b")
# Environments that the library does not know, by those that look the same.
ALIKE = {
    **dict.fromkeys(("aligned", "flalign", "flalign*"), "align*"),
    **dict.fromkeys(("gathered", "gather", "gather*", "multline", "multline*", "equation", "equation*"), "matrix"),
    "dcases": "cases",
}
ENVIRONMENT = re.compile(r"\\(begin|end)\{([a-z]+\*?)\}")
# Words and small lengths: nothing may move over what stands beside the formula.
MATH_VALUE = re.compile(r"[a-z -]{1,40}|-?[0-2](\.\d{1,4})?(em)?|\d{1,3}%")

logger = logging.getLogger(__name__)


class TooMuch(Exception):
    """The text takes more work than a message may; nearly none of it was done."""


def _require_little(text: str, most: int) -> None:
    """Let pass a text whose blocks are found with little work. Raises: TooMuch."""
    text = LINE_END.sub("\n", text)
    lines = text.count("\n")
    columns = max((row.count("|") for row in COLUMNS.findall(text)), default=0)
    openers, lazy = (sum(1 for _ in pattern.finditer(text)) for pattern in (OPENERS, LAZY))
    if columns * lines > MOST_CELLS or openers * len(text) > most or lazy * lines > MOST_LAZY:
        raise TooMuch


def _bounded(state: StateCore) -> None:
    """Count what is still to be done to the paragraphs, cells and headings that were found. Raises: TooMuch."""
    inline = [token.content for token in state.tokens if token.type == "inline"]
    if sum(len(MARKERS.findall(content)) * len(content) for content in inline) > state.env["most"]:
        raise TooMuch


_lexer = cache(get_lexer_by_name)


def _highlight(code: str, language: str, _: Any) -> str:
    name = LEXERS.get(language.lower())
    if name is None or len(code) > LONGEST_HIGHLIGHTED or LONG_GAP.search(code):
        return ""
    return highlight(code, _lexer(name), HtmlFormatter(nowrap=True))


def _fence(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    language = tokens[index].info.split(maxsplit=1)[:1]
    if language == ["math"]:
        return f'<code class="math-block">{escape(tokens[index].content.strip())}</code>'
    html = self.fence(tokens, index, options, env)
    return html.replace("<pre>", f'<pre data-language="{escape(language[0])}">', 1) if language else html


def _cell(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    if aligned := str(token.attrs.pop("style", "")).removeprefix("text-align:"):
        token.attrSet("class", f"cell-{aligned}")
    return self.renderToken(tokens, index, options, env)


def _footnote(_self: RendererHTML, tokens: Sequence[Token], index: int, *_: Any) -> str:
    token = tokens[index]
    number, mention = token.meta.get("id", 0) + 1, token.meta.get("subId", 0)
    # The second mention of a note, and what leads back there, has a place of its own.
    return FOOTNOTES[token.type].format(number=number, mention=mention)


def _picture(_self: RendererHTML, tokens: Sequence[Token], index: int, *_options: Any) -> str:
    """Loaded, it would tell a foreign server, by its address, what the conversation holds."""
    name, address = tokens[index].content, str(tokens[index].attrs["src"])
    address = address if len(address) <= LONGEST_ADDRESS else f"{address[:LONGEST_ADDRESS]}…"
    words = escape(_("Picture not loaded: {name}").format(name=name)) if name else escape(_("Picture not loaded:"))
    return f'<span class="not-loaded">{words} <code>{escape(address)}</code></span>'


def _formula(_self: RendererHTML, tokens: Sequence[Token], index: int, *_: Any) -> str:
    token = tokens[index]
    kind = "block" if token.block or token.type == "math_inline_double" else "inline"
    return f'<code class="math-{kind}">{escape(token.content.strip())}</code>'


def _boxes(state: StateCore) -> None:
    """Task lists (GitHub Flavored Markdown, section 5.3), with signs instead of fields that nobody can use."""
    for before, paragraph, token in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if before.type == "list_item_open" and paragraph.type == "paragraph_open" and token.children:
            first = token.children[0]
            if first.type == "text" and (box := BOXES.get(first.content[:4].lower())):
                first.content = box + first.content[4:]
                before.attrSet("class", "task")


def _addresses(state: StateCore) -> None:
    """Bare addresses (GitHub Flavored Markdown, section 6.9) become links, save within a link."""
    for token in state.tokens:
        if token.type == "inline" and token.children and "://" in token.content:
            children, depth = list[Token](), 0
            for child in token.children:
                depth += child.nesting if child.type in ("link_open", "link_close") else 0
                children += _with_links(child.content) if child.type == "text" and not depth else [child]
            token.children = children


def _with_links(text: str) -> list[Token]:
    made, done = [], 0
    for found in ADDRESS.finditer(text):
        address = found[0]
        # Without what ends the sentence around it.
        while (end := address[-1]) in ENDS or (end == ")" and address.count(")") > address.count("(")):
            address = address[:-1]
        made += [_text(text[done : found.start()]), Token("link_open", "a", 1, {"href": address}), _text(address)]
        made.append(Token("link_close", "a", -1))
        done = found.start() + len(address)
    return [*made, _text(text[done:])]


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "highlight": _highlight}).enable(["table", "strikethrough"])
    texmath_plugin(made, delimiters="brackets")
    # Neither “$5 and $10” nor “US$5” is a formula.
    dollarmath_plugin(made, allow_space=False, allow_digits=False, double_inline=True)
    footnote_plugin(made, inline=False)
    for rule in FOOTNOTES:
        made.add_render_rule(rule, _footnote)
    made.core.ruler.after("block", "bounded", _bounded)
    made.core.ruler.after("inline", "boxes", _boxes)
    made.core.ruler.after("boxes", "addresses", _addresses)
    made.add_render_rule("image", _picture)
    made.add_render_rule("fence", _fence)
    for cell in ("td_open", "th_open"):
        made.add_render_rule(cell, _cell)
    for formula in ("math_inline", "math_inline_double", "math_block", "math_block_label", "math_block_eqno"):
        made.add_render_rule(formula, _formula)
    return made


parser = _parser()


def clean(html: str, *, place: str = "") -> str:
    """Return what may stay of `html`; footnotes are linked below `place`, the id of what holds them."""
    cleaned = nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
        set_tag_attribute_values={"a": {"target": "_blank"}, **SCROLLED},
    )
    # Last: what is set as a formula was cleaned as the text of its source, and is escaped where it is made.
    shown = _with_escapes(cleaned)
    formulas = [len(found[2]) for found in FORMULA.finditer(shown)]
    if len(formulas) <= MOST_FORMULAS and sum(formulas) <= LONGEST_FORMULAS:
        # What cannot be set stays as its source.
        shown = FORMULA.sub(lambda each: mathml(unescape(each[2]), block=each[1] == "block") or each[0], shown)
    return FOOTNOTE.sub(partial(_linked, place), shown)


@lru_cache(maxsize=2048)
def mathml(latex: str, *, block: bool) -> str:
    """Return `latex` as a `math` element, whose text is escaped; empty if it cannot be set."""
    if len(latex) > LONGEST_FORMULA or MACROS.search(latex):
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
    if element.tag not in MATH_TAGS:
        element.tag = "mrow"
    given = element.attrib.items()
    element.attrib = {name: value for name, value in given if name in MATH_ATTRIBUTES and MATH_VALUE.fullmatch(value)}
    # The library writes signs as character references, and counts on nobody escaping them.
    element.text = unescape(element.text) if element.text else element.text
    element.tail = unescape(element.tail) if element.tail else element.tail
    for child in element:
        _tame(child)


def _linked(place: str, mark: re.Match[str]) -> str:
    """Return the part of a footnote that the mark stands for; plain text where it has no place yet."""
    before, kind, number, mention = mark[1] or "", mark[2], mark[3], mark[4]
    note, ref = f"{place}-note-{number}", f"{place}-ref-{number}-{mention}"
    if not place:
        return {"at": "<li>", "back": "", "ref": f"{before}[{number}]"}[kind]
    if kind == "at":
        return f'<li id="{note}">'
    if kind == "back":
        back = escape(_("Back to the text"))
        return f'{before}<a href="#{ref}" aria-label="{back}">↩</a>'
    label = escape(_("Footnote {number}").format(number=number))
    return f'{before}<a id="{ref}" href="#{note}" aria-label="{label}">[{number}]</a>'


def _with_escapes(html: str) -> str:
    """Return HTML with hidden characters made visible, since an answer may quote what others wrote."""
    if html.isascii():
        return html
    parts = TAG.split(html)  # text and tags in turn
    parts[::2] = map(_seen, parts[::2])
    parts[1::2] = map(visible.escaped, parts[1::2])
    return "".join(parts)


def _seen(text: str) -> str:
    """`text` is HTML without tags."""
    pieces = SPACES.split(text)  # text and white space in turn
    for at in range(0, len(pieces), 2):
        shown = (
            f'<span class="esc">{each.text}</span>' if each.hidden else each.text for each in visible.pieces(pieces[at])
        )
        pieces[at] = "".join(shown)
    return "".join(pieces)


@lru_cache(maxsize=4)  # a long text that grows begins as before
def _beginning(text: str) -> tuple[str, int]:
    """Return as much of the text as may be shown, as HTML, and how many characters that is."""
    while (size := len((html := _with_escapes(escape(text))).encode())) > MOST_HTML:
        text = text[: min(len(text) - 1, len(text) * MOST_HTML // size)]
    return html, len(text)


def plain(text: str) -> SafeString:
    """Return the text as it was written, with a word on that; its beginning, where all of it would be too much."""
    html, shown = _beginning(text.encode("utf-8", "surrogatepass")[:MOST_HTML].decode("utf-8", "ignore"))
    note = _("Shown as plain text: formatting it would take too long.")
    if left := len(text) - shown:
        note += " " + _("{count} more characters are not shown; “Copy text” has them.").format(count=f"{left:,}")
    html = f'<pre tabindex="0">{html}</pre><p class="quiet tiny">{escape(note)}</p>'
    return mark_safe(html)  # noqa: S308 - escaped


def render(text: str, *, place: str = "") -> SafeString:
    """Markdown as HTML; as plain text what is long, or would take much work or many bytes, which is counted first.

    `place`: an id of the page's own, below which footnotes are linked; without one they are plain numbers.
    """
    if len(text) > PLAIN_BEYOND:
        return plain(text)
    try:
        _require_little(text, MOST_WORK)
        html = clean(parser.render(text, {"most": MOST_WORK}), place=place)
    except TooMuch:
        return plain(text)
    return mark_safe(html) if len(html.encode()) <= MOST_HTML else plain(text)  # noqa: S308 - cleaned by nh3


class OpenTail:
    """Markdown that grows: blocks that can't change any more are rendered once, only the last one again and again.

    The tail is rendered anew when it has grown by a sixteenth, so that even one endless block costs linear time. Once
    it has become too much, it stays plain to the end, and an eighth is enough. `drawn` counts the times.
    """

    def __init__(self) -> None:
        self.size = 0
        self.blocks: list[str] = []
        self.tail = ""
        self.drawn = 0
        self._open: list[str] = []
        self._final = 0
        self._rendered = 0
        self._is_plain = False

    def reach(self, base: int, text: str) -> bool:
        """Go on to the end of `text`, which begins at character `base`; False if something before it is missing."""
        if self.size < base:
            return False
        self.extend(text[self.size - base :])
        return True

    def extend(self, text: str) -> None:
        # What comes at once may be all that was written so far: not one block of it is too long for that.
        for start in range(0, len(text), STEP):
            self._open.append(piece := text[start : start + STEP])
            self.size += len(piece)
            if self.size - self._rendered > (self._rendered - self._final) // (8 if self._is_plain else 16):
                self._render()

    def _render(self) -> None:
        self._rendered, self.drawn = self.size, self.drawn + 1
        text = "".join(self._open)
        if not self._is_plain:
            try:
                text = self._laid_out(text)
            except TooMuch:
                self._is_plain = True
        if self._is_plain:
            self.tail = plain(text)
        self._open = [text]

    def _laid_out(self, text: str) -> str:
        """Render what is open and return what of it may still change. Raises: TooMuch."""
        if len(text) > PLAIN_BLOCK_BEYOND:
            raise TooMuch
        _require_little(text, most := MOST_WORK_WRITING)
        # Whole lines only: what begins like a heading or a fence may yet turn out to be more of the paragraph above.
        tokens = parser.parse(text[: max(text.rfind("\n"), text.rfind("\r")) + 1], {"most": most})
        starts = [token.map[0] for token in tokens if token.level == 0 and token.nesting >= 0 and token.map]
        cut = 0
        if len(starts) > 1:
            # The parser takes a lone carriage return for the end of a line, too.
            cut = [0, *(end.end() for end in islice(LINE_END.finditer(text), starts[-1]))][-1]
        done = clean(parser.render(text[:cut], {"most": most})) if cut else ""
        tail = clean(parser.render(text[cut:], {"most": most}))
        if max(len(done), len(tail)) > MOST_HTML:
            raise TooMuch
        if cut:
            self.blocks.append(done)
            self._final += cut
        self.tail = tail
        return text[cut:]
