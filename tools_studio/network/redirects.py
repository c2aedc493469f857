"""Where an answer sends a request on to, and what of the request goes along."""

from httpx2 import InvalidURL

from tools_studio.network.asked import Asked
from tools_studio.network.places import parse, place_of
from tools_studio.network.policy import FetchPolicy

STATUSES = (301, 302, 303, 307, 308)


def target_of(status: int, headers: list[tuple[bytes, bytes]]) -> bytes | None:
    """What the answer names as the next place, if it is a redirect."""
    if status not in STATUSES:
        return None
    return next((value for name, value in headers if name.lower() == b"location"), None)


def following(policy: FetchPolicy, asked: Asked, status: int, location: bytes) -> Asked:
    """The next request; the policy is still to be asked about its place.

    ValueError: it leads nowhere. PermissionError: following it would give away what belongs to the first origin.
    """
    here = asked.place
    try:
        url = parse(str(asked.url.join(location.decode()))).copy_with(fragment=None)
    except (ValueError, InvalidURL):
        raise ValueError(f"{here.host} redirects to a place that is no proper url") from None
    there = place_of(url)
    if here.scheme == "https" and there.scheme == "http" and not policy.covers(there):
        raise PermissionError(f"{here.host} redirects to plain http, which is followed only to hosts listed as {there}")
    onward = (asked.reading() if _asks_anew(asked.method, status) else asked).elsewhere(url)
    if there != here and onward.method not in ("GET", "HEAD"):
        raise PermissionError(
            f"{here.host} redirects a {onward.method} to another origin, {there}: only GET and HEAD are followed there"
        )
    policy.require_method(onward.method)
    return onward


def _asks_anew(method: str, status: int) -> bool:
    """Whether the next request is a GET, whatever this one was."""
    return (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST")
