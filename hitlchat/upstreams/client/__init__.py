"""Connections to upstream MCP servers: over HTTP or a program's standard input and output, whatever the server does.

Knows nothing of tools that are re-exposed, of approvals, or of the database.
"""
