from decimal import Decimal
from typing import Annotated, Any

CENT = Decimal("0.01")


def run(
    start: Decimal,
    yearly_rate: Decimal,
    years: Annotated[int, {"minimum": 1, "maximum": 100}],
    monthly_deposit: Decimal | None = None,
) -> dict[str, Any]:
    """Work out how savings grow with interest that is added every month.

    Args:
        start: what is there at the beginning
        yearly_rate: the interest in percent a year
        years: for how many years
        monthly_deposit: what is added at the end of every month
    """
    deposit = monthly_deposit or Decimal(0)
    if start < 0 or deposit < 0 or not 0 <= yearly_rate <= 100:
        raise ValueError("expected no negative sum and a rate from 0 to 100 percent")
    rate = yearly_rate / 1200
    balance, paid_in, rows = start, start, []
    for year in range(1, years + 1):
        for _ in range(12):
            balance = balance + (balance * rate).quantize(CENT) + deposit
        paid_in += 12 * deposit
        rows.append({"year": year, "paid_in": f"{paid_in:.2f}", "balance": f"{balance:.2f}"})
    return {
        "balance": f"{balance:.2f}",
        "paid_in": f"{paid_in:.2f}",
        "interest": f"{balance - paid_in:.2f}",
        "years": rows,
    }
