"""A well-behaved MCP server, made with the official SDK: `honest_server.py http --port 8460 --era 2025 --log FILE`.

Each tool writes a line to the log when it begins and, where it matters, another one when it ends or is cancelled.
"""

import argparse
import asyncio
import base64
import os
import signal
import struct
import zlib
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Image, Resolve
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult
from pydantic import BaseModel
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

MODERN = b"2026-07-28"


def _crc(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))


def png(width: int, height: int) -> bytes:
    """A picture of one colour, from light to dark."""
    rows = b"".join(b"\0" + bytes([255 - 200 * y // height, 160, 120]) * width for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    chunks = [struct.pack(">I", len(data)) + name + data + _crc(name + data) for name, data in parts]
    return bytes.fromhex("89504e470d0a1a0a") + b"".join(chunks)


WIDTH = 240
PICTURE = png(WIDTH, 135)
SOUND = b"RIFF" + bytes(40)

server = MCPServer("honest", version="1.2.3")
log_file = Path(os.devnull)


class Colour(BaseModel):
    colour: str


def log(line: str) -> None:
    with log_file.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def which_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


@server.tool()
def echo(text: str) -> str:
    """Say it back."""
    log(f"echo {text}")
    return text


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    log("add")
    return a + b


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    log("fail")
    raise ValueError(why)


@server.tool()
def picture() -> Image:
    """A small picture."""
    return Image(data=PICTURE, format="png")


class Album(BaseModel):
    """What `album` says beside its blocks."""

    pages: int


@server.tool()
def album(hint: str = "") -> Annotated[CallToolResult, Album]:
    """One block of each kind; `hint` is what the file holds."""
    picture, sound = (base64.b64encode(data).decode() for data in (PICTURE, SOUND))
    uri, drawing = "file:///notes/drawing.svg", base64.b64encode(f"<svg>{hint}</svg>".encode()).decode()
    blocks = [
        {"type": "text", "text": "Two pages.", "annotations": {"audience": ["user"]}},
        {"type": "image", "data": picture, "mimeType": "image/png"},
        {"type": "audio", "data": sound, "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///notes/a.txt", "name": "a.txt"},
        {"type": "resource", "resource": {"uri": "file:///notes/b.txt", "mimeType": "text/plain", "text": "Bread"}},
        {"type": "resource", "resource": {"uri": uri, "mimeType": "image/svg+xml", "blob": drawing}},
    ]
    return CallToolResult.model_validate({"content": blocks, "structuredContent": {"pages": 2}})


@server.tool()
def large(size: int) -> str:
    """So many bytes."""
    log("large")
    return "x" * size


@server.tool()
async def slow(seconds: float, ctx: Context) -> str:
    """Take so long, in ten steps."""
    log("slow began")
    try:
        for step in range(10):
            await asyncio.sleep(seconds / 10)
            await ctx.report_progress(step + 1, 10, f"step {step + 1}")
    except asyncio.CancelledError:
        log("slow cancelled")
        raise
    log("slow ended")
    return "done"


@server.tool()
async def paint(colour: Annotated[ElicitationResult[Colour], Resolve(which_colour)]) -> str:
    """Ask for a colour."""
    match colour:
        case AcceptedElicitation(data=data):
            return f"painted {data.colour}"
        case other:
            return f"not painted: {other.action}"


@server.tool()
def environment() -> dict[str, str]:
    """What the program was given."""
    return {**os.environ, "cwd": str(Path.cwd()), "files": ",".join(os.listdir())}  # noqa: PTH208


def offer_one_more() -> None:
    server.add_tool(lambda: "new", name="newcomer", description="Was not there before.")


@server.tool()
async def grow(ctx: Context) -> str:
    """Offer one more tool from now on."""
    offer_one_more()
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.tool()
def die() -> str:
    """End without a word."""
    log("die")
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


class OlderEra:
    """Answers as a server that has never heard of the newer protocol."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (b"mcp-protocol-version", MODERN) in scope["headers"]:
            error = {"code": -32000, "message": "Bad Request: Unsupported protocol version"}
            await JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class LateToListen:
    """Tells of no change before its tools were read once, and has one more by then."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._was_read = app, asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = dict(scope["headers"]).get(b"mcp-method") if scope["type"] == "http" else None
        if method == b"subscriptions/listen":
            await self._was_read.wait()
            offer_one_more()
        await self._app(scope, receive, send)
        if method == b"tools/list":
            self._was_read.set()


class Guarded:
    """Lets in whoever sends this Authorization header."""

    def __init__(self, app: ASGIApp, expected: str) -> None:
        self._app, self._expected = app, expected.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (b"authorization", self._expected) not in scope["headers"]:
            headers = {"WWW-Authenticate": "Bearer"}
            await JSONResponse({"error": "invalid_token"}, 401, headers)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def application(options: argparse.Namespace) -> Any:
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app: ASGIApp = (
        server.sse_app(transport_security=security)
        if options.transport == "sse"
        else server.streamable_http_app(transport_security=security, json_response=options.json)
    )
    app = OlderEra(app) if options.era == "2025" else app
    app = LateToListen(app) if options.late_to_listen else app
    return Guarded(app, options.authorization) if options.authorization else app


def main() -> None:
    global log_file  # noqa: PLW0603
    parser = argparse.ArgumentParser()
    parser.add_argument("transport", choices=["stdio", "http", "sse"])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--era", choices=["2025", "both"], default="both")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--late-to-listen", action="store_true")
    parser.add_argument("--authorization", default="")
    parser.add_argument("--log", type=Path, default=log_file)
    options = parser.parse_args()
    log_file = options.log
    if options.transport == "stdio":
        server.run("stdio")
    else:
        uvicorn.run(
            application(options),
            port=options.port,
            log_level="error",
            timeout_graceful_shutdown=1,
        )


if __name__ == "__main__":
    main()
