"""The ways in which a call can be asked about, and which of them it is."""

from enum import StrEnum

from hitlchat.gate import deciders
from hitlchat.gate.models import Tool
from hitlchat.mcp_server.asked import Asked
from hitlchat.mcp_server.models import WithoutElicitation
from hitlchat.mcp_server.question import Question


class Way(StrEnum):
    """How a call is asked about."""

    FORM = "form"  # the client asks its user
    PAGE = "page"  # the client sends its user to the page of the approval
    INBOX = "inbox"  # the client waits while its user is asked here
    LINK = "link"  # the client gets a link, and comes back
    DENY = "deny"


def way(asked: Asked, tool: Tool, question: Question | None = None) -> Way:
    """By what the client can do, what the call may be decided by, and what its token says for when neither helps.
    `question`: the one that is open, if the call is on record already."""
    if question is None:
        enough = asked.access.attended and deciders.will_do(tool)
    else:
        enough = question.fits and question.word_will_do
    if asked.asks_forms and enough:
        return Way.FORM
    if asked.opens_urls:
        return Way.PAGE
    match asked.access.without_elicitation:
        case WithoutElicitation.URL:
            return Way.LINK
        case WithoutElicitation.INBOX:
            return Way.INBOX
        case WithoutElicitation.DENY:
            # Its user is there, and only must not answer through the client.
            return Way.INBOX if asked.asks_forms else Way.DENY
