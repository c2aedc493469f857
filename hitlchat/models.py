"""The server processes that run on this database."""

from django.db import models

from hitlchat.base.rows import Row


class ServerProcess(Row):
    """One running server. `configuration` has a digest of each setting that commands must share with it."""

    id = models.CharField(primary_key=True, max_length=32, editable=False)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    lease_until = models.DateTimeField(help_text="A server that was killed counts as running until then.")
    configuration = models.JSONField()

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"
