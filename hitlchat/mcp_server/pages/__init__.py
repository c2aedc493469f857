"""Pages about the built-in MCP server: a person's tokens, and how to connect a client."""
