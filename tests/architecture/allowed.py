"""The exceptions that test_architecture.py grants, each with its reason. The lists may only shrink."""

from typing import Final

# Where `except Exception` is right: the outermost frame of a way in, and around other people's code. Each one logs.
BROAD_EXCEPTS: Final[dict[str, str]] = {
    "hitlchat/agent/loop.py": "the outermost frame of a run: whatever goes wrong, the run ends as failed and says so",
    "hitlchat/chat/consumers.py": "the outermost frame of a websocket: the page is told, and the socket stays open",
    "hitlchat/chat/markdown.py": "around a library without a kind of error of its own: the source is shown instead",
    "hitlchat/base/background.py": "the outermost frame of a task that nobody awaits, of a worker, or of a step",
    "hitlchat/doctor.py": "around each check: what fails is what the operator wants to know, and the others go on",
    "hitlchat/gate/perform.py": "around a tool: whatever a source raises, the call ends as failed",
    "hitlchat/gate/sources.py": "around the code of sources: the unchecked is refused, a failed preview says so",
    "hitlchat/gate/policy.py": "around a tool's condition and what rules are told: what cannot be read means ask",
    "hitlchat/gate/policies/loading.py": "around other people's policies: one that raises means ask, or does not load",
    "hitlchat/mcp_server/calling.py": "the outermost frame of a tools/call: the client reads nothing of our insides",
    "hitlchat/mcp_server/server.py": "the outermost frame of every other request over MCP: no insides are told",
    "hitlchat/project_tools/source.py": "around the operator's own functions: a call always ends in a result",
    "hitlchat/sandbox/session.py": "around helper functions: what one makes of a tool's arguments ends no keeper",
    "hitlchat/sandbox/engine.py": "around other people's code, and host functions: a run always ends in a report",
    "hitlchat/upstreams/client/calls.py": "around the SDK and a server's answers: a call always ends in an outcome",
    "hitlchat/upstreams/client/connection.py": "the outermost frame of a session, and around who takes in its tools",
}
