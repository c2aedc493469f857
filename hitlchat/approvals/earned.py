"""The page of the earned rules: what the record proposes, what is in force, and how the others ended."""

import ast
import re
from typing import Any, Final

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from hitlchat.accounts.access import administrators_only
from hitlchat.base import canonical
from hitlchat.gate import earned, lab
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.models import Grant, ToolCall

# Of the noes to calls of a tool.
MOST_CALLS: Final = 20
_ARGUMENT: Final = r"args\[(?P<name>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\]"
_NUMBER: Final = r"-?\d[\d.e+-]*"
# Each test of a condition as the record proposes it, and what it says. An identifier takes three.
_TESTS: Final = (
    (r"sorted\(args\) == (?P<names>\[.*\])", gettext_noop("the arguments are {names} and no others")),
    (rf"(?P<low>{_NUMBER}) <= {_ARGUMENT} <= (?P<high>{_NUMBER})", gettext_noop("{name} is from {low} to {high}")),
    # To Python, true and false are 1 and 0: no number is one of them, and what is no text is compared as it is written.
    (rf"not isinstance\({_ARGUMENT}, bool\)", gettext_noop("{name} is neither true nor false")),
    (rf"repr\({_ARGUMENT}\) == (?P<text>.+)", gettext_noop("{name} is {text}")),
    (rf"repr\({_ARGUMENT}\) in (?P<texts>\[.+\])", gettext_noop("{name} is one of {texts}")),
    (rf"{_ARGUMENT} == (?P<value>.+)", gettext_noop("{name} is {value}")),
    (rf"{_ARGUMENT} in (?P<values>\[.+\])", gettext_noop("{name} is one of {values}")),
    (
        rf"len\({_ARGUMENT}\) <= (?P<most>\d+)",
        gettext_noop("{name} is at most {most} characters long: letters, digits, - and _"),
    ),
    (rf"{_ARGUMENT}\.isascii\(\)", ""),
    (rf"{_ARGUMENT}\.replace\('-', ''\)\.replace\('_', ''\)\.isalnum\(\)", ""),
    (r"not args_from_outside", gettext_noop("no value comes from outside")),
)


@administrators_only("Only administrators see what rules the record proposes.").reads
def page(request: HttpRequest) -> HttpResponse:
    rules = giving.earned()
    context = {
        "section": "policies",
        "proposals": [_proposal(each) for each in earned.proposals()],
        "active": _rows(giving.active(rules), is_active=True),
        "ended": _rows(giving.ended(rules)[: giving.MOST_ENDED], is_active=False),
    }
    return render(request, "policies/earned.html", context)


def evidence(found: earned.Evidence) -> dict[str, Any]:
    """Return the context of `policies/_evidence.html`."""
    ids = [*found.against, *found.other_noes][:MOST_CALLS]
    noes = ToolCall.objects.filter(pk__in=ids).select_related("approval", "caller").order_by("-created_at", "-id")
    return {"evidence": found, "noes": noes}


def in_words(condition: str) -> list[str]:
    """Return what each test of a proposed condition says; nothing for any other, which its code alone tells."""
    try:
        tree = ast.parse(condition.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    found: list[str] = []
    of_ids: dict[str, set[str]] = {}
    for part in parts:
        code = ast.unparse(part)
        match, test, words = next(
            ((hit, test, words) for test, words in _TESTS if (hit := re.fullmatch(test, code))), (None, "", "")
        )
        if match is None or (values := _values(match.groupdict())) is None:
            return []
        if words:
            found.append(gettext(words).format(**values))
        if "most" in values or not words:
            of_ids.setdefault(values["name"], set()).add(test)
    # An identifier is one only by all three tests.
    return found if all(len(tests) == 3 for tests in of_ids.values()) else []


def _values(groups: dict[str, str]) -> dict[str, str] | None:
    """Return the values of a test as they are shown; None if one is no plain value."""
    try:
        read = {name: ast.literal_eval(code) for name, code in groups.items()}
        shown = {}
        for name, value in read.items():
            parts = value if name in ("names", "values", "texts") else [value]
            if name in ("text", "texts"):
                parts = [ast.literal_eval(str(each)) for each in parts]
            is_name = name in ("name", "names")
            shown[name] = ", ".join(str(each) if is_name else canonical.dumps(each) for each in parts)
    except (SyntaxError, ValueError, TypeError):
        return None
    return shown


def _proposal(found: earned.Proposal) -> dict[str, Any]:
    name = gettext("{tool}, earned {day}").format(tool=found.tool.name, day=timezone.localdate().isoformat())
    facts = {"tool": found.tool, "rule": found.rule, "name": name[: lab.LONGEST["name"]]}
    facts["words"] = in_words(found.rule.condition)
    return facts | {"draft": canonical.dumps(found.draft), **evidence(found.evidence)}


def _rows(rules: QuerySet[Grant], *, is_active: bool) -> list[dict[str, Any]]:
    return [
        {
            "rule": each,
            "words": in_words(each.condition),
            "used": scope.used(each, gettext),
            "state": giving.STATES[giving.state(each, is_active=is_active)],
        }
        for each in rules
    ]
