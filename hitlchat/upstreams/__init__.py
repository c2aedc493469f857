"""Upstream servers: external MCP servers whose tools are re-exposed through the gate."""
