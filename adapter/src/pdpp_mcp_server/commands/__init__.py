"""Commands of a client: connect, status, read, mcp."""
