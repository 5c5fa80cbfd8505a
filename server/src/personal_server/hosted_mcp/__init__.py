"""The adapter served at `/mcp`."""
