from decimal import Decimal
from typing import Annotated, Any


def run(
    amount: Decimal,
    shares: Annotated[list[float], {"minItems": 1, "maxItems": 1000}],
    names: list[str] = [],
    decimals: Annotated[int, {"minimum": 0, "maximum": 4}] = 2,
) -> list[dict[str, Any]]:
    """Split a sum of money by shares so that not a cent is lost.

    Args:
        amount: the sum to split
        shares: how much each one gets in proportion, such as 1, 1, 2
        names: who they are, in the same order
        decimals: how many decimals the currency has
    """
    if names and len(names) != len(shares):
        raise ValueError(f"expected {len(shares)} names, one for each share")
    parts = [Decimal(str(share)) for share in shares]
    if any(part < 0 for part in parts) or sum(parts) == 0:
        raise ValueError("expected shares of zero or more, not all of them zero")
    unit = Decimal(1) / 10**decimals
    if amount % unit != 0:
        raise ValueError(f"the amount has more than {decimals} decimals")
    units = int(abs(amount) / unit)
    exact = [units * part / sum(parts) for part in parts]
    whole = [int(each) for each in exact]
    most = sorted(range(len(parts)), key=lambda n: exact[n] - whole[n], reverse=True)
    for n in most[: units - sum(whole)]:
        whole[n] += 1
    sign = -1 if amount < 0 else 1
    made = [f"{sign * each * unit:.{decimals}f}" for each in whole]
    return [{"name": names[n] if names else f"share {n + 1}", "amount": text} for n, text in enumerate(made)]
