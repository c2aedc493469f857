"""An upstream server, made with the official SDK: `python -m bench.shop TOOLS [PORT]`.

Prints its port and serves until its input ends. Two tools answer with as many characters as they are asked for; the
others differ in name and description.
"""

import logging
import socket
import sys
import threading

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings


def answer(size: int = 1024) -> str:
    """Say something of this size."""
    return "x" * size


def other(order_id: str, amount: float, reason: str = "") -> str:
    return f"{order_id} {amount} {reason}"


def main() -> None:
    logging.disable()
    shop = MCPServer("shop", version="1")
    for name in ("free", "gated"):
        shop.add_tool(answer, name=name)
    for number in range(int(sys.argv[1]) - 2):
        shop.add_tool(other, name=f"other_{number}", description=f"Look at the orders of customer {number}.")
    # With its protocol named, or asyncio would leave Nagle's algorithm on, which waits 40 ms for every answer.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0))
    app = shop.streamable_http_app(transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))

    def end() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end, daemon=True).start()
    print(listening.getsockname()[1], flush=True)
    server.run(sockets=[listening])


if __name__ == "__main__":
    main()
