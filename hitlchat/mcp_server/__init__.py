"""The built-in MCP server: other agents use the catalog and meet the same gate."""
