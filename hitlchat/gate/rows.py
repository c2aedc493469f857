"""Reading rows without what that need not cost."""

from typing import TypeVar

from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)


def only(rows: QuerySet[M]) -> M | None:
    """The one row, where there can be no other; None without it. `first` would sort, which costs about as much again
    as the rest of such a query."""
    return next(iter(rows.order_by()[:1]), None)
