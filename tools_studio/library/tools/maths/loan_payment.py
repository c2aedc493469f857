from decimal import Decimal
from typing import Annotated, Any

CENT = Decimal("0.01")


def run(
    amount: Decimal, yearly_rate: Decimal, months: Annotated[int, {"minimum": 1, "maximum": 600}], plan: bool = False
) -> dict[str, Any]:
    """Work out the monthly payment of a loan with a fixed rate, what it costs in all, and the plan if wanted.

    Args:
        amount: how much is lent
        yearly_rate: the interest in percent a year, such as 4.5
        months: over how many months it is paid back
        plan: whether to list every month
    """
    if amount <= 0 or not 0 <= yearly_rate <= 100:
        raise ValueError("expected an amount above zero and a rate from 0 to 100 percent")
    rate = yearly_rate / 1200
    factor = (1 + rate) ** months
    payment = (amount * rate * factor / (factor - 1) if rate else amount / months).quantize(CENT)
    left, interest_paid, rows = amount, Decimal(0), []
    for month in range(1, months + 1):
        interest = (left * rate).quantize(CENT)
        paid = left + interest if month == months else min(payment, left + interest)
        left = left + interest - paid
        interest_paid += interest
        rows.append({"month": month, "payment": f"{paid:.2f}", "interest": f"{interest:.2f}", "left": f"{left:.2f}"})
    return {
        "monthly_payment": f"{payment:.2f}",
        "last_payment": rows[-1]["payment"],
        "interest": f"{interest_paid:.2f}",
        "total": f"{amount + interest_paid:.2f}",
        "plan": rows if plan else [],
    }
