"""Whatever command the documentation or the program itself names exists, with the options that it is given."""

import argparse
import re
from functools import cache
from typing import Final

from django.core.management import CommandError, get_commands, load_command_class

from tests.architecture.source import program_files, read, text_files
from tests.documentation.blocks import MANAGE, PLACEHOLDER, arguments, blocks, mentions

UUID: Final = "01a203eb-7127-7524-8fb0-b6c0cbd25399"
# What stands for a value in examples; others stand for themselves.
VALUES: Final = {"call": UUID, "approval": UUID}
# Of model servers, Docker and chaos.
FOREIGN: Final = (
    *("--jinja", "--enable-auto-tool-choice", "--build-arg", "--security-opt", "--tmpfs", "--env-file"),
    *("--stop-timeout", "--init"),
)
OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@cache
def parser(name: str) -> argparse.ArgumentParser:
    return load_command_class(get_commands()[name], name).create_parser("manage.py", name)


def test_each_command_in_a_block_is_understood_by_its_own_parser() -> None:
    wrong, count = [], 0
    for block in blocks():
        for command in block.commands:
            filled = PLACEHOLDER.sub(lambda found: VALUES.get(found[1], "name"), command)
            for name, *words in arguments(filled):
                count += 1
                try:
                    parser(name).parse_args(words)
                except (KeyError, CommandError, SystemExit) as error:
                    wrong.append(f"{block}: {name} {words}: {error}")
    assert not wrong
    assert count > 40


def test_each_command_and_option_in_a_sentence_exists() -> None:
    wrong = [f"{page}: {code}: {fault}" for page, code in mentions() if (fault := mistake(code))]
    assert not wrong


def test_each_command_that_the_program_or_a_recipe_names_exists() -> None:
    recipes = [path for path in text_files() if path.startswith(("templates/", "deploy/"))]
    for path in (*program_files(), *recipes, "Dockerfile", "compose.yaml"):
        # “manage.py with …” is a sentence.
        for name, action in re.findall(r"manage\.py (?!with\b)([a-z_]+)(?: ([a-z]+))?", read(path)):
            assert name in get_commands(), path
            actions = actions_of(parser(name))
            assert not action or not actions or action in actions, (path, name, action)


def test_each_target_of_make_exists() -> None:
    targets = {*re.findall(r"^([a-z-]+):.*## ", read("Makefile"), re.MULTILINE)}
    named = {name for _, code in mentions() for name in re.findall(r"\bmake ([a-z-]+)", code)}
    for block in blocks():
        named |= {name for command in block.commands for name in re.findall(r"\bmake ([a-z-]+)", command)}
    assert named - targets == {"caddy"}


def test_what_is_given_to_make_exists() -> None:
    codes = [*(code for _, code in mentions()), *(command for block in blocks() for command in block.commands)]
    given = [found for code in codes if (found := re.search(r'\bmake ([a-z]+) ARGS="?([^"]*)', code))]
    assert len(given) > 3
    for name, words in (found.groups() for found in given):
        program = read(f"{name}/__main__.py") + read("bench/parts.py")
        for word in words.split():
            assert f'"{word}"' in program or word.isdecimal(), (name, word)


def mistake(code: str) -> str:
    """Return what is wrong with code in a sentence, which may leave out arguments, and brackets what is optional."""
    plain = re.sub(r"[\[\]…]", " ", code)
    found = MANAGE.search(plain)
    words = (found[1] if found else plain).split()
    if words and words[0] in OURS and len(words) > 1:
        return unknown(words)
    if found:
        return unknown(words) if words[0] in get_commands() else f"no command {words[0]}"
    if code.startswith("--"):
        return "".join(f"no option {each}" for each in OPTION.findall(code) if each not in every_option())
    return ""


def unknown(words: list[str]) -> str:
    """Return what the parser of a command does not know of its words."""
    here = parser(words[0])
    for word in words[1:]:
        actions = actions_of(here)
        if word.startswith("--") and word not in here._option_string_actions:
            return f"no option {word}"
        if actions and not word.startswith("--"):
            names = word.split("|")
            if missing := {*names} - {*actions}:
                # The value of an option before the action.
                if word.isidentifier() and words[words.index(word) - 1].startswith("--"):
                    continue
                return f"no action {missing}"
            here = actions[names[0]]
    return ""


def actions_of(here: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = [each for each in here._actions if isinstance(each, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


@cache
def every_option() -> frozenset[str]:
    found = {*FOREIGN}
    for name in OURS:
        for each in (parser(name), *actions_of(parser(name)).values()):
            found |= each._option_string_actions.keys()
    return frozenset(found)


OURS: Final = frozenset(name for name, app in get_commands().items() if app == "hitlchat")
