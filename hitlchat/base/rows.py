"""What every row of the program has."""

from django.db import models


class Row(models.Model):
    class Meta:
        abstract = True

    def __str__(self) -> str:
        """Name the row to who debugs: pages, records and logs name a column instead."""
        return f"{self._meta.verbose_name} {self.pk}"
