"""Every text of a page has its translation, and no template shows one that none could reach."""

import ast
import re
from pathlib import Path

import pytest
from babel.messages import Catalog, Message

from tests.architecture.pages import bare
from tests.architecture.source import ROOT
from tools import messages

TEMPLATES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "templates").rglob("*.html"))
# Percent signs of Python and names in braces of scripts.
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%%|%s|\{\w+\}")


@pytest.fixture(scope="module")
def texts() -> Catalog:
    """Every text of the program: to find them takes as long as many tests."""
    return messages.texts()


@pytest.fixture(params=messages.LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_text_has_a_translation(language: str, texts: Catalog) -> None:
    assert messages.missing(messages.merged(language, texts)) == []


def test_what_is_in_the_repository_is_what_the_tool_makes(language: str, texts: Catalog) -> None:
    catalog = messages.merged(language, texts)
    assert messages.as_po(catalog, read(messages.po_path(language))) == read(messages.po_path(language))
    assert messages.as_mo(catalog) == read(messages.mo_path(language))
    assert messages.as_script(catalog) == read(messages.script_path(language))


def test_a_translation_has_the_values_of_its_text(language: str) -> None:
    assert [each.id for each in messages.stored(language) if each.id and not same_values(each)] == []


def test_a_translation_keeps_the_marks_of_its_text(language: str) -> None:
    def marks(text: str) -> list[str]:
        return sorted(re.findall(r"<[^>]*>", text))

    for each in messages.stored(language):
        for text, translated in forms(each):
            assert marks(text) == marks(translated), text


def test_no_text_to_translate_hides_in_an_f_string() -> None:
    found = {path.name: hidden(path.read_text(encoding="utf-8")) for path in messages.sources()}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize("code", ["f\"{_('No')} {name}\"", "f\"{gettext('No') if no else name}\"", "f\"{n:{_('x')}}\""])
def test_a_text_to_translate_in_an_f_string_is_found(code: str) -> None:
    assert hidden(code) == [1]
    assert hidden("said = _('No')\nf'{said} {_(word)}'") == []


def test_each_template_can_be_told_from_its_values() -> None:
    templates = [each.id for each in messages.texts() if each.context == messages.CONTEXT]
    assert [each for each in templates if "}{" in str(each).replace("{{", "").replace("}}", "")] == []


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_shows_no_text_that_cannot_be_translated(template: str) -> None:
    assert bare((ROOT / template).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
OF_CONSOLE = {"report.py", "worker.py", "__main__.py"}


@pytest.mark.parametrize(
    "name", sorted({each.name for each in (ROOT / "hitlchat" / "record").glob("*.py")} - OF_CONSOLE)
)
def test_every_sentence_of_the_record_can_be_shown_in_another_language(name: str, texts: Catalog) -> None:
    known = {each.id for each in texts if each.context in (messages.CONTEXT, messages.PART)}
    assert sorted(told((ROOT / "hitlchat" / "record" / name).read_text(encoding="utf-8")) - known - NOT_SHOWN) == []


# Of what is hashed and signed, and of errors that only commands raise.
NOT_SHOWN = {
    "SELECT {columns} FROM gate_auditevent WHERE id = %s",
    "unreadable {event_id} {bytes}",
    "no event is hashed in form {form}",
    "hitlchat record {kind}\n{canonical}",
    "{to} exists: name a file that does not.",
}


def told(code: str) -> set[str]:
    """Return the f-strings that say something, as templates."""
    strings = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.JoinedStr)]
    return {messages.template(each) for each in strings if any(messages.says(part) for part in each.values)}


def test_a_sentence_of_the_record_without_a_mark_is_found() -> None:
    assert told("words = f'Event {number} is missing.'") == {"Event {number} is missing."}


def hidden(code: str) -> list[int]:
    """Return the lines with a literal to translate within an f-string, where Babel finds none on Python 3.11."""
    strings = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.JoinedStr)]
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


def test_labels_and_messages_of_python_are_found_without_a_mark(texts: Catalog) -> None:
    found = {message.id for message in texts}
    assert {"Only these tools", "Names with commas between; empty: all.", "Not reachable"} <= found
    assert "Your password is changed. You are signed out everywhere else." in found
