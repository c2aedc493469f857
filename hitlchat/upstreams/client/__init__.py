"""Connections to upstream MCP servers: over HTTP or a program's standard input and output, whatever the server does.

Knows nothing of tools that are re-exposed, of approvals, or of the database.
"""

from hitlchat.upstreams.client.calls import (
    Listing,
    ListingFailed,
    OnProgress,
    Step,
    Unread,
    UpstreamTool,
    named,
    too_large,
)
from hitlchat.upstreams.client.connection import Pool, Status, Trial, try_connect
from hitlchat.upstreams.client.http import Bearer, NoToken
from hitlchat.upstreams.client.link import Question, Reply, unasked
from hitlchat.upstreams.client.results import Answer, NeverRan, Outcome, Rejected, Unknown, Unreadable
from hitlchat.upstreams.client.spec import Limits, ServerSpec, Surroundings, Timeouts, TransportKind
from hitlchat.upstreams.client.stdio import can_be_found_with

__all__ = [
    "Answer",
    "Bearer",
    "Limits",
    "Listing",
    "ListingFailed",
    "NeverRan",
    "NoToken",
    "OnProgress",
    "Outcome",
    "Pool",
    "Question",
    "Rejected",
    "Reply",
    "ServerSpec",
    "Status",
    "Step",
    "Surroundings",
    "Timeouts",
    "TransportKind",
    "Trial",
    "Unknown",
    "Unread",
    "Unreadable",
    "UpstreamTool",
    "can_be_found_with",
    "named",
    "too_large",
    "try_connect",
    "unasked",
]
