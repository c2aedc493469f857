"""Every text of a page has its translation, and no template shows one that none could reach."""

import ast
import re
from pathlib import Path

import pytest
from babel.messages import Message

from hitlchat.gate import results
from hitlchat.gate.status import Status
from tests.architecture.pages import bare
from tests.architecture.source import ROOT
from tests.tables import each_row
from tools import messages

# Percent signs of Python and names in braces of scripts.
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%%|%s|\{\w+\}")


@pytest.fixture(params=messages.LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_catalogs_have_every_text_of_the_program(subtests: pytest.Subtests) -> None:
    # In one test, since to find the texts takes as long as many.
    texts = messages.texts()
    ids = {message.id for message in texts}
    for language in messages.LANGUAGES:
        catalog = messages.merged(language, texts)
        with subtests.test(msg="every text has a translation", language=language):
            assert messages.missing(catalog) == []
        with subtests.test(msg="what is in the repository is what the tool makes", language=language):
            assert messages.as_po(catalog, read(messages.po_path(language))) == read(messages.po_path(language))
            assert messages.as_mo(catalog) == read(messages.mo_path(language))
            assert messages.as_script(catalog) == read(messages.script_path(language))
    with subtests.test(msg="each template can be told from its values"):
        templates = [each.id for each in texts if each.context == messages.CONTEXT]
        assert [each for each in templates if "}{" in str(each).replace("{{", "").replace("}}", "")] == []
    with subtests.test(msg="labels and messages of Python are found without a mark"):
        assert {"Only these tools", "Comma-separated. Leave empty for all tools.", "Not reachable"} <= ids
        assert "Your password is changed. You are signed out everywhere else." in ids
    with subtests.test(msg="the list for reading has those of pages, and of the console and of models, each once"):
        lines = [*messages.listing(texts, "")]
        assert {"  Next steps\n", "  No active grants.\n", f"  {results.MESSAGES[Status.DECLINED]}\n"} <= {*lines}
        assert len(lines) == len({*lines})
    with subtests.test(msg="every sentence of the record can be shown in another language"):
        known = {each.id for each in texts if each.context in (messages.CONTEXT, messages.PART)}
        files = {each for each in (ROOT / "hitlchat" / "record").glob("*.py") if each.name not in OF_CONSOLE}
        sentences = {sentence for each in files for sentence in told(each.read_text(encoding="utf-8"))}
        assert sorted(sentences - known - NOT_SHOWN) == []


def test_a_translation_has_the_values_of_its_text(language: str) -> None:
    assert [each.id for each in messages.stored(language) if each.id and not same_values(each)] == []


def test_a_translation_keeps_the_marks_of_its_text(language: str) -> None:
    def marks(text: str) -> list[str]:
        return sorted(re.findall(r"<[^>]*>", text))

    for each in messages.stored(language):
        for text, translated in forms(each):
            assert marks(text) == marks(translated), text


def test_no_text_to_translate_hides_in_an_f_string() -> None:
    found = {path.name: hidden(messages.tree(path)) for path in messages.sources() if messages.has_mark(path)}
    assert {name: lines for name, lines in found.items() if lines} == {}


@each_row("code", ["f\"{_('No')} {name}\"", "f\"{gettext('No') if no else name}\"", "f\"{n:{_('x')}}\""])
def test_a_text_to_translate_in_an_f_string_is_found(code: str) -> None:
    assert hidden(ast.parse(code)) == [1]
    assert hidden(ast.parse("said = _('No')\nf'{said} {_(word)}'")) == []


@each_row(
    "template",
    [
        "<p>Some words</p>",
        "{{ name }} said it",
        '<button title="Send">{% icon "x" %}</button>',
        '<img alt="Send {{ name }}">',
        "{% if many %}Calls{% endif %}",
        '{% include "a.html" with heading="Before" %}',
        '{{ name|default:"nobody" }}',
        "{{ many }} {% blocktranslate %}calls{% endblocktranslate %} left",
        "{% translate 'call' %}{{ many|pluralize }}",
    ],
)
def test_a_text_outside_of_translations_is_found(template: str) -> None:
    assert bare(template)


@each_row(
    "template",
    [
        '<p title="{% translate "Send" %}">{% blocktranslate %}{{ n }} calls{% endblocktranslate %} · {{ name }}</p>',
        "<code>make run</code> <b>L4</b> hitlchat",
        '{# A comment. #}<a class="two words" href="{% url "chat" %}">{{ name|default:"-" }}</a>',
    ],
)
def test_names_code_and_translated_texts_are_none(template: str) -> None:
    assert bare(template) == []


def test_no_template_shows_a_text_that_no_translation_reaches() -> None:
    templates = sorted((messages.ROOT / "templates").rglob("*.html"))
    found = {path.name: bare(path.read_text(encoding="utf-8")) for path in templates}
    assert {name: texts for name, texts in found.items() if texts} == {}


# What the console says, and the log.
OF_CONSOLE = {"report.py", "__main__.py"}


# Of what is hashed and signed, and of errors that only commands raise.
NOT_SHOWN = {
    "SELECT {columns} FROM gate_auditevent WHERE id = %s",
    "unreadable {event_id} {bytes}",
    "no event is hashed in form {form}",
    "hitlchat record {kind}\n{canonical}",
    "{to} already exists. Name a new file.",
    # What the log says.
    "Seal {number} is missing from the record. See docs/record.md.",
}


def told(code: str) -> set[str]:
    """Return the f-strings that say something, as templates."""
    strings = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.JoinedStr)]
    return {messages.template(each) for each in strings if any(messages.says(part) for part in each.values)}


def test_a_sentence_of_the_record_without_a_mark_is_found() -> None:
    assert told("words = f'Event {number} is missing.'") == {"Event {number} is missing."}


def hidden(module: ast.Module) -> list[int]:
    """Return the lines with a literal to translate within an f-string, where Babel finds none on Python 3.11."""
    strings = [node for node in ast.walk(module) if isinstance(node, ast.JoinedStr)]
    calls = [node for string in strings for node in ast.walk(string) if isinstance(node, ast.Call)]
    return sorted({call.lineno for call in calls if ast.unparse(call.func) in messages.KEYWORDS and has_literal(call)})


def has_literal(call: ast.Call) -> bool:
    return any(isinstance(each, ast.Constant) for each in call.args)


def read(path: Path) -> bytes:
    return path.read_bytes()


def forms(message: Message) -> list[tuple[str, str]]:
    """Return each form of a text with its translation; the header has none."""
    if not message.id:
        return []
    texts = (message.id,) if isinstance(message.id, str) else message.id
    return list(zip(texts, messages.forms(message), strict=True))


def same_values(message: Message) -> bool:
    # “One call” may say so in words: the number alone may be left out of a form for one.
    several = not isinstance(message.id, str)
    return all(values(text, several) == values(translated, several) for text, translated in forms(message))


def values(text: str, several: bool) -> list[str]:
    return sorted(each for each in PLACEHOLDER.findall(text) if not (several and "count" in each))
