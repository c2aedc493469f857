"""Collects the texts of pages into locale/, keeps their translations, and compiles these (`make messages`).

With `--list` it only prints them for reading, and those of the console, of logs and for programs (`make texts`).

Texts of Python and of scripts are found by Babel, those of templates in what Django's `templatize` makes of them.
Labels and help of forms, labels of choices, plain messages and the sentences of problems need no mark: templates draw
them with `|translated`. An f-string among these, or within `translatable(…)`, becomes a template with a name for each
value (`base.sentences`).
The catalogue of a language is `locale/<language>/LC_MESSAGES/django.po`, to be edited by hand; from it come `django.mo`
for the server and `static/hitlchat/js/texts.<language>.js` for scripts, both committed: servers have no compiler.
"""

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Final

from babel.messages import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT: Final = Path(__file__).parent.parent
LANGUAGES: Final = ("de",)
SCRIPTS: Final = "static/hitlchat/js"
GALLERY: Final = "hitlchat/upstreams/gallery"
PYTHON: Final = ("hitlchat", "tools_studio")
# Besides those that gettext knows: Django's, and those of scripts.
KEYWORDS: Final = DEFAULT_KEYWORDS | {
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
    "_n": (1, 2),
}
MARK: Final = re.compile(rf"\b({'|'.join(KEYWORDS)})\(")
ALWAYS: Final = datetime(2026, 1, 1, tzinfo=UTC)
FORM_TEXTS: Final = ("label", "help_text", "empty_label")
# What is shown as it was made, by where its sentences begin among its arguments.
SHOWN: Final = {
    "Starter": 1,
    "Signal": 1,
    "Floor": 2,
    "Outcome": 1,
    "Objection": 1,
    "Match": 2,
    "Finding": 1,
    "Fault": 1,
    **dict.fromkeys(("Allow", "Ask", "Refuse", "Unusable", "translatable"), 0),
    # Of the record, whose other errors stand in logs alone.
    **dict.fromkeys(("NothingThere", "BadKey", "OtherKey", "BadMark"), 0),
}
# Exceptions whose sentence a page shows; of a `Problem` always.
ERRORS: Final = {
    **dict.fromkeys(
        ("Problem", "Refused", "Stale", "SignatureError", "NotPossible", "BadArguments", "BadReason", "BadRemark"), 0
    ),
    **dict.fromkeys(("BadValue", "BadTemplate", "BadFrame", "BadExposure", "ModelTrouble", "TooMany"), 0),
    **dict.fromkeys(("_refuse", "_unsupported"), 1),
}
# Packages whose errors programs read, or who starts the server.
FOR_PROGRAMS: Final = ("api", "client", "sandbox", "console", "project_tools", "record")
# Of the sandbox, which loads little: problems of code, and functions that return a sentence.
OF_SANDBOX: Final = {"Problem": 2}
RETURNED: Final = ("not_granted", "refused", "over_cpu", "over_memory", "over_calls", "_limit", "_in_preview")
# Advice to authors, behind what the interpreter says; and warnings.
ADVICE: Final = ("INSTEAD", "HINTS", "USE_FETCH", "USE_FILES")
WARNINGS: Final = ("SURPRISES",)
# What says something: two letters side by side.
WORDS: Final = re.compile(r"[^\W\d_]{2}")
# Of what is translated nowhere: several words, and not those of SQL or of a style.
SENTENCE: Final = re.compile(r"^[^\W\d_]\S*[ ,:]+\S*[^\W\d_]{2}")
# Of templates, as `base.sentences` looks for them.
CONTEXT: Final = "sentence"
PART: Final = "part of a sentence"
PARTS: Final = ("part", "WrongLine")
LITERAL: Final = r"""u?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
# What `templatize` writes for each text of a template, among letters that hold the place of everything else.
MARKED: Final = re.compile(rf"(?<!\w)(n?p?gettext|_)\((({LITERAL})(?:, *{LITERAL})*)")


Found = tuple[str, str | tuple[str, str], str | None]


def texts() -> Catalog:
    """Return every text of the program, with where it is."""
    catalog = Catalog()
    for path, text, context in sorted([*_of_python(), *_of_scripts(), *_of_templates(), *_of_gallery()], key=str):
        catalog.add(text, locations=[(path, 0)], context=context)
    return catalog


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file, which whoever else asks for has not to make again."""
    return ast.parse(path.read_bytes(), filename=str(path))


