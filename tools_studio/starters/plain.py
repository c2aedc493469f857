"""Beginnings that stay inside the sandbox."""

from tools_studio.drafts import Draft
from tools_studio.models import Category
from tools_studio.starters.starter import Starter

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
