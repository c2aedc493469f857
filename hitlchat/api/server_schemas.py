"""What the REST API takes and gives about upstream servers."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from hitlchat.api.schemas import Body, Shape, Text

TransportName = Literal["http", "stdio", "sse"]
StateName = Literal["new", "connecting", "up", "down", "sign-in", "unusable", "disabled"]


class Shown(Shape):
    """A header or a variable. `value` is null for a stored secret."""

    value: str | None
    secret: bool


class Given(Body):
    """A header or a variable. Without `value` the one that is stored stays."""

    value: str | None = None
    secret: bool = True


def _written_out(given: Any) -> Any:
    if given is None or isinstance(given, str):
        return {"value": given}
    if isinstance(given, dict):
        return given
    raise ValueError("expected a text, null, or an object with value and secret")


_VALUE_SCHEMA = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "value": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "secret": {"type": "boolean", "default": True},
            },
            "additionalProperties": False,
        },
        {"type": "null"},
    ],
    "description": "A text is a secret, kept sealed unless it is a reference such as `${TOKEN}`; null keeps what is "
    "stored.",
}
Values = dict[str, Annotated[Given, BeforeValidator(_written_out), WithJsonSchema(_VALUE_SCHEMA)]]


class ServerChange(Body):
    """Every field that an administrator decides; one that is left out stays as it is. `headers` and `env` are replaced
    as a whole: name those that are to stay, with null."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"enabled": False}, {"headers": {"Authorization": None, "X-Team": "${TEAM}"}}]}
    )

    name: Text = ""
    transport: TransportName = "http"
    url: Text = ""
    headers: Values = Field(default_factory=dict)
    command: Text = ""
    args: list[Text] = Field(default_factory=list)
    env: Values = Field(default_factory=dict)
    enabled: bool = True
    allow_private: bool = Field(default=False, description="Its public name may lead to a private address.")
    call_seconds: int = Field(default=60, description="How long one call may take: 1 to 3,600.")
    older_protocol: bool = Field(default=False, description="Speak 2025-11-25 or before: its newest is broken.")
    docs_url: Text = ""
    docs_adequate: bool = Field(
        default=True, description="A person found its documentation good enough, or none has looked."
    )
    gallery_entry: Text = ""
    confirmed_command_line: Text = Field(
        default="", description="For stdio: the `commandLine` of the 409 that came without it, word for word."
    )


class NewServer(ServerChange):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "shop",
                    "transport": "http",
                    "url": "https://shop.example/mcp",
                    "headers": {
                        "Authorization": "Bearer ${SHOP_TOKEN}",
                        "X-Team": {"value": "blue", "secret": False},
                    },
                },
                {
                    "name": "clock",
                    "transport": "stdio",
                    "command": "mcp-server-time",
                    "args": ["--local-timezone", "Europe/Berlin"],
                    "confirmedCommandLine": "mcp-server-time --local-timezone Europe/Berlin",
                },
            ]
        }
    )

    name: Text = Field(...)


class Server(Shape):
    """`status`, `reason` and what follows are what a process of this installation last saw."""

    name: str
    transport: TransportName
    url: str
    headers: dict[str, Shown]
    command: str
    args: list[str]
    env: dict[str, Shown]
    command_line: str | None = Field(description="What is started, as a shell would be told; null unless stdio.")
    enabled: bool
    allow_private: bool
    call_seconds: int
    older_protocol: bool
    docs_url: str
    docs_adequate: bool
    gallery_entry: str
    trust: str
    status: StateName
    reason: str
    last_error: str
    last_error_at: datetime | None
    latency_ms: float | None
    reported_at: datetime | None
    protocol_version: str
    told_name: str = Field(description="What the server calls itself.")
    told_version: str
    notes: list[str] = Field(description="The last lines of its standard error, and what was wrong with its output.")
    tool_count: int
    exposed_count: int
    withheld_count: int
    listing_note: str = Field(description="What of its list of tools was left out.")
    listed_at: datetime | None
    risk_level: int
    risk_reasons: list[str]
    created_at: datetime
    updated_at: datetime


class Tried(Shape):
    """`error` says in words what came in the way; `signIn`: the server wants someone to sign in."""

    ok: bool
    error: str
    sign_in: bool
    latency_ms: float | None
    protocol_version: str
    told_name: str
    told_version: str
    tool_count: int | None
    tools: list[str] = Field(description="The first hundred names.")
    notes: list[str]