def has_mark(path: Path) -> bool:
    """Return whether a file of Python has a text that is marked: to read its tokens takes longer than to look."""
    return bool(MARK.search(path.read_text(encoding="utf-8")))


def _of_python() -> Iterator[Found]:
    trees = {path: tree(path) for path in sources()}
    errors = ERRORS | dict.fromkeys(_derived(trees.values()), 0)
    for path, module in trees.items():
        if has_mark(path):
            yield from _by_babel("python", path)
        more = OF_SANDBOX if path.parent.name == "sandbox" else {} if path.parent.name in FOR_PROGRAMS else errors
        for text, context in _drawn(module, SHOWN | more):
            yield path.relative_to(ROOT).as_posix(), text, context


def sources() -> list[Path]:
    """Return the files of Python whose texts are shown on pages."""
    found = (path for folder in PYTHON for path in sorted((ROOT / folder).rglob("*.py")))
    return [path for path in found if path.parts[-4:-2] != ("library", "tools") and "migrations" not in path.parts]


def _derived(trees: Iterable[ast.Module]) -> set[str]:
    """Return the names of the kinds of errors that are shown."""
    classes = [node for module in trees for node in module.body if isinstance(node, ast.ClassDef)]
    known, before = {*ERRORS}, 0
    while len(known) > before:
        before = len(known)
        known |= {each.name for each in classes if known & {ast.unparse(base).split(".")[-1] for base in each.bases}}
    return known


def _drawn(module: ast.Module, kinds: Mapping[str, int]) -> Iterator[tuple[str, str | None]]:
    """Yield what needs no mark, since templates translate it as they draw it: of forms, choices and messages,
    and of the kinds that are shown.
    """
    for node in ast.walk(module):
        yield from _marked(node)
        for told in [*_told(node, kinds), *_returned(node)]:
            for text in _branches(told):
                match text:
                    case ast.Constant(value=str(said)) if WORDS.search(said):
                        yield said, None
                    case ast.JoinedStr(values=parts) if any(says(part) for part in parts):
                        yield template(text), CONTEXT


