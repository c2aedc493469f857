"""From a server's question to the person whose call it belongs to."""

from mcp_types import ElicitRequestParams, ElicitResult

from hitlchat.upstreams.wire.exchange import CURRENT
from hitlchat.upstreams.wire.link import Link
from hitlchat.upstreams.wire.questions import question, unasked

BELONGS_TO_NONE = "several calls were under way, and nothing says to which of them it belongs"


async def ask(link: Link, params: ElicitRequestParams) -> ElicitResult:
    """Their answer. Declined when the question belongs to no single call, for it must not reach somebody else."""
    exchange = CURRENT.get()
    if exchange is None or not exchange.is_call:
        # Over standard input and output nothing names the call that a question belongs to.
        exchange = link.only_call()
    if exchange is None:
        link.note("asked a question that belongs to no single call: declined")
        for each in link.open:
            each.has_declined(BELONGS_TO_NONE)
        return unasked().as_result()
    try:
        asked = question(link.spec.name, params, link.mask)
    except ValueError as error:
        exchange.has_declined(str(error))
        return unasked().as_result()
    return (await exchange.ask(asked)).as_result()
