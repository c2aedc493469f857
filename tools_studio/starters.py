"""Beginnings of tools: plain ones, and those that reach outside of the sandbox."""

from dataclasses import dataclass

from tools_studio.drafts import Draft
from tools_studio.models import Category
from tools_studio.variables import Variable


@dataclass(frozen=True)
class Starter:
    """`key` stands in addresses; `title` and `sentence` are what an author chooses by.

    `needs` says what has to be there, or changed, before its test can pass. `mails` if that includes a mail server.
    """

    key: str
    title: str
    sentence: str
    draft: Draft
    needs: str = ""
    mails: bool = False


FUNCTION = '''def run(text: str) -> str:
    """Say what the tool does, in one line: the model and the approver read it.

    text: what the argument means
    """
    return text.upper()
'''

RECORDS = '''from dataclasses import dataclass
from decimal import Decimal


@dataclass
class Item:
    """One line of an order."""

    name: str
    price: Decimal
    quantity: int = 1


def run(items: list[Item], discount_percent: int = 0) -> dict[str, str]:
    """Add up an order.

    items: what was ordered
    discount_percent: taken off the sum
    """
    total = sum((item.price * item.quantity for item in items), Decimal(0))
    due = total * (100 - discount_percent) / 100
    return {"total": f"{total:.2f}", "due": f"{due:.2f}"}
'''

STORE = '''from hitl import store


def run(item: str, quantity: int = 1) -> dict[str, int]:
    """Put something on the shopping list, and say what is on it.

    item: what to buy
    quantity: how many more of it
    """
    wanted: dict[str, int] = store.get("list", {})
    wanted[item] = wanted.get(item, 0) + quantity
    store.set("list", wanted)
    return wanted
'''

PREVIEW = '''from decimal import Decimal

from hitl import store

LIMIT = Decimal("500.00")


def spent(team: str) -> Decimal:
    return Decimal(store.get(f"spent:{team}", "0.00"))


def preview(team: str, amount: Decimal, reason: str) -> dict[str, str]:
    before = spent(team)
    return {
        "Spent so far": f"{before:.2f}",
        "After this": f"{before + amount:.2f}",
        "Limit": f"{LIMIT:.2f}",
    }


def run(team: str, amount: Decimal, reason: str) -> str:
    """Book an expense for a team.

    team: who pays
    amount: how much, in EUR
    reason: what for
    """
    after = spent(team) + amount
    if amount <= 0 or after > LIMIT:
        raise ValueError(f"{team} may spend {LIMIT - spent(team):.2f} more")
    store.set(f"spent:{team}", f"{after:.2f}")
    return f"Booked {amount:.2f} EUR for {team}: {reason}"
'''

PLAIN = (
    Starter(
        "function",
        "Plain function",
        "Text or numbers in, a result out. It has no powers, so it need not ask.",
        Draft(name="upper_case", code=FUNCTION, example={"text": "hello"}),
    ),
    Starter(
        "records",
        "Structured data",
        "A dataclass describes each item of a list: names, types and defaults become the schema.",
        Draft(
            name="order_total",
            code=RECORDS,
            category=Category.DATA.value,
            example={"items": [{"name": "lamp", "price": "19.90", "quantity": 2}], "discount_percent": 10},
        ),
    ),
    Starter(
        "store",
        "Tool with a memory",
        "Keeps a list between calls, in a store that all tools of its group share.",
        Draft(
            name="shopping_list",
            code=STORE,
            category=Category.PRODUCTIVITY.value,
            capabilities={"store": True},
            prompt_template="Put {args.quantity} {args.item} on the shopping list",
            example={"item": "tea", "quantity": 2},
        ),
    ),
    Starter(
        "preview",
        "Asks first, with a preview",
        "Shows the approver what the call would change before anything happens, such as booking an expense.",
        Draft(
            name="book_expense",
            code=PREVIEW,
            category=Category.PRODUCTIVITY.value,
            capabilities={"store": True},
            hitl_mode="REQUIRED",
            prompt_template="Book {args.amount} EUR for {args.team}",
            example={"team": "design", "amount": "42.50", "reason": "paper"},
        ),
    ),
)


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


STARTERS: tuple[Starter, ...] = (*PLAIN, *OUTSIDE)
