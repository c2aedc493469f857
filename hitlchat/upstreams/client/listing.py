"""The list of a server's tools, page by page, as far as anyone can want it."""

import json
from dataclasses import dataclass
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import PaginatedRequestParams, Tool
from pydantic import ValidationError

from hitlchat.upstreams.client.calling import within
from hitlchat.upstreams.client.exchange import told, where
from hitlchat.upstreams.client.opening import Live
from hitlchat.upstreams.client.spec import Masking

MOST_PAGES = 1000
# The SDK forgets no tool that it saw on one of several pages: after so many lists of other tools, it has to start anew.
MOST_LISTS = 4


@dataclass(frozen=True)
class UpstreamTool:
    """One tool as its server describes it; all of it is the server's word. `definition`: the whole JSON object."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    annotations: dict[str, Any]
    definition: dict[str, Any]


@dataclass(frozen=True)
class Listing:
    """The tools of a server, in its order.

    `cut`: why some are missing, empty if none are; of a name that comes twice only the first
    is there, and `repeated` names it.
    """

    tools: tuple[UpstreamTool, ...]
    cut: str = ""
    repeated: tuple[str, ...] = ()


class ListingFailed(Exception):
    """The list could not be read; in words for the administrator."""


async def listing(live: Live) -> Listing:
    """Read all pages. ListingFailed."""
    try:
        found = await within(_pages(live), live, live.link.spec.timeouts.listing)
    except (MCPError, RuntimeError) as error:
        raise ListingFailed(told(str(error), live.link.hide)) from error
    except ValidationError as error:
        raise ListingFailed(live.link.hide(f"the list of tools breaks the protocol: {where(error)}")) from error
    except TimeoutError as error:
        seconds = live.link.spec.timeouts.listing
        raise ListingFailed(f"the list of tools did not come within {seconds:g} seconds") from error
    live.names.update(tool.name for tool in found.tools)
    if len(live.names) > MOST_LISTS * live.link.spec.limits.tools:
        live.link.retire("the server offers other tools all the time")
    return found


async def _pages(live: Live) -> Listing:
    limits = live.link.spec.limits
    found: dict[str, UpstreamTool] = {}
    repeated: dict[str, None] = {}
    size, cursor, seen = 0, None, set[str]()
    for _ in range(MOST_PAGES):
        page = await live.session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        for tool in page.tools:
            read = _read(tool, live.link.mask)
            if read.name in found:
                repeated[read.name] = None
                continue
            size += len(json.dumps(read.definition, ensure_ascii=False).encode(errors="replace"))
            if len(found) == limits.tools:
                return _cut(found, repeated, f"the server offers more than {limits.tools:,} tools")
            if size > limits.listing_bytes:
                return _cut(found, repeated, f"the tools take more than {limits.listing_bytes:,} bytes")
            found[read.name] = read
        cursor = page.next_cursor
        if not cursor:
            return _cut(found, repeated, "")
        if cursor in seen:
            return _cut(found, repeated, "the server's pages run in a circle")
        seen.add(cursor)
    return _cut(found, repeated, f"the list has more than {MOST_PAGES:,} pages")


def _cut(found: dict[str, UpstreamTool], repeated: dict[str, None], why: str) -> Listing:
    return Listing(tuple(found.values()), why, tuple(repeated))


def _read(tool: Tool, mask: Masking) -> UpstreamTool:
    """Return a tool without what is secret in it: a server may write down what it was given."""
    definition = mask.value(tool.model_dump(by_alias=True, mode="json", exclude_unset=True))
    annotations = definition.get("annotations") or {}
    title = definition.get("title") or str(annotations.get("title") or "")
    texts = definition["name"], title, definition.get("description") or ""
    schemas = definition["inputSchema"], definition.get("outputSchema")
    return UpstreamTool(*texts, *schemas, annotations, definition)
