"""Connections to upstream MCP servers: over HTTP or a program's standard input and output, whatever the server does.

Knows nothing of tools that are re-exposed, of approvals, or of the database.
"""

from hitlchat.upstreams.wire.bearer import Bearer, NoToken, Tokens
from hitlchat.upstreams.wire.calling import ToolCall
from hitlchat.upstreams.wire.child import can_be_found_with
from hitlchat.upstreams.wire.listing import Listing, ListingFailed, UpstreamTool
from hitlchat.upstreams.wire.outcomes import Answer, NeverRan, Outcome, Rejected, Unknown, Unreadable
from hitlchat.upstreams.wire.pool import Pool
from hitlchat.upstreams.wire.progress import OnProgress, Step
from hitlchat.upstreams.wire.questions import OnQuestion, Question, Reply, unasked
from hitlchat.upstreams.wire.spec import Limits, ServerSpec, Timeouts, TransportKind
from hitlchat.upstreams.wire.status import State, Status
from hitlchat.upstreams.wire.surroundings import AddressRules, Masking, Surroundings
from hitlchat.upstreams.wire.trial import Trial, try_connect

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
