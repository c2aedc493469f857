"""An MCP server whose tools are what a file says at that moment: `changing_server.py http --port 8480 TOOLS LOG`.

TOOLS is a JSON object of names and descriptions. LOG gets a line for every request that matters.
"""

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import Tool

FILES: dict[str, Path] = {}


def log(line: str) -> None:
    with FILES["log"].open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def echo(text: str = "nothing") -> str:
    log(f"call {text}")
    return text


def other(text: str = "nothing") -> str:
    log(f"other {text}")
    return text


def fail(why: str = "no reason") -> str:
    log("fail")
    raise ToolError(why)


async def slow(ctx: Context, seconds: float = 30) -> str:
    log("slow began")
    for step in range(10):
        await ctx.report_progress(step + 1, 10, "on the way")
        await asyncio.sleep(seconds / 10)
    log("slow ended")
    return "done"


def refund(order: str) -> str:
    return f"refunded {order}"


FUNCTIONS: dict[str, Any] = {each.__name__: each for each in (echo, other, fail, slow, refund)} | {"list": other}


class Changing(MCPServer):
    async def list_tools(self) -> list[Tool]:
        log("list")
        self.shape()
        return await super().list_tools()

    def shape(self) -> None:
        for name in FUNCTIONS:
            if name in self.offered:
                self.remove_tool(name)
        self.offered = json.loads(FILES["tools"].read_text(encoding="utf-8"))
        for name, description in self.offered.items():
            self.add_tool(FUNCTIONS[name], name=name, description=description)

    offered: dict[str, str] = {}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("transport", choices=["stdio", "http"])
    parser.add_argument("tools", type=Path)
    parser.add_argument("log", type=Path)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    FILES.update(tools=options.tools, log=options.log)
    server = Changing("changing", version="1")
    server.shape()
    log("start")
    if options.transport == "stdio":
        server.run("stdio")
    else:
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        app = server.streamable_http_app(transport_security=security)
        uvicorn.run(app, port=options.port, log_level="error", timeout_graceful_shutdown=1)


if __name__ == "__main__":
    main()
