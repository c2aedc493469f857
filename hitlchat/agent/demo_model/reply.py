"""The demo model's answer: a text, the calls that the person's words ask for, or the truth about its calls.

Results are Markdown in which values do nothing.
"""

import json
import re
from collections.abc import Mapping
from itertools import cycle, islice
from typing import Any, Final

from hitlchat.agent import second, titles, why
from hitlchat.agent.demo_model.sentences import Call, Prompt, Tool, calls_in, offered
from hitlchat.gate import prompt

Message = dict[str, Any]
NOTE = "[Note from hitlchat]"
ATTACHMENT = re.compile(r"^\[Attachment [0-9a-f]{8}: ", re.MULTILINE)
LONGEST_RESULT = 200_000
MOST_SHOWN, MOST_SUGGESTED = 8, 4
MOST_WORDS, DEFAULT_WORDS, IN_PARAGRAPH = 20_000, 200, 60
NOTHING = "I found no tool for that."
UNREAD = "Your files have arrived, but I am only a few rules and cannot read them. A real model gets their content."
NO_CALL = "All right, I call nothing."
_HELP = re.compile(r"(?:help|hi|hello|hey)\b[\s!.?]*$|what can (?:you|i) do\b|who are you\b", re.IGNORECASE)
_NO = re.compile(
    r"(?:no|nothing|never\s*mind|stop|cancel(?=[\s!.]*$| (?:it|that|this)\b)|forget it|do not|don['\u2019]t|never)\b",
    re.IGNORECASE,
)
_WORDS = re.compile(
    r"(?:write|stream|tell me)\b[^\d]{0,40}(?:(\d{1,6})\s+words?|a (?:long )?(?:story|text))\b", re.IGNORECASE
)
_POLITE = re.compile(
    r"(?:please|kindly|(?:can|could|would|will) you(?: please)?|i(?: want| would like|['\u2019]d like) to)\s+",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?;:](?=\s)|\n")
