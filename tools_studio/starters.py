"""Beginnings of tools: plain ones, and those that reach outside of the sandbox; the tools are in starters.toml."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tools_studio import spec
from tools_studio.spec import Draft

_TOOLS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Starter:
    """`key` stands in addresses; `title` and `sentence` are what an author chooses by.

    `needs` says what has to be there, or changed, before its test can pass. `mails` if that includes a mail server.
    """

    key: str
    title: str
    sentence: str
    needs: str = ""
    mails: bool = False

    @property
    def draft(self) -> Draft:
        return spec.given(_TOOLS[self.key])


STARTERS = (
    Starter(
        "function", "Plain function", ("Text or numbers in, a result out. It has no capabilities, so it need not ask.")
    ),
    Starter(
        "records",
        "Structured data",
        "A dataclass describes each item of a list: names, types and defaults become the schema.",
    ),
    Starter("store", "Tool with a memory", "Keeps a list between calls, in a store that all tools of its group share."),
    Starter(
        "preview",
        "Asks first, with a preview",
        "Shows the approver what the call would change before anything happens, such as booking an expense.",
    ),
    Starter(
        "api",
        "HTTP API, reading",
        "Fetches from a named host with GET and returns the JSON of the response.",
        needs="Replace api.example.com in the code and under Network.",
    ),
    Starter(
        "secret",
        "API with key",
        "Sends a request with a secret that the server adds, so that neither the code nor the model ever has it.",
        needs="Replace api.example.com in the code and under Network, and set the secret API_KEY under Variables.",
    ),
    Starter(
        "email",
        "E-mail",
        "Sends a message only to recipients that you list.",
        needs="Replace team@example.com in the code and under E-mail.",
        mails=True,
    ),
    Starter("files", "Files", "Reads and writes text files in one folder of the server's data, here a diary."),
)
