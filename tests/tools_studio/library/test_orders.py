"""The order desk, whose tools share one store."""

from decimal import Decimal

import pytest

from tests.tools_studio.library.world import BY_NAME, World, fault, result

DESK = [name for name, tool in BY_NAME.items() if tool.group == "order-desk"]


def test_the_tools_of_the_desk_know_the_same_orders() -> None:
    blocks = {BY_NAME[name].source.split("# number")[1].split("\n\n\ndef ")[0] for name in DESK}
    assert len(blocks) == 1
    assert len(DESK) == 6


def test_the_desk_opens_with_five_orders_and_looking_writes_nothing(world: World) -> None:
    assert [order["order_id"] for order in result(world.call("list_orders"))] == [
        "4711",
        "4712",
        "4713",
        "4714",
        "4715",
    ]
    assert [order["order_id"] for order in result(world.call("list_orders", status="shipped"))] == ["4713"]
    assert result(world.call("get_order", order_id="4711"))["customer"] == "Ann Berg"
    assert fault(world.call("get_order", order_id="1")) == "ValueError: there is no order 1"
    assert world.store == {}


def test_no_order_has_another_status_than_those_that_can_be_asked_for(world: World) -> None:
    listed = [order for status in ("paid", "shipped", "delivered", "cancelled")
              for order in result(world.call("list_orders", status=status))]  # fmt: skip
    assert len(listed) == 5


def test_a_refund_shows_in_the_order_and_leaves_less_to_refund(world: World) -> None:
    assert result(world.call("refund_order", order_id="4711", amount="100.00", reason="broken"))["refunded"] == "100.00"
    assert result(world.call("get_order", order_id="4711"))["refund_reason"] == "broken"
    assert (
        fault(world.call("refund_order", order_id="4711", amount="43.01")) == "ValueError: only 43.00 can be refunded"
    )
    assert result(world.call("refund_order", order_id="4711", amount="43"))["refunded"] == "143.00"
    assert len(result(world.call("list_orders"))) == 5


@pytest.mark.parametrize(
    "amount, words", [("500.00", "only 143.00"), ("-1.00", "above zero"), ("0.001", "whole cents")]
)
def test_a_refund_is_within_what_was_paid(world: World, amount: str, words: str) -> None:
    assert words in fault(world.call("refund_order", order_id="4711", amount=amount))
    assert words in fault(world.look("refund_order", order_id="4711", amount=amount))
    assert Decimal(result(world.call("get_order", order_id="4711"))["refunded"]) == 0


def test_the_preview_of_a_refund_says_what_it_comes_to(world: World) -> None:
    result(world.call("refund_order", order_id="4711", amount="14.00"))
    before = dict(world.store)
    assert result(world.look("refund_order", order_id="4711", amount="129.00")) == (
        "Order 4711 of Ann Berg: paid 143.00 EUR, refunded so far 14.00, after this 143.00."
    )
    assert world.store == before


@pytest.mark.parametrize(
    "order_id, words", [("4713", "already shipped"), ("4715", "already cancelled"), ("9", "no order")]
)
def test_what_is_shipped_or_cancelled_stays_as_it_is(world: World, order_id: str, words: str) -> None:
    address = "7 Station Road, Galway"
    assert words in fault(world.call("cancel_order", order_id=order_id))
    assert words in fault(world.look("cancel_order", order_id=order_id))
    assert words in fault(world.call("change_address", order_id=order_id, address=address))


def test_a_paid_order_is_cancelled_once(world: World) -> None:
    assert result(world.look("cancel_order", order_id="4712")) == (
        "Order 4712 of Ben Okafor: 2 chairs for 259.90 EUR, paid and not shipped, is cancelled."
    )
    assert result(world.call("cancel_order", order_id="4712", reason="twice"))["status"] == "cancelled"
    assert "already cancelled" in fault(world.call("cancel_order", order_id="4712"))


def test_an_address_is_changed_and_the_preview_shows_both(world: World) -> None:
    address = " 7 Station Road, Galway "
    assert result(world.look("change_address", order_id="4712", address=address)) == {
        "Order": "4712 of Ben Okafor", "Now": "5 Harbour Street, Cork T12 X8N6", "Then": "7 Station Road, Galway",
    }  # fmt: skip
    result(world.call("change_address", order_id="4712", address=address))
    assert result(world.call("get_order", order_id="4712"))["address"] == "7 Station Road, Galway"


@pytest.mark.parametrize("address", ["", "Galway", "x" * 201])
def test_a_piece_of_an_address_is_refused(world: World, address: str) -> None:
    assert "a whole address" in fault(world.call("change_address", order_id="4712", address=address))


def test_the_history_tells_what_was_done_in_order(world: World) -> None:
    assert result(world.call("order_history", order_id="4711"))["events"] == [
        "placed by Ann Berg: 1 desk lamp for 143.00 EUR"
    ]
    result(world.call("refund_order", order_id="4711", amount="5", reason="scratch"))
    result(world.call("cancel_order", order_id="4711"))
    found = result(world.call("order_history", order_id="4711"))
    assert (found["status"], found["events"][1:]) == ("cancelled", ["refunded 5.00 EUR: scratch", "cancelled"])
    assert "no order 1" in fault(world.call("order_history", order_id="1"))


def test_orders_that_were_kept_before_there_were_addresses_still_work(world: World) -> None:
    world.store["order:7"] = {"order_id": "7", "customer": "Flo", "items": "1 pen", "status": "paid",
                              "total": "3.00", "refunded": "0.00", "currency": "EUR"}  # fmt: skip
    assert result(world.look("change_address", order_id="7", address="1 Long Road, Cork"))["Now"] == ""
    result(world.call("change_address", order_id="7", address="1 Long Road, Cork"))
    assert len(result(world.call("list_orders"))) == 1
