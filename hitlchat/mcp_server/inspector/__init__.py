"""The Inspector: a client of our own MCP server, over HTTP like anyone else's, whose insides its user sees."""
