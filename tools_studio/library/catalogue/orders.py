"""The order desk: a little shop to try approvals with."""

from typing import Any

from tools_studio.library.catalogue.shipped import ShippedTool

_SHARED: dict[str, Any] = {"group": "order-desk", "category": "Productivity", "capabilities": {"store": True}}

ORDERS = (
    ShippedTool(
        name="list_orders",
        title="List orders",
        prompt_template="List the orders (status: {args.status})",
        example={"status": "paid"},
        tags=("orders", "example"),
        hitl_mode="DISABLED",  # it only reads
        **_SHARED,
    ),
    ShippedTool(
        name="get_order",
        title="Get order",
        prompt_template="Show order {args.order_id}",
        example={"order_id": "4711"},
        tags=("orders", "example"),
        hitl_mode="DISABLED",
        **_SHARED,
    ),
    ShippedTool(
        name="refund_order",
        title="Refund order",
        prompt_template="Refund {args.amount} EUR for order {args.order_id}",
        example={"order_id": "4711", "amount": "129.00", "reason": "lamp returned"},
        tags=("orders", "money", "example"),
        **_SHARED,
    ),
    ShippedTool(
        name="cancel_order",
        title="Cancel order",
        prompt_template="Cancel order {args.order_id}",
        example={"order_id": "4712", "reason": "ordered twice"},
        tags=("orders", "example"),
        **_SHARED,
    ),
    ShippedTool(
        name="change_address",
        title="Change address",
        prompt_template="Change the address of order {args.order_id} to {args.address}",
        example={"order_id": "4712", "address": "7 Station Road, Galway H91 E8PA"},
        tags=("orders", "example"),
        **_SHARED,
    ),
    ShippedTool(
        name="order_history",
        title="Order history",
        prompt_template="Show the history of order {args.order_id}",
        example={"order_id": "4711"},
        tags=("orders", "example"),
        hitl_mode="DISABLED",
        **_SHARED,
    ),
)