WORDS_IN_TITLE, FEWEST_WORDS, UNTITLED, _TITLE_ENDS = 7, 3, "A conversation", " .!?,;:"
_LEADING_ON: Final = frozenset(
    ["a", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"]
)
_PAIRS: Final = ("()", "[]", "{}", "“”", '""')
_FILLER: Final = """
    The quiet gardener follows the long road to the sea before the rain begins. A patient editor reads every page of
    the book, and takes all the time it needs. The night train crosses the river while the city is still asleep.
"""
_SAMPLES = {"integer": "3", "number": "10", "boolean": "true", "array": "[]", "object": "{}", "null": "null"}
LONGEST_CELL = 200
LONGEST_BLOCK = 4000
MOST_ROWS, MOST_COLUMNS = 20, 8
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&!#$])|(?<=\w)(:)(?=//)|(?<=\bwww)(\.)|(@)")
_SENTENCES = {
    "declined": "You declined {name}, so it was not run.",
    "answered": "{name} was not run: you answered in its place.",
    "expired": "Nobody answered in time whether {name} may run, so it was not run.",
    "withdrawn": "{name} was withdrawn before it started, so it was not run.",
    "refused": "A policy refused {name}, so it was not run.",
    "rejected": "{name} was rejected, so it was not run.",
    "failed": "{name} failed.",
    "unknown": "The outcome of {name} is unknown: it may or may not have happened. I will not repeat it.",
    "executing": "{name} has not come back yet: its outcome is not known. I will not repeat it.",
    "unanswered": "There is no result of {name}: I do not know whether it ran.",
}
# Of what failed, whether it had run by then, where that is known.
_FAILED = {True: "{name} was run and failed.", False: "{name} was not run."}
_EMPTY: dict[type, str] = {list: "an empty list", dict: "an empty object"}
_LEADS = {
    "reason_given_by_the_user": "Your reason",
    "instruction_given_by_the_user": "Instead",
    "answer_given_by_a_person": "Your answer",
    "reason": "Reason",
    "error": "Reason",
}


def reply(request: dict[str, Any], prompts: Mapping[str, Prompt]) -> str | list[Call]:
    """Return the answer to a Chat Completions request body.

    `prompts`: the approval prompt of each tool that has one, with its example. The same request has the same answer.
    Once calls have come back for the person's last message it answers with text, so a conversation always ends.
    """
    messages = _dicts(request.get("messages"))
    if len(messages) == 2 and (first := titles.asked_about(*map(_text_of, messages))) is not None:
        return _title(first)
    if len(messages) == 2 and (about := why.asked_about(*map(_text_of, messages))) is not None:
        return _reasons(about)
    if len(messages) == 2 and (opinion := second.asked_about(*map(_text_of, messages))) is not None:
        return opinion
    users = [at for at, message in enumerate(messages) if message.get("role") == "user"]
    last = next((at for at in reversed(users) if not _text_of(messages[at]).startswith(NOTE)), -1)
    if came := _came_back(messages[last + 1 :]):
        return report(came)
    words, *files = ATTACHMENT.split(_text_of(messages[last]) if last >= 0 else "")
    words, tools = words.strip(), offered(request, prompts)
    if not words or _HELP.match(words):
        return UNREAD if files else _introduction(tools, MOST_SHOWN)
    calls = calls_in(words, tools)
    if incomplete := [call for call in calls if call.missing]:
        return "\n\n".join(map(_question, incomplete))
    return calls or _without_calls(words, messages, tools, has_files=bool(files))


def report(came: list[tuple[str, str | None]]) -> str:
    """Return one paragraph for each call, in the order of the calls: of its name, and the text of its tool message."""
    return "\n\n".join(_paragraph(code(name), content) for name, content in came)


def text(value: object) -> str:
    """`value` on one line, with everything escaped that Markdown would read."""
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    flat = " ".join(written.split())
    hidden = len(flat) - LONGEST_CELL
    shown = _SPECIAL.sub(lambda match: "\\" + match[0], flat[:LONGEST_CELL])
    return f"{shown} … ({hidden} more characters)" if hidden > 0 else shown


def code(name: str) -> str:
    """A name as inline code."""
    flat = " ".join(name.split())
    ticks = "`" * (_longest_run(flat) + 1)
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{space}{flat}{space}{ticks}"


def fence(content: str, language: str = "") -> str:
    """`content` as a code block that it cannot end itself."""
    ticks = "`" * max(3, _longest_run(content) + 1)
    hidden = len(content) - LONGEST_BLOCK
    cut = f"\n… ({hidden} more characters)" if hidden > 0 else ""
    return f"{ticks}{language}\n{content[:LONGEST_BLOCK]}{cut}\n{ticks}"


def block(value: Any) -> str:
    """A JSON value in the plainest form that shows all of it: a line, a list, a table, or a code block."""
    if (
        isinstance(value, dict)
        and value
        and all(_is_plain(each) for each in value.values())
        and len(value) <= MOST_ROWS
    ):
        return "\n".join(f"- {code(str(key))}: {text(each)}" for key, each in value.items())
    if isinstance(value, list) and 0 < len(value) <= MOST_ROWS:
        if all(_is_plain(each) for each in value):
            return "\n".join(f"- {text(each)}" for each in value)
        if table := _table(value):
            return table
    if isinstance(value, str):
        return text(value) if "\n" not in value.strip() and len(value) <= LONGEST_CELL else fence(value)
    return text(value) if _is_plain(value) else fence(json.dumps(value, indent=2, ensure_ascii=False), "json")


def _dicts(raw: Any) -> list[dict[str, Any]]:
    return [each for each in raw if isinstance(each, dict)] if isinstance(raw, list) else []


def _text_of(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(str(part.get("text") or "") for part in content[:100] if isinstance(part, dict))
    return str(content or "")[:LONGEST_RESULT]


def _came_back(recent: list[Message]) -> list[tuple[str, str | None]]:
    """Return the calls in these messages by name, each with the text of its tool message, None if there is none."""
    results = {
        str(message.get("tool_call_id")): _text_of(message) for message in recent if message.get("role") == "tool"
    }
    answers = [message for message in recent if message.get("role") == "assistant"]
    calls = [call for message in answers for call in _dicts(message.get("tool_calls"))]
    functions = [call["function"] if isinstance(call.get("function"), dict) else {} for call in calls]
    return [
        (str(function.get("name") or "the tool"), results.get(str(call.get("id"))))
        for call, function in zip(calls, functions, strict=True)
    ]


def _without_calls(words: str, messages: list[Message], tools: list[Tool], *, has_files: bool) -> str:
    """Return the answer to words that name no tool."""
    if _NO.match(words):
        return NO_CALL
    if wanted := _WORDS.match(words):
        count = min(int(wanted[1] or DEFAULT_WORDS), MOST_WORDS)
        filler = list(islice(cycle(_FILLER.split()), count))
        return "\n\n".join(" ".join(filler[at : at + IN_PARAGRAPH]) for at in range(0, count, IN_PARAGRAPH))
    if has_files:
        return UNREAD
    stems = _stems(words)
    # What comes near to it first, by name before description.
    tools = sorted(tools, key=lambda tool: tuple(-len(stems & _stems(each)) for each in (tool.name, tool.title)))
    if any(each.get("role") == "assistant" and _text_of(each).startswith(NOTHING) for each in messages):
        return f"{NOTHING} Try {' or '.join(map(_example, tools[:MOST_SUGGESTED]))}." if tools else NOTHING
    return f"{NOTHING}\n\n{_introduction(tools, MOST_SUGGESTED)}"


def _stems(words: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"[^\W_]{3,}", words.lower())} - _LEADING_ON


def _title(request: str) -> str:
    """Return the first words of a request, without those that only ask for it politely."""
    first = _SENTENCE_END.split(_POLITE.sub("", request.strip()), maxsplit=1)[0]
    words = _closed(_cut(first.split())).rstrip(_TITLE_ENDS)
    is_word = words.partition(" ")[0].isalpha()  # and no name of a tool, which stays as it is
    return (words[:1].upper() + words[1:] if is_word else words) or UNTITLED


def _reasons(about: dict[str, Any]) -> str:
    """Return which words asked for a call, and which of its arguments stand in them. It is read as plain text."""
    said = [each["text"] for each in about["conversation"] if each["role"] == "user"]
    words = " ".join(said[-1].split())[:LONGEST_CELL] if said else ""
    call = about["call"]
    written = {name: json.dumps(value, ensure_ascii=False) for name, value in call["arguments"].items()}
    # The empty text stands in any words, and comes from none.
    found = [name for name, value in written.items() if (bare := value.strip('"')) and bare in words]
    rest = [name for name in written if name not in found]
    parts = [f"You wrote “{words}”, and by my rules that asks for {call['tool']}."]
    parts += [f"From your words: {', '.join(found)}."] if found else []
    parts += [f"From the tool's example or its defaults: {', '.join(rest)}."] if rest else []
    return " ".join([*parts, "I am only a few rules, and know no more."])


def _cut(words: list[str]) -> str:
    """Return the first of `words`; of more than there is room for, up to a comma, and not up to a word like *to*."""
    cut = words[:WORDS_IN_TITLE]
    if len(words) > len(cut):
        commas = [number for number, word in enumerate(cut, start=1) if word.endswith(",") and number >= FEWEST_WORDS]
        cut = cut[: commas[-1]] if commas else cut
        while len(cut) > 1 and cut[-1].lower() in _LEADING_ON:
            cut.pop()
    return " ".join(cut)


def _closed(words: str) -> str:
    """Return `words` up to the first bracket or quotation mark that stays open, unless they begin with it."""
    cut = len(words)
    for opening, closing in _PAIRS:
        pieces = words.split(opening)
        is_open = len(pieces) % 2 == 0 if opening == closing else closing not in pieces[-1]
        if len(pieces) > 1 and is_open:
            cut = min(cut, len(words) - len(pieces[-1]) - 1)
    return words[:cut] or words


def _introduction(tools: list[Tool], most: int) -> str:
    lead = (
        "I am the **demo model**: a few rules, so that everything can be tried without a language model. To talk to a "
        "real one, set `OPENAI_BASE_URL`, `OPENAI_API_KEY` and `OPENAI_MODEL`."
    )
    if not tools:
        return f"{lead}\n\nThere is no tool that I may call here. I can write some text: try *write 200 words*."
    shown = "\n".join(f"- {text(tool.title or tool.name)}. Try: {_example(tool)}" for tool in tools[:most])
    more = f"\n\nand {len(tools) - most} more." if len(tools) > most else ""
    return (
        f"{lead}\n\nI call a tool by its name with arguments, or when you say what its approval prompt says:\n\n"
        f"{shown}{more}\n\nSeveral calls at once work too: join them with *and then*."
    )


def _question(call: Call) -> str:
    names = ", ".join(map(code, call.missing))
    return f"To call {code(call.tool.name)} I still need {names}. For example: {_example(call.tool, spelled=True)}"


def _example(tool: Tool, *, spelled: bool = False) -> str:
    """Return words that make the demo model call the tool: its approval prompt, or its name with all it needs."""
    if not spelled and tool.prompt and tool.prompt.example is not None:
        sentence = prompt.render(tool.prompt.template, tool.name, tool.prompt.example)
        if (call := next(iter(calls_in(sentence, [tool])), None)) and not call.missing:
            return code(sentence)
    given = (tool.prompt and tool.prompt.example) or {}
    pieces = [f"{name}={_sample(name, tool.properties.get(name), given)}" for name in tool.required]
    return code(" ".join([tool.name, *pieces]))


def _sample(name: str, schema: Any, given: dict[str, Any]) -> str:
    schema = schema if isinstance(schema, dict) else {}
    listed = [given[name]] if name in given else schema.get("enum") or schema.get("examples") or []
    if isinstance(listed, list) and listed:
        return json.dumps(listed[0], ensure_ascii=False)
    kind = schema.get("type")
    return _SAMPLES.get(kind if isinstance(kind, str) else "", '"some text"')


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_CELL
    return value is None or isinstance(value, bool | int | float) or value in ([], {})


def _table(rows: list[Any]) -> str:
    """Return rows with the same few plain columns as a table; empty if they are not such."""
    if not all(isinstance(row, dict) and row and row.keys() == rows[0].keys() for row in rows):
        return ""
    if len(rows[0]) > MOST_COLUMNS or not all(_is_plain(cell) for row in rows for cell in row.values()):
        return ""
    lines = [
        [text(key) for key in rows[0]],
        ["---"] * len(rows[0]),
        *([text(cell) for cell in row.values()] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _longest_run(content: str) -> int:
    return max(map(len, re.findall(r"`+", content)), default=0)


def _paragraph(name: str, content: str | None) -> str:
    facts = {"status": "unanswered"} if content is None else _facts(content)
    status = facts.get("status")
    if status == "succeeded":
        lead = f"{name} was run. The result:"
        if arguments := facts.get("arguments"):
            lead = f"You changed the arguments before you approved. {name} was run with:\n\n{block(arguments)}"
            lead += "\n\nThe result:"
        return f"{lead}\n\n{block(facts.get('result'))}"
    if status in _SENTENCES:
        executed = facts.get("executed")
        sentence = _FAILED[executed] if status == "failed" and isinstance(executed, bool) else _SENTENCES[status]
        return sentence.format(name=name) + _why(facts)
    return _result(name, content or "")


def _facts(content: str) -> dict[str, Any]:
    """Return what the gate says about a call that did not simply succeed; empty if `content` is a tool's own result."""
    value = _json(content)
    if isinstance(value, dict):
        is_of_gate = value.get("status") in {*_SENTENCES, "succeeded"} and isinstance(value.get("message"), str)
        return value if is_of_gate else {}
    # The facts come first, and are there also where the rest was cut off.
    cut_off = re.match(r'\{"status": "(\w+)", .*"executed": false', content, re.DOTALL)
    if cut_off and cut_off[1] in _SENTENCES:
        return {"status": cut_off[1]}
    is_text = isinstance(value, str) or value is None
    return {"status": "unknown"} if is_text and re.search("may or may not|outcome is unknown", content.lower()) else {}


def _why(facts: dict[str, Any]) -> str:
    key = next((key for key in _LEADS if facts.get(key)), None)
    if key is None:
        return ""
    why = facts[key]
    if isinstance(why, str):
        why = why.removeprefix("Not run: ").removeprefix("It was not run: ")
    line = f" (line {facts['line']})" if isinstance(facts.get("line"), int) else ""
    is_of_tool = facts["status"] == "failed" and facts.get("executed") is not False
    lead = "It says" if is_of_tool else _LEADS[key]
    return f" {lead}: {text(why)}{line}"


def _result(name: str, content: str) -> str:
    # A text such as `120.00` is not read: as a number it would lose its last digit.
    looks_like_json = content.lstrip()[:1] in {"{", "[", '"'} or content.strip() == "null"
    value = _json(content) if looks_like_json else content
    if value is None and content.strip() != "null":
        value = content
    if value in (None, "", [], {}):
        return f"{name} was run. It returned {_EMPTY.get(type(value), 'nothing')}."
    shown = fence(content) if isinstance(value, str) and content.lstrip()[:1] in {"{", "["} else block(value)
    return f"{name} was run. The result:\n\n{shown}"


def _json(content: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
