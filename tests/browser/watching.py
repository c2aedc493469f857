"""What no page may ever do: complain in the console, break its own policy, speak to another host, send arguments."""

import re
from typing import Final

from playwright.sync_api import BrowserContext, ConsoleMessage, Request, WebError

VIOLATIONS: Final = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`broke its policy: ${event.violatedDirective} ${event.blockedURI}`);
});
"""
# What the browser itself says while the server is away, or answers with an error that the test asked for.
AWAY: Final = (
    r"WebSocket connection to .* failed|ERR_CONNECTION_(REFUSED|RESET)|error: \[object Event\]"
    r"|htmx:(wsError|sendError)"
)

# A fragment for what the page no longer shows: a delta of a message that is whole already, a card that is gone; a look
# at how things stand, which an answer given meanwhile aborts.
LATE: Final = r"htmx:oobErrorNoTarget, #(call|pictures|progress)-|htmx:(afterRequest|sendAbort),"


class Watch:
    """Collects the troubles of one browser context."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self._origin = origin
        self._expected = [LATE]
        self.troubles: list[str] = []
        self.requests: list[str] = []
        context.add_init_script(VIOLATIONS)
        context.on("console", self._console)
        context.on("weberror", self._error)
        context.on("request", self._request)

    def expect(self, pattern: str) -> None:
        """This one is part of the story."""
        self._expected.append(pattern)

    def check(self) -> None:
        left = [trouble for trouble in self.troubles if not any(re.search(part, trouble) for part in self._expected)]
        assert not left, left

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.troubles.append(f"{message.type}: {message.text}")

    def _error(self, error: WebError) -> None:
        self.troubles.append(f"uncaught: {error.error}")

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)
        if not request.url.startswith((self._origin, "data:")):
            self.troubles.append(f"asked a stranger: {request.url}")
