from typing import Any

from hitl import store

# number, customer, items, total in EUR, status, address
SAMPLES = [
    ["4711", "Ann Berg", "1 desk lamp", "143.00", "paid", "12 Mill Lane, Bristol BS1 4QA"],
    ["4712", "Ben Okafor", "2 chairs", "259.90", "paid", "5 Harbour Street, Cork T12 X8N6"],
    ["4713", "Chloe Martin", "1 bookshelf", "89.50", "shipped", "8 rue des Lilas, 69003 Lyon"],
    ["4714", "Dana Kim", "3 mugs", "36.00", "delivered", "41 Garden Road, Leeds LS2 9JT"],
    ["4715", "Emil Novak", "1 rug", "210.00", "cancelled", "Dlouha 14, 110 00 Praha"],
]
NAMES = ["order_id", "customer", "items", "total", "status", "address"]


def samples() -> dict[str, dict[str, Any]]:
    """The orders that the desk opens with, by number."""
    return {row[0]: {**dict(zip(NAMES, row, strict=True)), "refunded": "0.00", "currency": "EUR"} for row in SAMPLES}


def find(order_id: str) -> dict[str, Any]:
    order = store.get(f"order:{order_id}")
    if order is None and not store.keys("order:"):
        order = samples().get(order_id)
    if order is None:
        raise ValueError(f"there is no order {order_id}")
    return order


def keep(order: dict[str, Any], event: str) -> dict[str, Any]:
    """Store the order and note what happened to it; the samples come along the first time."""
    if not store.keys("order:"):
        for number, sample in samples().items():
            store.set(f"order:{number}", sample)
    key = f"history:{order['order_id']}"
    store.set(f"order:{order['order_id']}", order)
    store.set(key, [*store.get(key, []), event][-200:])
    return order


def open_order(order_id: str, address: str) -> dict[str, Any]:
    order = find(order_id)
    if order["status"] != "paid":
        raise ValueError(f"order {order_id} is already {order['status']}")
    if not 10 <= len(address.strip()) <= 200:
        raise ValueError("expected a whole address of 10 to 200 characters")
    return order


def preview(order_id: str, address: str) -> dict[str, str]:
    order = open_order(order_id, address)
    return {"Order": f"{order_id} of {order['customer']}", "Now": order.get("address", ""), "Then": address.strip()}


def run(order_id: str, address: str) -> dict[str, Any]:
    """Change where an order goes, as long as it has not been shipped.

    Args:
        order_id: the order's number, such as 4712
        address: the whole new address in one line
    """
    order = {**open_order(order_id, address), "address": address.strip()}
    return keep(order, f"address changed to {address.strip()}")
