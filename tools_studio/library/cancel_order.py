from typing import Any

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


def find(order_id: str) -> dict[str, Any]:
    seed()
    order = store.get(f"order:{order_id}")
    if order is None:
        raise ValueError(f"there is no order {order_id}")
    return order


def run(order_id: str, reason: str = "") -> dict[str, Any]:
    """Cancel an order that has not been shipped yet.

    Args:
        order_id: the order's number, such as 4712
        reason: why it is cancelled
    """
    order = find(order_id)
    if order["status"] != "paid":
        raise ValueError(f"order {order_id} is already {order['status']}")
    order = {**order, "status": "cancelled", "cancel_reason": reason}
    store.set(f"order:{order_id}", order)
    return order
