"""Resource-server bodies become the two faces of a tool result."""
