"""Connections to upstream MCP servers: over HTTP or a program's standard input and output, whatever the server does.

Knows nothing of tools that are re-exposed, of approvals, or of the database.
"""

from hitlchat.upstreams.client.calling import OnProgress, Step, ToolCall
from hitlchat.upstreams.client.child import can_be_found_with
from hitlchat.upstreams.client.connection import Pool, State, Status
from hitlchat.upstreams.client.elicitation import OnQuestion, Question, Reply, unasked
from hitlchat.upstreams.client.http import Bearer, NoToken, Tokens
from hitlchat.upstreams.client.listing import Listing, ListingFailed, UpstreamTool
from hitlchat.upstreams.client.results import Answer, NeverRan, Outcome, Rejected, Unknown, Unreadable
from hitlchat.upstreams.client.spec import (
    AddressRules,
    Limits,
    Masking,
    ServerSpec,
    Surroundings,
    Timeouts,
    TransportKind,
)
from hitlchat.upstreams.client.trial import Trial, try_connect

__all__ = [
    "AddressRules",
    "Answer",
    "Bearer",
    "Limits",
    "Listing",
    "ListingFailed",
    "Masking",
    "NeverRan",
    "NoToken",
    "OnProgress",
    "OnQuestion",
    "Outcome",
    "Pool",
    "Question",
    "Rejected",
    "Reply",
    "ServerSpec",
    "State",
    "Status",
    "Step",
    "Surroundings",
    "Timeouts",
    "Tokens",
    "ToolCall",
    "TransportKind",
    "Trial",
    "Unknown",
    "Unreadable",
    "UpstreamTool",
    "can_be_found_with",
    "try_connect",
    "unasked",
]
