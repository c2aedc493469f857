"""JSON pointers (RFC 6901): the names of places in a value."""

from urllib.parse import unquote


def step(where: str, key: str | int) -> str:
    """The place of the member or element `key` of what stands at `where`."""
    return f"{where}/{str(key).replace('~', '~0').replace('/', '~1')}"


def fragment(reference: str) -> str | None:
    """The pointer in a reference such as `#/$defs/node`; None if it leads elsewhere or is a plain name."""
    if not reference.startswith("#"):
        return None
    found = unquote(reference[1:])
    return found if found == "" or found.startswith("/") else None
