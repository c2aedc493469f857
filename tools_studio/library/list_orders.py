from typing import Any, Literal

from hitl import store

# number, customer, items, total in EUR, status
SAMPLES = [
    ["4711", "Ann Berg", "1 desk lamp", "143.00", "paid"],
    ["4712", "Ben Okafor", "2 chairs", "259.90", "paid"],
    ["4713", "Chloe Martin", "1 bookshelf", "89.50", "shipped"],
    ["4714", "Dana Kim", "3 mugs", "36.00", "delivered"],
    ["4715", "Emil Novak", "1 rug", "210.00", "cancelled"],
]


def seed() -> None:
    """Put the sample orders into the store if it has none."""
    if not store.keys("order:"):
        for number, customer, items, total, status in SAMPLES:
            order = {"order_id": number, "customer": customer, "items": items, "status": status}
            store.set(f"order:{number}", {**order, "total": total, "refunded": "0.00", "currency": "EUR"})


def run(status: Literal["any", "paid", "shipped", "delivered", "cancelled"] = "any") -> list[dict[str, Any]]:
    """List the orders of the shop.

    Args:
        status: only orders with this status
    """
    seed()
    orders = [store.get(key) for key in sorted(store.keys("order:"))]
    return [order for order in orders if status in ("any", order["status"])]
