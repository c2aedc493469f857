from datetime import date
from decimal import Decimal
from typing import Annotated, Any

from hitl import fetch


def run(
    amount: Decimal,
    from_currency: Annotated[str, {"pattern": "^[A-Za-z]{3}$"}],
    to_currency: Annotated[str, {"pattern": "^[A-Za-z]{3}$"}],
    day: date | None = None,
) -> dict[str, Any]:
    """Convert money to another currency at the European Central Bank's reference rate.

    Args:
        amount: how much
        from_currency: the currency it is in, such as USD
        to_currency: the currency to convert to, such as EUR
        day: at the rate of this day; left out means the latest one
    """
    base, goal = from_currency.upper(), to_currency.upper()
    if base == goal:
        raise ValueError("expected two different currencies")
    when = day.isoformat() if day else "latest"
    answer = fetch(f"https://api.frankfurter.dev/v1/{when}", params={"base": base, "symbols": goal})
    found = answer["json"]
    if answer["status"] not in (200, 400, 404, 422) or (answer["status"] == 200 and not isinstance(found, dict)):
        raise ValueError(f"frankfurter.dev answered with status {answer['status']}")
    if answer["status"] != 200 or goal not in found.get("rates", {}):
        raise ValueError(f"there is no rate from {base} to {goal} for {when}")
    rate = Decimal(str(found["rates"][goal]))
    return {"amount": f"{amount * rate:.2f}", "currency": goal, "rate": str(rate), "day": found["date"]}