def _marked(node: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Yield what has a context of its own."""
    match node:
        case ast.Call(func=ast.Name(id="said_elsewhere"), args=texts):
            whole = [each for each in texts if "{" not in ast.unparse(each)]
            yield from _in_context(whole, None)
            yield from _in_context([each for each in texts if each not in whole], CONTEXT)
        case ast.Call(func=ast.Name(id=name), args=[text]) if name in PARTS:
            yield from _in_context(_branches(text), PART)
        case ast.Assign(targets=[ast.Name(id=name)], value=text) if name in ADVICE:
            yield from _in_context(_last(text), PART)
        case ast.Assign(targets=[ast.Name(id=name)], value=text) if name in WARNINGS:
            yield from _in_context(_last(text), None)


def _in_context(texts: Iterable[ast.expr], context: str | None) -> Iterator[tuple[str, str | None]]:
    for text in texts:
        match text:
            case ast.Constant(value=str(said)):
                yield said, context
            case ast.JoinedStr():
                yield template(text), context


def _last(text: ast.expr) -> list[ast.expr]:
    """Return the texts of a table: its values, or the last of each line."""
    match text:
        case ast.Dict(values=values):
            return values
        case ast.Tuple(elts=lines) | ast.List(elts=lines):
            return [line.elts[-1] for line in lines if isinstance(line, ast.Tuple)]
        case _:
            return [text]


def _branches(text: ast.expr) -> list[ast.expr]:
    """Return the texts that an expression chooses from."""
    match text:
        case ast.IfExp():
            return [*_branches(text.body), *_branches(text.orelse)]
        case ast.Dict():
            return [each for value in text.values for each in _branches(value)]
        case _:
            return [text]


def says(part: ast.expr) -> bool:
    """Return whether a part of an f-string has a word beside a space."""
    return isinstance(part, ast.Constant) and bool(re.search(r"[^\W\d_]{2,} | [^\W\d_]{2,}", str(part.value)))


def template(text: ast.JoinedStr) -> str:
    """Return an f-string as a template, each value by a name of its own."""
    parts: list[str] = []
    names: list[str] = []
    for part in text.values:
        match part:
            case ast.Constant(value=str(said)):
                parts.append(said.replace("{", "{{").replace("}", "}}"))
            case ast.FormattedValue():
                names.append(_name(part.value))
                many = names.count(names[-1])
                parts.append(f"{{{names[-1]}{many if many > 1 else ''}}}")
    return "".join(parts)


def _name(value: ast.expr) -> str:
    """Return the last name that stands in an expression itself, not in its arguments: `size` of `self.size`."""
    match value:
        case ast.Call(func=ast.Name(id="listed")):
            return "listed"
        case (
            ast.Call(func=ast.Attribute(value=ast.Constant()), args=[of, *_]) | ast.Call(func=ast.Name(), args=[of, *_])
        ):
            return _name(of)
        case ast.Call(func=ast.Attribute(value=of)) | ast.Subscript(value=of):
            return _name(of)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name.lower().strip("_")
        case _:
            return "value"


def _told(node: ast.AST, kinds: Mapping[str, int]) -> list[ast.expr]:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="messages")), args=[_, text]):
            return [text]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="forms"), attr="ValidationError")):
            return node.args[:1]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="forms"))) | ast.Call(func=ast.Name(id="_one_of")):
            return [each.value for each in node.keywords if each.arg in FORM_TEXTS]
        case ast.Call(func=ast.Name(id="_switch" | "_lines" | "_limit")):
            return node.args[:2]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in kinds:
            given = [*node.args[kinds[name] :], *(each.value for each in node.keywords)]
            return [each for each in given if not isinstance(each, ast.Constant) or " " in str(each.value).strip()]
        case ast.ClassDef(name=name) if name in kinds:
            return [text for each in node.body for text in _said_by_itself(each)]
        case ast.ClassDef(bases=[ast.Attribute(attr="TextChoices") | ast.Name(id="TextChoices")]):
            values = [each.value for each in node.body if isinstance(each, ast.Assign)]
            return [each.elts[1] for each in values if isinstance(each, ast.Tuple)]
        case _:
            return []


def _returned(node: ast.AST) -> list[ast.expr]:
    if not isinstance(node, ast.FunctionDef) or node.name not in RETURNED:
        return []
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None]


def _said_by_itself(method: ast.stmt) -> list[ast.expr]:
    """Return what a problem calls `super().__init__` with."""
    calls = [each for each in ast.walk(method) if isinstance(each, ast.Call)]
    return [text for each in calls if ast.unparse(each.func) == "super().__init__" for text in each.args]


def _of_scripts() -> Iterator[Found]:
    for path in sorted((ROOT / SCRIPTS).glob("*.js")):
        if not path.name.startswith("texts."):
            yield from _by_babel("javascript", path)


def _by_babel(method: str, path: Path) -> Iterator[Found]:
    with path.open("rb") as source:
        for _, text, _, context in extract(method, source, KEYWORDS):
            yield path.relative_to(ROOT).as_posix(), text if isinstance(text, str) else (text[0], text[1]), context


def _of_templates() -> Iterator[Found]:
    for path in sorted((ROOT / "templates").rglob("*.html")):
        name = path.relative_to(ROOT).as_posix()
        for kind, arguments, _ in MARKED.findall(templatize(path.read_text(encoding="utf-8"), name)):
            strings = [str(ast.literal_eval(each)) for each in re.findall(LITERAL, arguments)]
            context = strings.pop(0) if "p" in kind else None
            # As Django looks them up: a literal percent sign is doubled in both.
            yield name, (strings[0], strings[1]) if kind.startswith("n") else strings[0], context


def _of_gallery() -> Iterator[Found]:
    """Yield what the gallery of servers says of each."""
    launchers = json.loads((ROOT / GALLERY / "words.json").read_bytes())["launchers"]
    yield from ((f"{GALLERY}/words.json", text, None) for text in launchers.values())
    for name in (f"{GALLERY}/local.json", f"{GALLERY}/remote.json"):
        for entry in json.loads((ROOT / name).read_bytes()):
            said = (entry["summary"], entry["privileges"], entry["category"], *entry.get("setup", ()))
            yield from ((name, text, None) for text in said)
            yield from ((name, tag, PART) for tag in entry["tags"])


def _of_console() -> Iterator[tuple[str, str]]:
    """Yield what commands, logs, models and clients say, which is translated nowhere."""
    for path in sources():
        module = tree(path)
        no_text = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
        inner = {id(part) for node in ast.walk(module) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(module):
            match node:
                case ast.Constant(value=str(said)) if id(node) not in no_text | inner and SENTENCE.search(said):
                    yield path.relative_to(ROOT).as_posix(), said
                case ast.JoinedStr(values=parts) if any(says(part) for part in parts):
                    yield path.relative_to(ROOT).as_posix(), template(node)


def listing(found: Catalog, part: str) -> Iterator[str]:
    """Yield the lines to read, file by file: each text once, where it stands first. `part`: of the files' paths."""
    texts = [
        (place, each) for message in found if message.id for place, _ in message.locations for each in _both(message)
    ]
    known, before = set[str](), ""
    for place, text in sorted({*texts, *_of_console()}, key=lambda each: (each[0].startswith(PYTHON), *each)):
        if part not in place or text in known:
            continue
        known.add(text)
        if place != before:
            yield f"\n{place}\n"
            before = place
        yield f"  {text}\n"


def _both(message: Message) -> tuple[str, ...]:
    return (message.id,) if isinstance(message.id, str) else tuple(message.id)


def po_path(language: str) -> Path:
    return ROOT / "locale" / language / "LC_MESSAGES" / "django.po"


def mo_path(language: str) -> Path:
    return po_path(language).with_suffix(".mo")


def script_path(language: str) -> Path:
    return ROOT / SCRIPTS / f"texts.{language}.js"


def stored(language: str) -> Catalog:
    """Return the catalogue as it is in the repository."""
    with po_path(language).open("rb") as source:
        catalog = read_po(source, locale=language)
    # Else the compiled one would change with the clock.
    catalog.creation_date = catalog.revision_date = ALWAYS
    return catalog


def merged(language: str, found: Catalog) -> Catalog:
    """Return the catalogue with these texts of the program, and the translations that fit them."""
    catalog = stored(language)
    catalog.update(found, no_fuzzy_matching=True, update_creation_date=False)
    catalog.obsolete.clear()
    return catalog


def as_po(catalog: Catalog, before: bytes) -> bytes:
    """Return the catalogue as text, under the head that it has: Babel would wrap its table of words."""
    out = BytesIO()
    write_po(out, catalog, width=120, include_lineno=False, sort_output=True, omit_header=True)
    return before.split(b"\n\n")[0] + b"\n\n" + out.getvalue()


def as_mo(catalog: Catalog) -> bytes:
    out = BytesIO()
    write_mo(out, catalog)
    return out.getvalue()


def as_script(catalog: Catalog) -> bytes:
    """Return the module that tells scripts their texts."""
    of_scripts = [each for each in catalog if each.string and any(p.startswith(SCRIPTS) for p, _ in each.locations)]
    known = {_key(each): each.string for each in sorted(of_scripts, key=_key)}
    told = json.dumps(known, ensure_ascii=False, indent=2)
    return f'// Written by tools/messages.py.\nimport {{ learn }} from "./texts.js";\n\nlearn({told});\n'.encode()


def _key(message: Message) -> str:
    return message.id if isinstance(message.id, str) else message.id[0]


def missing(catalog: Catalog) -> list[str]:
    """Return the texts that have no translation, or not in each of their forms."""
    return [_key(each) for each in catalog if each.id and not all(forms(each))]


def forms(message: Message) -> tuple[str, ...]:
    """Return the translation, in each form that the language has for numbers."""
    string = message.string or ""
    return (string,) if isinstance(string, str) else tuple(string)


def main(arguments: Sequence[str] = sys.argv[1:]) -> int:
    found = texts()
    if "--list" in arguments:
        sys.stdout.writelines(listing(found, "".join(arguments[1:])))
        return 0
    for language in LANGUAGES:
        catalog = merged(language, found)
        po_path(language).write_bytes(as_po(catalog, po_path(language).read_bytes()))
        mo_path(language).write_bytes(as_mo(catalog))
        script_path(language).write_bytes(as_script(catalog))
        left = missing(catalog)
        sys.stdout.write(f"{language}: {len(catalog)} texts, {len(left)} without a translation\n")
        sys.stdout.writelines(f"  {text}\n" for text in left)
    return 0


if __name__ == "__main__":
    sys.exit(main())
