"""Files of tools: written by an export, and read with the distrust that a stranger's file deserves."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.utils import timezone
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.problems import Problem as Refusal
from hitlchat.base.sentences import translatable
from hitlchat.gate import policy
from hitlchat.gate.models import Tool
from hitlchat.sandbox.limits import in_words
from hitlchat.secrets.references import REFERENCE
from tools_studio import cases, spec
from tools_studio.cases import LONGEST_NAME, MOST_CASES, Case
from tools_studio.models import Expectation
from tools_studio.spec import OBJECT, AuthoringError, Draft, closed

FORMAT = "hitlchat.tools"
VERSION = 1
# Sent back by the page that asks for confirmation, it has to stay below DATA_UPLOAD_MAX_MEMORY_SIZE.
MOST_BYTES = 3 * 2**19
MOST_TOOLS = 200

CASE = closed(
    ["name"],
    {
        "name": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
        "arguments": OBJECT,
        "expectation": {"enum": Expectation.values},
        "expected": {},
    },
)
TOOL = closed(
    ["name", "code"],
    {each.key: each.schema for each in spec.FIELDS}
    | {
        "testCases": {"type": "array", "maxItems": MOST_CASES, "items": CASE},
        "definitionHash": {"type": "string", "pattern": r"\A[0-9a-f]{64}\Z"},
    },
)
FRAME = closed(
    ["format", "version", "tools"],
    {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "exportedAt": {"type": "string", "maxLength": 64},
        "tools": {"type": "array", "minItems": 1, "maxItems": MOST_TOOLS},
    },
)
FRAME_SHAPE, TOOL_SHAPE = Draft202012Validator(FRAME), Draft202012Validator(TOOL)
MOST_PROBLEMS = 100
LONGEST = 300
_WORDS = {"string": "a text", "object": "an object", "array": "a list", "integer": "a whole number"}
_WORDS |= {"boolean": "true or false", "null": "null"}

Path = list[str | int]


@dataclass(frozen=True)
class Problem:
    """`place` is like `tools[3].code`; empty where it is the file as a whole."""

    place: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.place}: {self.sentence}" if self.place else self.sentence


@dataclass(frozen=True)
class Entry:
    """One tool of a file: a sound draft, at `place`. `cases` None: the file does not mention them."""

    place: str
    draft: Draft
    cases: tuple[Case, ...] | None = None
    definition_hash: str = ""


class BadFile(ValueError):
    """The file cannot be imported, for these reasons; nothing was written."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        found = [Problem(cut(each.place), cut(each.sentence)) for each in problems]
        self.problems = found[:MOST_PROBLEMS]
        self.more = len(found) - len(self.problems)
        more = [translatable(f"And {self.more:,} more problems.")] if self.more else []
        super().__init__("\n".join([*map(str, self.problems), *more]))


class TooMuch(Refusal, ValueError):
    """The file would be larger than any import accepts."""

    status = 422


def cut(text: str) -> str:
    """Return a stranger's text, cut to a bearable length."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def dotted(path: Iterable[str | int]) -> str:
    """`tools[3].variables[0].name`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def misshapen(shape: Draft202012Validator, value: Any, path: Path) -> Iterator[Problem]:
    """Yield everything about `value`, which is at `path`, that `shape` does not allow."""
    for error in shape.iter_errors(value):
        place: Path = [*path, *error.absolute_path]
        match error.validator:
            case "additionalProperties":
                schema: Any = error.schema
                for key in sorted({*error.instance} - {*schema["properties"]}):
                    yield Problem(dotted([*place, cut(key)]), "Unknown.")
            case "required":
                # There is one error for each missing key, all alike but for their message.
                keys: Any = error.validator_value
                missing = next(key for key in keys if error.message.startswith(repr(key)))
                yield Problem(dotted([*place, missing]), "It is missing.")
            case _:
                yield Problem(dotted(place), _sentence(error))


