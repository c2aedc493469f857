"""What somebody has changed in the drawer, as the page sends it."""

from uuid import UUID

from django.core.exceptions import BadRequest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hitlchat.upstreams.changes import USUAL, Change, settled
from hitlchat.upstreams.models import ComposedTool

# All tools of two servers that offer as many as one may.
MOST_CHANGES = 10_000
# What is no number of seconds, for what checks the change to say so.
NO_NUMBER = -1


def stamp(row: ComposedTool) -> str:
    """Of all that a person sees of the tool before they change it: its record, and its settings."""
    return f"{row.seen_digest}.{settled(row)}"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Wish(_Strict):
    """What to make of one tool; what is not there stays as it is. `stamp`: of the tool as it stood on the page."""

    tool: UUID
    stamp: str = Field(pattern=r"^[0-9a-f]{64}\.[0-9a-f]{64}$")
    exposed: bool | None = None
    alias: str | None = None
    description: str | None = None
    hitl_mode: str | None = None
    prompt_template: str | None = None
    condition: str | None = None
    deadline_seconds: str | None = Field(default=None, max_length=20)
    signed_in_only: bool | None = None
    warnings_read: bool = False

    def change(self) -> Change:
        digest, _, settled = self.stamp.partition(".")
        fields = self.model_dump(exclude={"stamp"}) | {"deadline_seconds": self._seconds()}
        return Change(digest=digest, settled=settled, **fields)

    def _seconds(self) -> int | None:
        """As it was typed; empty is the usual time."""
        text = self.deadline_seconds
        if text is None or not text.strip():
            return text if text is None else USUAL
        return int(text) or NO_NUMBER if text.strip().isdecimal() else NO_NUMBER


class Offering(_Strict):
    """Exposure mode and ceiling, and both as they stood on the page."""

    mode: str = Field(max_length=20)
    ceiling: int
    was_mode: str = Field(max_length=20)
    was_ceiling: int


class Plan(_Strict):
    """`confirmed`: the digest of what was asked about lowering oversight, once somebody said yes to it."""

    changes: list[Wish] = Field(max_length=MOST_CHANGES)
    exposure: Offering | None = None
    confirmed: str = Field(default="", max_length=64)

    def listed(self) -> list[Change]:
        return [wish.change() for wish in self.changes]


def read(text: str) -> Plan:
    """BadRequest: no page of ours sends this."""
    try:
        return Plan.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "plan"
        raise BadRequest(f"{where}: {first['msg']}") from error
