"""Beginnings that reach outside of the sandbox."""

from tools_studio.drafts import Draft
from tools_studio.models import Category
from tools_studio.starters.starter import Starter
from tools_studio.variables import Variable

API = '''from typing import Any

from hitl import fetch


def run(city: str, days: int = 1) -> Any:
    """Look something up at an HTTP interface.

    city: where
    days: how many days ahead
    """
    answer = fetch("https://api.example.com/forecast", params={"city": city, "days": days})
    if answer["status"] != 200:
        raise ValueError(f"the service answered {answer['status']}")
    return answer["json"]
'''

KEYED = '''from typing import Any

from hitl import fetch


def run(title: str, urgent: bool = False) -> Any:
    """Open a ticket at a service that wants a key.

    title: what it is about
    urgent: whether it cannot wait
    """
    # The server adds the key: this code never sees it.
    answer = fetch(
        "https://api.example.com/tickets",
        "POST",
        json={"title": title, "priority": "high" if urgent else "normal"},
        auth="API_KEY",
    )
    if answer["status"] not in (200, 201):
        raise ValueError(f"the service answered {answer['status']}")
    return answer["json"]
'''

EMAIL = '''from hitl import send_email


def run(subject: str, text: str) -> str:
    """Send a message to the team.

    subject: one line that says what it is about
    text: the whole message
    """
    send_email("team@example.com", subject, text)
    return "Sent."
'''

FILES = '''from hitl import files, now


def run(entry: str) -> str:
    """Write a line into today's notes, and return all of them.

    entry: what to note
    """
    today = now()
    path = f"{today.year}/{today.date().isoformat()}.txt"
    files.append(path, f"{today.hour:02d}:{today.minute:02d} {entry}\\n")
    return files.read(path)
'''

OUTSIDE = (
    Starter(
        "api",
        "HTTP API, reading",
        "Fetches from a host that you name, with GET alone, and returns the JSON of the answer.",
        Draft(
            name="look_up",
            code=API,
            category=Category.WEB.value,
            capabilities={"fetch": {"mode": "allowlist", "hosts": ["api.example.com"], "methods": ["GET"]}},
            prompt_template="Look up {args.city} at api.example.com",
            example={"city": "Oslo", "days": 2},
        ),
        needs="Needs a host of yours in place of api.example.com, in the code and under Network.",
    ),
    Starter(
        "secret",
        "API with a key",
        "Sends a request with a secret that the server adds, so that neither the code nor the model ever has it.",
        Draft(
            name="open_ticket",
            code=KEYED,
            category=Category.WEB.value,
            capabilities={"fetch": {"mode": "allowlist", "hosts": ["api.example.com"], "methods": ["POST"]}},
            variables=(Variable("API_KEY", secret=True),),
            prompt_template="Open the ticket “{args.title}”",
            example={"title": "The lamp flickers", "urgent": False},
        ),
        needs="Needs a host of yours in place of api.example.com, in the code and under Network, and a value for the "
        "secret API_KEY under Variables.",
    ),
    Starter(
        "email",
        "E-mail",
        "Sends a message to recipients that you list, and to nobody else.",
        Draft(
            name="email_team",
            code=EMAIL,
            category=Category.MESSAGING.value,
            capabilities={"email": {"to": ["team@example.com"]}},
            prompt_template="Send “{args.subject}” to the team",
            example={"subject": "Closed on Friday", "text": "We are back on Monday."},
        ),
        needs="Needs an address of yours in place of team@example.com, in the code and under E-mail.",
        mails=True,
    ),
    Starter(
        "files",
        "Files",
        "Reads and writes text files in one folder of the server's data, here a diary.",
        Draft(
            name="diary",
            code=FILES,
            category=Category.FILES.value,
            capabilities={"files": {"mode": "write", "folder": "notes"}, "now": True},
            prompt_template="Note {args.entry}",
            example={"entry": "called Ann"},
        ),
    ),
)
