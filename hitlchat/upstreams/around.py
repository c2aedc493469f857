"""What the connections of this installation are told of it."""

from django.conf import settings

from hitlchat.outbound import addresses
from hitlchat.secrets.masking import Mask
from hitlchat.upstreams import ourselves
from hitlchat.upstreams.wire import Surroundings


def around() -> Surroundings:
    return Surroundings(addresses, Mask, allow_stdio=settings.MCP_ALLOW_STDIO, is_ours=ourselves.is_ours)
