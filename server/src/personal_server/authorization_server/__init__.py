"""The OAuth server, one module per RFC."""
