"""Connections to upstream MCP servers, whatever the server does; without knowledge of approvals or the database."""
