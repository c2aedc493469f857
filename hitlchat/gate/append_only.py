"""Rows that are written once: the product has no way to change or remove them."""

from typing import Any, NoReturn

from django.db import models


class AppendOnlyQuerySet(models.QuerySet[Any]):
    def update(self, **_: object) -> NoReturn:
        raise PermissionError("these rows are never changed")

    def delete(self) -> NoReturn:
        raise PermissionError("these rows are never deleted")


class AppendOnly(models.Model):
    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        abstract = True

    # Not domain flow, but a bolt: both would go past the query set.
    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise PermissionError("this row is never changed")
        super().save(*args, **kwargs)

    def delete(self, *_: object, **__: object) -> NoReturn:
        raise PermissionError("this row is never deleted")
