"""Rotation of secrets: what an older key sealed is sealed anew with SECRET_KEY, so that the older key can go.

Fingerprints stay as they are: they tell one value from another, and approvals and versions of tools refer to them. What
is sealed for minutes only, such as an answer on its way to a server, is left to end by itself.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import QuerySet

from hitlchat.agent import endpoints
from hitlchat.agent.models import ModelEndpoint
from hitlchat.base.database import durable
from hitlchat.gate import stated
from hitlchat.gate.actor import CONSOLE
from hitlchat.gate.transition import note
from hitlchat.notices.models import KEY, URL, Receiver
from hitlchat.secrets import sealing
from hitlchat.upstreams import server_draft
from hitlchat.upstreams.models import SignIn, UpstreamServer
from hitlchat.upstreams.oauth import clients
from tools_studio import variables
from tools_studio.models import StoredVariable

ROTATED: Final = "settings.secrets_rotated"


@dataclass(frozen=True)
class Place:
    """Where something sealed is stored: in a column of rows, as one text or among a list of values.

    `of`: what the secrets are of. `name`: the column by which people know the row.
    """

    of: str
    rows: QuerySet[Any]
    column: str
    purpose: str
    name: str


PLACES: Final = (
    Place("models", ModelEndpoint.objects.exclude(key__startswith="${"), "key", endpoints.PURPOSE, "name"),
    Place("tools", StoredVariable.objects.exclude(fingerprint=""), "value", variables.PURPOSE, "name"),
    Place("servers", UpstreamServer.objects.all(), "headers", server_draft.PURPOSE, "name"),
    Place("servers", UpstreamServer.objects.all(), "env", server_draft.PURPOSE, "name"),
    Place("sign-ins", SignIn.objects.all(), "client_secret", clients.PURPOSE, "server__name"),
    Place("sign-ins", SignIn.objects.all(), "tokens", clients.PURPOSE, "server__name"),
    Place("webhooks", Receiver.objects.all(), "url", URL, "place"),
    Place("webhooks", Receiver.objects.all(), "secret", KEY, "place"),
    Place("webhooks", Receiver.objects.all(), "former_secret", KEY, "place"),
)


@dataclass
class Rotated:
    """How many secrets were sealed anew, by what they are of; and which no key that is named can read."""

    counts: Counter[str] = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)

    def anew(self, place: Place, name: str, sealed: str) -> str:
        """Return the text sealed with SECRET_KEY, or as it is if that cannot be done or need not."""
        try:
            found = sealing.anew(sealed, place.purpose) if sealed else ""
        except sealing.Unsealable:
            self.unreadable.append(f"{name} ({place.of})")
            return sealed
        self.counts[place.of] += found != sealed
        return found


def rotate() -> Rotated:
    """Seal anew, in one transaction, whatever an older key sealed, and put on record what servers are since."""
    rotated = Rotated()
    with durable():
        for place in PLACES:
            for pk, before, name in place.rows.order_by("pk").values_list("pk", place.column, place.name):
                after = _each_anew(rotated, place, name, before)
                # A row that somebody changes meanwhile is sealed with the newest key by that.
                if after != before:
                    place.rows.filter(pk=pk, **{place.column: before}).update(**{place.column: after})
        if counts := {of: count for of, count in rotated.counts.items() if count}:
            servers = UpstreamServer.objects.values_list("pk", flat=True)
            note(None, ROTATED, actor=CONSOLE, data={"rotated": counts, **stated.states("server", *servers)})
    return rotated


def _each_anew(rotated: Rotated, place: Place, name: str, stored: Any) -> Any:
    if isinstance(stored, str):
        return rotated.anew(place, name, stored)
    return [
        each | {"value": rotated.anew(place, f"{name}, {each['name']}", each["value"])} if each["sealed"] else each
        for each in stored
    ]
