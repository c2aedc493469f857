"""From a name to the addresses behind it: looked up once, and every one of them checked."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

from hitlchat.outbound.addresses import Address, literal
from tools_studio.network.places import Place
from tools_studio.network.policy import FetchPolicy

# A look-up cannot be stopped: those for tools must not fill the threads that the server itself needs.
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="tool-lookup")


async def resolve(policy: FetchPolicy, place: Place, called: str) -> list[str]:
    """The addresses to connect to, all of them allowed.

    PermissionError: the policy does not allow this. ValueError: `called`, as errors name the place, was not found.
    """
    policy.require(place)
    found = await _look_up(place)
    if not found:
        raise ValueError(f"{called} was not found")
    for address in found:
        if not policy.may_reach(place, address):
            raise PermissionError(f"{called} leads to {address}, an address that tools may not reach")
    return [str(address) for address in found]


async def _look_up(place: Place) -> list[Address]:
    if address := literal(place.host):
        return [address]
    loop = asyncio.get_running_loop()
    try:
        return await loop.run_in_executor(_THREADS, _ask_resolver, place.host, place.port)
    except (OSError, UnicodeError):
        return []


def _ask_resolver(host: str, port: int) -> list[Address]:
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(str(info[4][0]).partition("%")[0]) for info in infos))
