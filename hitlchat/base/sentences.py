"""Sentences that are made and kept in English, and shown in the language of a page.

`tools/messages.py` finds f-strings within `translatable(…)`, and those of problems, and writes each as a template into
the catalogues of languages: `Expected at most {most} characters.` A page that shows such a sentence finds the template
that it was made of, and puts its values into the translation of that. What was made stays as it is, for the record,
for programs and for models.
"""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from string import Formatter
from typing import Final

from django.utils import translation
from django.utils.translation import trans_real

# The context of templates in catalogues: other texts with names in braces are no sentences of ours.
CONTEXT: Final = "sentence"
# That of parts of sentences, several of which stand side by side.
PART: Final = "part of a sentence"
LONGEST: Final = 4_000
# Values that are our own words though they are few; and those that are lists, such as `a, b and c`.
OURS: Final = (
    "because",
    "does",
    "duration",
    "error",
    "how_it_ran",
    "kinds",
    "kinds2",
    "month",
    "month2",
    "reason",
    "which",
    "why",
    "words",
)
# Values that are made of parts alone.
OF_PARTS: Final = ("json_types", "bounds", "batches", "events", "receipts", "counted", "fault", "fact")
# Values that are JSON, behind the path of a field.
INSTANCE: Final = "instance"
_INSTANCE: Final = re.compile(
    r"(?:[^\s'\"]+: )?(?:\".*\"|\[.*\]|\{.*\}|-?[0-9][^ ]*|true|false|null|.*… \([0-9,]+ more characters\))",
    re.DOTALL,
)
# Values that are a label, in the middle of a sentence.
LABEL: Final = "label"
LIST: Final = "listed"
FEW: Final = 2
# Between parts.
_JOINT: Final = re.compile(",? ")
_END: Final = re.compile(r"(?<=[.!?]) ")


def translatable(text: str) -> str:
    """Return the sentence as it is; pages show it in their language, with the values that stand in it."""
    return text


def part(text: str) -> str:
    """Return a part of a sentence as it is: pages translate it only as a value that is made of parts."""
    return text


def said_elsewhere(*templates: str) -> tuple[str, ...]:
    """Return templates of sentences that a library makes, which pages translate like our own."""
    return templates


def translated(text: str) -> str:
    """Return an English text in the language of the page: of one sentence, or of several that are all known."""
    if not text or "\r" in text or len(text) > LONGEST:
        # A lookup takes every end of a line for a plain one, also where there is no translation.
        return text
    return _translated(translation.get_language() or "", text)


def translated_parts(text: str) -> str:
    """Return parts side by side in the language of the page; as they are unless all of them are known."""
    return _of_parts(translation.get_language() or "", text) or text


@lru_cache(maxsize=2_048)
def _translated(language: str, text: str) -> str:
    if (whole := _sentence(language, text)) is not None:
        return whole
    sentences = [_sentence(language, each) for each in _END.split(text)]
    found = [each for each in sentences if each is not None]
    if len(found) > 1 and len(found) == len(sentences):
        return " ".join(found)
    # The output of a program stays as it is; the advice behind it, in brackets, is translated.
    for bracket in re.finditer(r" \(", text) if text.endswith(")") else ():
        advice = _of_parts(language, text[bracket.end() : -1])
        if advice is not None:
            return f"{text[: bracket.end()]}{advice})"
    return text


def _sentence(language: str, text: str) -> str | None:
    plain = translation.gettext(text)
    if plain != text:
        return plain
    for template in _templates(language, CONTEXT):
        values = template.values(text)
        if values is not None and _INSTANCE.fullmatch(values.get(INSTANCE, "0")):
            return template.translation.format_map({key: _value(language, key, each) for key, each in values.items()})
    return None


def _value(language: str, name: str, value: str) -> str:
    """Return a value, translated if it is made of words of ours; a name that is also such a word stays a name."""
    if name == LIST:
        *most, last = value.split(" and ")
        return translation.gettext("{most} and {last}").format(most=most[0], last=last) if len(most) == 1 else value
    if name in OF_PARTS:
        return _of_parts(language, value) or value
    if name.rstrip("23") == LABEL:
        found = translation.gettext(value[:1].upper() + value[1:])
        return found[:1].lower() + found[1:]
    return _translated(language, value) if value.count(" ") >= FEW or name in OURS else value


@lru_cache(maxsize=2_048)
def _of_parts(language: str, text: str) -> str | None:
    """Return the translation of parts that stand side by side; None unless all of them are known."""
    for template in _templates(language, PART):
        if not text.startswith(template.between[0]):
            continue
        for joint in (*_JOINT.finditer(text), None):
            own, rest = (text[: joint.start()], text[joint.end() :]) if joint else (text, "")
            found = template.pattern.fullmatch(own)
            others = found and (_of_parts(language, rest) if rest else "")
            if found is not None and others is not None:
                return template.translation.format_map(found.groupdict()) + (joint[0] if joint else "") + others
    return None


@dataclass(frozen=True)
class Template:
    """A sentence with names of values in braces. `between`: the texts before, between and after the values."""

    between: tuple[str, ...]
    names: tuple[str, ...]
    translation: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Return the pattern of texts that are made of it."""
        first, *others = map(re.escape, self.between)
        values = (f"(?P<{name}>.+?){after}" for name, after in zip(self.names, others, strict=True))
        return re.compile(f"{first}{''.join(values)}", re.DOTALL)

    def values(self, text: str) -> dict[str, str] | None:
        """Return the values with which the text was made of this template; None too if it could be with others."""
        first, *middle, last = self.between
        end = len(text) - len(last)
        if len(first) > end or not (text.startswith(first) and text.endswith(last)):
            return None
        early = _places(text, middle, len(first), end, last=False)
        late = _places(text, middle[::-1], len(first), end, last=True)
        if early is None or late is None or early != late[::-1]:
            return None
        starts = [len(first), *(at + len(each) for at, each in zip(early, middle, strict=True))]
        return {name: text[at:to] for name, at, to in zip(self.names, starts, [*early, end], strict=True)}


def _places(text: str, parts: list[str], start: int, end: int, *, last: bool) -> list[int] | None:
    """Return the first places of `parts` one after the other, or the `last` ones one before the other."""
    places = []
    for part in parts:
        at = text.rfind(part, start, end) if last else text.find(part, start, end)
        if at < 0:
            return None
        places.append(at)
        start, end = (start, at) if last else (at + len(part), end)
    return places


@lru_cache(maxsize=8)
def _templates(language: str, context: str) -> tuple[Template, ...]:
    """Return the templates of a language, those with the most words of their own first."""
    head = f"{context}\x04"
    # Django has no other way to list them.
    catalogue = getattr(trans_real.translation(language), "_catalog") if language else {}  # noqa: B009
    texts = {key: text for key, text in catalogue.items() if isinstance(key, str) and key.startswith(head)}
    found = [read(key.removeprefix(head), str(text)) for key, text in texts.items()]
    return tuple(sorted(found, key=lambda each: (-sum(map(len, each.between)), each.between)))


def read(template: str, translated: str) -> Template:
    between, names = [""], []
    for literal, name, _, _ in Formatter().parse(template):
        between[-1] += literal
        if name is not None:
            names.append(name)
            between.append("")
    return Template(tuple(between), tuple(names), translated)
