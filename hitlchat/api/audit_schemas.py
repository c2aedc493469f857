"""Schemas of the record in REST."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, Field

from hitlchat.api.schemas import Limit, Object, Shape, Text


class AuditEvent(Shape):
    id: int
    name: str
    at: datetime
    call_id: UUID | None
    tool_name: str | None
    actor: str | None
    means: str
    words: str = Field(description="What was changed, in one sentence; empty for events of calls.")
    data: Object
    batch: int | None = Field(description="The batch that it is sealed in; null: not yet.")


class AuditSeal(Shape):
    number: int
    first_event: int
    last_event: int
    count: int
    late_events: list[int] = Field(description="Events with lower ids than those of batches before.")
    hash: str
    previous: str
    key: str = Field(description="The fingerprint of the key that signed it.")
    signature: str
    sealed_at: datetime
    dropped_at: datetime | None = Field(description="When retention dropped its events; null: they are there.")


class SealFilter(BaseModel):
    before: int | None = Field(None, ge=1, le=2**63 - 1, description="The number of the last seal that you have.")
    limit: Limit = 100


class AuditFilter(BaseModel):
    name: Text | None = None
    call: UUID | None = None
    since: AwareDatetime | None = None
    before: int | None = Field(None, ge=1, le=2**63 - 1, description="The id of the last event that you have.")
    limit: Limit = 100
    format: Literal["json", "csv"] = "json"
