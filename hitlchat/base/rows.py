"""What every row of the program has."""

from django.db import models


class Row(models.Model):
    class Meta:
        abstract = True

    def __str__(self) -> str:
        """Return its name; of a row that has none, what it is and its key, which only whoever debugs reads."""
        return str(getattr(self, "name", "") or f"{self._meta.verbose_name} {self.pk}")
