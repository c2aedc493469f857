"""The list of a server's tools, read page by page, entry by entry."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from hitlchat.base.sentences import translatable
from hitlchat.upstreams.client.calls import Refusal, within
from hitlchat.upstreams.client.link import Exchange, Link, in_words, where
from hitlchat.upstreams.client.results import complaint

MOST_PAGES = 1000
# The SDK never forgets a tool of a list in pages: after this many lists of other tools a new connection is due.
MOST_LISTS = 4
MOST_NAMED = 5


@dataclass(frozen=True)
class UpstreamTool:
    """One tool as its server describes it, untrusted. `definition`: the whole JSON object."""

    name: str
    definition: dict[str, Any]


@dataclass(frozen=True)
class Listing:
    """The tools of a server, in its order. `cut`: why the list is incomplete; `repeated`: names that came more than
    once, of which the first counts; `unread`: why entries were left out, by name or place.
    """

    tools: tuple[UpstreamTool, ...]
    cut: str = ""
    repeated: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def trouble(self) -> str:
        """Return what is missing and why, in words; empty if nothing is."""
        missing = [self.cut] if self.cut else []
        if self.unread:
            entries = named(f"{name} ({why})" for name, why in self.unread.items())
            missing.append(translatable(f"entries that cannot be read: {entries}"))
        return "; ".join(missing)


def named(names: Iterable[str], longest: int = 120) -> str:
    given = list(names)
    shown = ", ".join(ascii(name[:longest])[1:-1] for name in given[:MOST_NAMED])
    return f"{shown} and {len(given) - MOST_NAMED:,} more" if len(given) > MOST_NAMED else shown


class ListingFailed(Exception):
    """The list could not be read; the message is for administrators. `is_refusal`: a new connection may help."""

    def __init__(self, reason: str, *, is_refusal: bool = False) -> None:
        super().__init__(reason)
        self.is_refusal = is_refusal


async def listing(link: Link) -> Listing:
    """Read all pages. Raises: ListingFailed, if not even the first can be read"""
    reading = _Reading(link)
    exchange = Exchange(link.spec.timeouts.listing, tidy=reading.tidy)
    try:
        await within(reading.read(), link, exchange)
    except (MCPError, RuntimeError, ValidationError, TimeoutError) as error:
        late = f"the list of tools did not come within {link.spec.timeouts.listing:g} seconds"
        why = in_words(error, link.hide, about="the list of tools", late=late)
        # Check soon whether the server still takes requests over this connection.
        link.doubted.set()
        if not reading.pages or link.dropped.is_set():
            is_refusal = isinstance(error, MCPError) and Refusal.of(error, exchange).may_be_of_the_session
            raise ListingFailed(why, is_refusal=is_refusal) from error
        reading.cut = translatable(f"the list is incomplete, since a later page could not be read: {why}")
    found = reading.listing()
    link.tool_names.update(tool.name for tool in found.tools)
    if len(link.tool_names) > MOST_LISTS * link.spec.limits.tools:
        link.retire("the server's list of tools keeps changing")
    return found


class _Reading:
    """The part of a list of tools that has been read, page by page."""

    def __init__(self, link: Link) -> None:
        self._link, self._limits = link, link.spec.limits
        self._found: dict[str, UpstreamTool] = {}
        self._repeated: dict[str, None] = {}
        self._unread: dict[str, str] = {}
        self._size = self._entries = 0
        self._listed: list[str] = []
        self.pages, self.cut = 0, ""

    def listing(self) -> Listing:
        unread = {name: why for name, why in self._unread.items() if name not in self._found}
        return Listing(tuple(self._found.values()), self.cut, tuple(self._repeated), unread)

    async def read(self) -> None:
        cursor: str | None = None
        first: types.ListToolsResult | None = None
        seen = set[str]()
        for _ in range(MOST_PAGES):
            # An empty cursor is a cursor too.
            params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
            page = await self._link.session.list_tools(params=params)
            if cursor == "" and first is not None and page.tools == first.tools:
                # The server ignored the empty cursor and started again: the list is complete.
                return
            first = first or page
            self._take(page.tools)
            self.pages += 1
            cursor = page.next_cursor
            if self.cut or cursor is None:
                return
            if cursor in seen:
                self.cut = "the server's pages form a loop"
                return
            seen.add(cursor)
        self.cut = f"the list has more than {MOST_PAGES:,} pages"

    def tidy(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a raw page without the parts that cannot be read, which are noted."""
        entries, cursor = result.get("tools"), result.get("nextCursor")
        if not isinstance(entries, list):
            return result
        if cursor is not None and not isinstance(cursor, str):
            self.cut = "the server's cursor for the next page cannot be read"
            result = {key: value for key, value in result.items() if key != "nextCursor"}
        readable = [entry for entry in entries if self._is_readable(entry)]
        self._listed = [entry["name"] for entry in readable]
        return {**result, "tools": readable}

    def _is_readable(self, entry: Any) -> bool:
        self._entries += 1
        why = _fault(entry, self._link)
        if why:
            name = entry.get("name") if isinstance(entry, dict) else None
            given = isinstance(name, str) and name.strip()
            self._leave_out(str(name) if given else f"entry {self._entries:,}", why)
        return not why

    def _leave_out(self, name: str, why: str) -> None:
        if len(self._unread) < self._limits.tools:
            self._unread.setdefault(self._link.hide(name), self._link.hide(why))

    def _take(self, tools: list[types.Tool]) -> None:
        offered = {tool.name for tool in tools}
        for name in self._listed:
            if name not in offered:
                # The SDK leaves it out, as the protocol requires.
                self._leave_out(name, "its x-mcp-header cannot be used")
        for tool in tools:
            # Masked, since a server may repeat its credentials here.
            definition = self._link.mask.value(tool.model_dump(by_alias=True, mode="json", exclude_unset=True))
            read = UpstreamTool(definition["name"], definition)
            if read.name in self._found:
                self._repeated[read.name] = None
                continue
            self._size += len(json.dumps(read.definition, ensure_ascii=False).encode(errors="replace"))
            if len(self._found) == self._limits.tools:
                self.cut = f"the server offers more than {self._limits.tools:,} tools"
                return
            if self._size > self._limits.listing_bytes:
                self.cut = f"the tools take more than {self._limits.listing_bytes:,} bytes"
                return
            self._found[read.name] = read


def _fault(entry: Any, link: Link) -> str:
    """Return why an entry of a list cannot be read; empty if it can."""
    if not isinstance(entry, dict):
        return "it is not an object"
    if why := complaint(entry, link.spec.limits):
        return f"it {why}"
    page = {"tools": [entry], "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
    try:
        validate_server_result("tools/list", link.protocol_version, page)
        types.Tool.model_validate(entry, by_name=False)
    except ValidationError as error:
        return where(error).removeprefix("tools.0.")
    except (KeyError, ValueError):
        # For an unknown revision, the SDK makes the same checks itself.
        return ""
    return ""
