"""The oversight report, for administrators."""

from functools import partial
from typing import Literal

from ninja import Router

from hitlchat.api.auth import ApiRequest, administrator, only_after
from hitlchat.api.contract import Object
from hitlchat.insights import report
from hitlchat.insights.figures import Period

router = Router(tags=["insights"], by_alias=True)
router.add_decorator(only_after(partial(administrator, to="see the oversight report")))


@router.get("/report", response=Object)
def oversight_report(request: ApiRequest, period: Literal["7d", "4w", "3m"] = "4w") -> Object:
    """Return how people oversaw the tools in a period up to now: what was asked, who decided and how long it took, how
    the cards were read, what ran unasked and why, what people said looking back, and the part of the record that holds
    it. Times are in seconds.
    """
    return report.report(Period.of(period)).as_json
