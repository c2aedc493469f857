"""Connections to upstream MCP servers: over HTTP or a program's standard input and output, whatever the server does.

Knows nothing of tools that are re-exposed, of approvals, or of the database.
"""

from .bearer import Bearer, NoToken, Tokens
from .calling import ToolCall
from .child import can_be_found_with
from .listing import Listing, ListingFailed, UpstreamTool
from .outcomes import Answer, NeverRan, Outcome, Rejected, Unknown, Unreadable
from .pool import Pool
from .progress import OnProgress, Step
from .questions import OnQuestion, Question, Reply, unasked
from .spec import Limits, ServerSpec, Timeouts, TransportKind
from .status import State, Status
from .surroundings import AddressRules, Masking, Surroundings
from .trial import Trial, try_connect

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
