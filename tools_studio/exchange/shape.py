"""The form of a file of tools, as JSON Schema: every key there may be, and of which type. What the values mean is for
the checks that every tool goes through."""

from typing import Any

from hitlchat.gate.models import HitlMode
from tools_studio.cases import LONGEST_NAME, MOST_CASES
from tools_studio.drafts import MOST_TAGS
from tools_studio.models import Expectation
from tools_studio.variables import MOST as MOST_VARIABLES

FORMAT = "hitlchat.tools"
VERSION = 1
# Sent back by the page that asks for confirmation, it has to stay below DATA_UPLOAD_MAX_MEMORY_SIZE.
MOST_BYTES = 3 * 2**19
MOST_TOOLS = 200

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
OBJECT: Schema = {"type": "object"}


def _closed(required: list[str], properties: Schema) -> Schema:
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


VARIABLE = _closed(["name"], {"name": TEXT, "secret": {"type": "boolean"}, "value": {"type": ["string", "null"]}})
CASE = _closed(
    ["name"],
    {
        "name": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
        "arguments": OBJECT,
        "expectation": {"enum": Expectation.values},
        "expected": {},
    },
)
TOOL = _closed(
    ["name", "code"],
    {
        "name": TEXT,
        "code": TEXT,
        "title": TEXT,
        "description": TEXT,
        "group": TEXT,
        "category": TEXT,
        "tags": {"type": "array", "maxItems": MOST_TAGS, "items": TEXT},
        "capabilities": OBJECT,
        "hitlMode": {"enum": [*HitlMode.values, None]},
        "promptTemplate": TEXT,
        "condition": TEXT,
        "deadlineSeconds": {"type": ["integer", "null"]},
        "signedInOnly": {"type": "boolean"},
        "example": {"type": ["object", "null"]},
        "variables": {"type": "array", "maxItems": MOST_VARIABLES, "items": VARIABLE},
        "testCases": {"type": "array", "maxItems": MOST_CASES, "items": CASE},
        "definitionHash": {"type": "string", "pattern": r"\A[0-9a-f]{64}\Z"},
    },
)
FRAME = _closed(
    ["format", "version", "tools"],
    {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "exportedAt": {"type": "string", "maxLength": 64},
        "tools": {"type": "array", "minItems": 1, "maxItems": MOST_TOOLS},
    },
)
