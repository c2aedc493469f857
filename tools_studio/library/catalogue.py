"""The tools that ship. Each is the source text in the file of its name, which only the sandbox ever runs."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class ShippedTool:
    """A tool to start with. Tools of one `group` are meant to share one store; `example` are arguments to try."""

    name: str
    title: str
    group: str
    prompt_template: str
    example: dict[str, Any]
    hitl_mode: Literal["REQUIRED", "DISABLED"] = "DISABLED"
    capabilities: dict[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The tool's code."""
        return (_FOLDER / f"{self.name}.py").read_text(encoding="utf-8")


ORDER_DESK = "order-desk"
BASICS = "basics"

TOOLS = (
    ShippedTool(
        name="list_orders",
        title="List orders",
        group=ORDER_DESK,
        prompt_template="List the orders (status: {args.status})",
        example={"status": "paid"},
        capabilities={"store": True},
    ),
    ShippedTool(
        name="get_order",
        title="Get order",
        group=ORDER_DESK,
        prompt_template="Show order {args.order_id}",
        example={"order_id": "4711"},
        capabilities={"store": True},
    ),
    ShippedTool(
        name="cancel_order",
        title="Cancel order",
        group=ORDER_DESK,
        prompt_template="Cancel order {args.order_id}",
        example={"order_id": "4712", "reason": "ordered twice"},
        hitl_mode="REQUIRED",
        capabilities={"store": True},
    ),
    ShippedTool(
        name="refund_order",
        title="Refund order",
        group=ORDER_DESK,
        prompt_template="Refund {args.amount} EUR for order {args.order_id}",
        example={"order_id": "4711", "amount": "129.00", "reason": "lamp returned"},
        hitl_mode="REQUIRED",
        capabilities={"store": True},
    ),
    ShippedTool(
        name="get_current_time",
        title="Get current time",
        group=BASICS,
        prompt_template="Read the clock in {args.timezone}",
        example={"timezone": "Europe/Berlin"},
        capabilities={"now": True},
    ),
    ShippedTool(
        name="convert_units",
        title="Convert units",
        group=BASICS,
        prompt_template="Convert {args.value} {args.from_unit} to {args.to_unit}",
        example={"value": 10, "from_unit": "km", "to_unit": "miles"},
    ),
)