def read(content: bytes | str) -> list[Entry]:
    """Return the tools of a file, which is UTF-8. Raises: BadFile"""
    size = len(content.encode("utf-8", "surrogatepass")) if isinstance(content, str) else len(content)
    if size > MOST_BYTES:
        sentence = translatable(
            f"The file is larger than {in_words(MOST_BYTES)}, the most that is accepted. Export fewer tools."
        )
        raise BadFile([Problem("", sentence)])
    try:
        text = content.decode() if isinstance(content, bytes) else content
        # Editors on Windows put a byte order mark in front, which JSON has no place for.
        value = canonical.loads(text.removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        raise BadFile([Problem("", "The file is not JSON: not UTF-8 text.")]) from error
    except canonical.NotJson as error:
        raise BadFile([Problem("", f"The file is not JSON: {error}.")]) from error
    return read_document(value)


def read_document(value: Any) -> list[Entry]:
    """Return the tools of a file that was parsed already, strictly. Raises: BadFile"""
    if isinstance(value, dict) and value.get("format") != FORMAT:
        sentence = f'Expected "{FORMAT}": this is not a file of tools that hitlchat wrote.'
        raise BadFile([Problem("format", sentence)])
    if isinstance(value, dict) and (type(value.get("version")) is not int or value["version"] != VERSION):
        raise BadFile([Problem("version", f"Expected {VERSION}: this file is from another version of hitlchat.")])
    if problems := [*misshapen(FRAME_SHAPE, value, [])]:
        raise BadFile(problems)
    problems = [*_unstorable(value, [])] or [
        problem for at, raw in enumerate(value["tools"]) for problem in _tool_problems(raw, ["tools", at])
    ]
    problems += _repeated(value["tools"])
    if problems:
        raise BadFile(problems)
    return [_entry(raw, dotted(["tools", at])) for at, raw in enumerate(value["tools"])]


def at_fields(place: str, error: AuthoringError) -> Iterator[Problem]:
    """Yield the problems of a draft, by the names of its fields in the file."""
    for name, sentence in error.errors.items():
        yield Problem(f"{place}.{spec.KEYS.get(name, name)}", sentence)


def document(tools: Iterable[Tool]) -> dict[str, Any]:
    """Return a file of authored tools with their test cases, but no secrets, stored data or publication.

    Raises: TooMuch
    """
    chosen = list(tools)
    if len(chosen) > MOST_TOOLS:
        raise TooMuch(f"At most {MOST_TOOLS} tools go into one file, not {len(chosen):,}. Choose fewer.")
    exported = [
        spec.as_json(spec.draft_of(each))
        | {"testCases": [asdict(cases.of(row)) for row in cases.rows(each)], "definitionHash": each.definition_hash}
        for each in chosen
    ]
    now = timezone.now().isoformat(timespec="seconds")
    return {"format": FORMAT, "version": VERSION, "exportedAt": now, "tools": exported}


def text(tools: Iterable[Tool]) -> str:
    """Return the text of a file with these tools. Raises: TooMuch"""
    written = canonical.pretty(document(tools), indent=2) + "\n"
    if len(written.encode()) > MOST_BYTES:
        raise TooMuch(f"The file would be larger than {in_words(MOST_BYTES)}, the most that an import accepts.")
    return written


def _sentence(error: ValidationError) -> str:
    bound: Any = error.validator_value
    found: Any = error.instance
    match error.validator:
        case "type":
            types = [bound] if isinstance(bound, str) else bound
            return f"Expected {' or '.join(_WORDS[each] for each in types)}."
        case "enum":
            return translatable(f"Expected one of {', '.join(map(canonical.pretty, bound))}.")
        case "minItems" | "minLength":
            return "It is empty."
        case "maxItems" | "maxLength":
            return translatable(f"At most {bound}, not {len(found):,}.")
        case "pattern":
            return "Expected 64 hexadecimal digits."
        case _:
            return error.message


def _tool_problems(raw: Any, path: Path) -> Iterator[Problem]:
    if shape := [*misshapen(TOOL_SHAPE, raw, path)]:
        yield from shape
        return
    yield from _plain_secrets(raw, path)
    entry = _entry(raw, dotted(path))
    try:
        sound = spec.check(entry.draft)
        if wrong := policy.misread_condition(sound.draft.condition, sound.signature.input_schema):
            yield Problem(dotted([*path, "condition"]), wrong)
    except AuthoringError as error:
        yield from at_fields(entry.place, error)
    names = [case.name for case in entry.cases or ()]
    for at, case in enumerate(entry.cases or ()):
        place = dotted([*path, "testCases", at])
        if case.name in names[:at]:
            yield Problem(f"{place}.name", f"There is already a test named {case.name!r}.")
        for name, sentence in cases.problems(case).items():
            yield Problem(f"{place}.{name}", sentence)


def _plain_secrets(raw: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    for at, variable in enumerate(raw.get("variables", ())):
        value = variable.get("value")
        if variable.get("secret") and value and not REFERENCE.fullmatch(value):
            place = dotted([*path, "variables", at, "value"])
            yield Problem(place, "A file must not contain secrets: use null, or name the environment as ${NAME}.")


def _entry(raw: Mapping[str, Any], place: str) -> Entry:
    found = tuple(Case(**each) for each in raw.get("testCases", ()))
    return Entry(place, spec.given(raw), found if "testCases" in raw else None, raw.get("definitionHash", ""))


def _repeated(tools: list[Any]) -> list[Problem]:
    names = [raw.get("name") if isinstance(raw, dict) else None for raw in tools]
    first = {name: names.index(name) for name in names if isinstance(name, str)}
    return [
        Problem(f"tools[{at}].name", f"tools[{first[name]}] is named {cut(name)!r} too: each name may occur only once.")
        for at, name in enumerate(names)
        if isinstance(name, str) and first[name] != at
    ]


def _unstorable(value: Any, path: Path) -> Iterator[Problem]:
    if isinstance(value, str) and storable(value) != value:
        yield Problem(dotted(path), "Contains a character that cannot be stored, such as U+0000.")
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from _unstorable(part, [*path, at])
    elif isinstance(value, dict):
        for key, part in value.items():
            if storable(key) != key:
                yield Problem(dotted(path), "A key contains a character that cannot be stored, such as U+0000.")
            yield from _unstorable(part, [*path, key])
