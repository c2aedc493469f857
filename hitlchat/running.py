"""The servers that run on this database, and whether this process has the same configuration as they have."""

import os
import platform
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from hitlchat.base import canonical, environment, lease
from hitlchat.base.background import Worker, me
from hitlchat.base.database import in_db
from hitlchat.models import ServerProcess

TABLE: Final = ServerProcess._meta.db_table  # noqa: SLF001 - public, despite its name
# The longest lease there is: one that ends later was taken by a clock that was wrong.
LONGEST: Final = timedelta(seconds=600)
DATA: Final = "HITLCHAT_DATA"
# What can happen where this setting is not the same.
HARM: Final = {
    "PROJECT_APPS": "Tools of apps that are missing here would be removed, and their waiting calls withdrawn.",
    "HITL_POLICIES": "Calls would be judged by other rules.",
    DATA: "Other keys, files and marks of the record would be used.",
}


def renew() -> None:
    """Put this server on the list for as long as a lease lasts. Servers that were killed are taken off."""
    ServerProcess.objects.filter(lease_until__lt=Now() - LONGEST).delete()
    facts = {"host": platform.node(), "pid": os.getpid(), "configuration": digests()}
    ServerProcess.objects.update_or_create(pk=me(), defaults={**facts, "lease_until": lease.renewed()})


def end() -> None:
    ServerProcess.objects.filter(pk=me()).delete()


def worker() -> Worker:
    every = settings.LEASE_SECONDS / 3
    return Worker("server", in_db(renew), every, longest=every)


def others() -> "QuerySet[ServerProcess]":
    """Return the servers that run, without this process."""
    # Before the first `migrate` there is no list.
    if TABLE not in connection.introspection.table_names():
        return ServerProcess.objects.none()
    soon = {"lease_until__gt": Now(), "lease_until__lte": Now() + LONGEST + lease.SLACK}
    return ServerProcess.objects.filter(**soon).exclude(pk=me())


def digests() -> dict[str, str]:
    """Return a digest of each setting that servers and commands must share."""
    values: dict[str, Any] = {
        # A settings module of the operator's may have added more of them.
        "PROJECT_APPS": [app for app in settings.INSTALLED_APPS if app not in settings.OWN_APPS],
        "HITL_POLICIES": settings.HITL_POLICIES,
        # By its content, as a folder has another path in each container.
        DATA: environment.random_text(settings.DATA_DIR / "folder_id"),
    }
    return {name: canonical.sha256(value) for name, value in values.items()}


def differences() -> Iterator[str]:
    """Yield a sentence for each setting in which this process differs from a server that runs."""
    own: dict[str, str] = {}
    for server in others():
        own = own or digests()
        for name, harm in HARM.items():
            if server.configuration.get(name) != own[name]:
                yield f"{name} differs from that of {server}. {harm}"
