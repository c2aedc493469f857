"""The exceptions that test_architecture.py grants, each with its reason. The lists may only shrink."""

from typing import Final

# Where `except Exception` is right: the outermost frame of a way in, and around other people's code. Each one logs.
BROAD_EXCEPTS: Final[dict[str, str]] = {
    "hitlchat/agent/loop.py": "the outermost frame of a run: whatever goes wrong, the run ends as failed and says so",
    "hitlchat/agent/runner.py": "the outermost frame of the housekeeping, which must outlive any single failure",
    "hitlchat/chat/consumers.py": "the outermost frame of a websocket: the page is told, and the socket stays open",
    "hitlchat/gate/background.py": "the outermost frame of a task that nobody awaits",
    "hitlchat/gate/perform.py": "around a tool: whatever a source raises, the call ends as failed",
    "hitlchat/gate/policy.py": "around other people's policies: one that raises means ask",
    "hitlchat/sandbox/check.py": "around other people's code: the author is told that the check failed",
    "hitlchat/sandbox/driver.py": "around a host function: tool code must not read its host's errors",
    "hitlchat/sandbox/engine.py": "around other people's code: a run always ends in a report",
}

# Modules that may be imported inside a function, because a program without them is a whole program.
OPTIONAL_IMPORTS: Final[dict[str, set[str]]] = {}
