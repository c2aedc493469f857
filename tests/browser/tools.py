"""Tools for browser tests: what they do is of no interest, how the pages speak of them is."""

import json
from typing import Any, Final

from tests.processes import Installation

ECHO: Final = 'def run(text: str = "hello") -> str:\n    """Say it back."""\n    return text\n'
NOTE: Final = '''def run(note: str, data: dict = {}, more: list = []) -> str:
    """Keep a note."""
    return f"kept {len(note)}"
'''
COUNT: Final = '''from hitl import store


def run() -> int:
    """Count how often this ran."""
    store.set("n", store.get("n", 0) + 1)
    return store.get("n")
'''
SLOW: Final = (
    'import time\n\n\ndef run(n: int = 9) -> str:\n    """Take its time."""\n    time.sleep(n)\n    return "slept"\n'
)
FAIL: Final = 'def run(text: str = "") -> str:\n    """Fail."""\n    raise ValueError("no such account")\n'
MANY: Final = (
    f"def run({', '.join(f'field_{n}: str' for n in range(30))}) -> str:\n"
    '    """Take many arguments."""\n    return "ok"\n'
)

# Drafts by name; all of them get published.
TOOLS: Final[dict[str, dict[str, Any]]] = {
    "echo": {"code": ECHO, "hitl_mode": "REQUIRED", "prompt_template": "Say {args.text}"},
    "look": {"code": ECHO, "hitl_mode": "DISABLED"},
    "note": {"code": NOTE, "hitl_mode": "REQUIRED", "prompt_template": "Keep the note {args.note}"},
    # One test gives it other code, which nobody publishes: no other test may use it.
    "memo": {"code": NOTE, "hitl_mode": "REQUIRED", "prompt_template": "Keep the memo {args.note}"},
    "count": {"code": COUNT, "hitl_mode": "REQUIRED", "capabilities": {"store": True}},
    # Long enough to be seen on a page before it is over.
    "brief": {"code": ECHO, "hitl_mode": "REQUIRED", "deadline_seconds": 10},
    "soon": {"code": ECHO, "hitl_mode": "REQUIRED", "deadline_seconds": 55},
    "slow": {"code": SLOW, "hitl_mode": "REQUIRED", "capabilities": {"sleep": True}},
    "fail": {"code": FAIL, "hitl_mode": "REQUIRED"},
    "many": {"code": MANY, "hitl_mode": "REQUIRED"},
    "remind": {"code": NOTE, "hitl_mode": "CONDITIONAL", "prompt_template": "Remind of {args.note}"},
    "wipe": {"code": NOTE, "hitl_mode": "REQUIRED", "capabilities": {"destructive": True}},
}

SCRIPT: Final = """
import json
from django.contrib.auth.models import User
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Tool
from tools_studio import authoring
alice = User.objects.get(username="alice")
for name, draft in json.loads({drafts!r}).items():
    authoring.create(authoring.Draft(name=name, **draft), Actor(alice.pk, "console"), confirmed=True)
Tool.objects.update(published=True)
"""


def install(home: Installation) -> None:
    """All of them in one process, since starting one takes longer than what it does."""
    home.manage("shell", "-v", "0", "-c", SCRIPT.format(drafts=json.dumps(TOOLS)))
