"""How long the result of a tool may be: for every client, and as an owner may say for one.

Source: docs/contract/mcp-adapter.md 6.1.
Units: characters of the structured face.
"""

RESULT_CHARS = 20_000
MOST_RESULT_CHARS = 200_000
