"""Telling clients apart by hints of the request: a hint chooses a format and nothing else.

Source: MCP adapter contract 14.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

openai_names = frozenset({"openai-mcp", "chatgpt"})
openai_hosts = ("chatgpt.com", "openai.com")


def is_openai(
    name: str | None, meta: Mapping[str, Any] | None, user_agent: str | None, client_id: str | None
) -> bool:
    """Whether any hint says that the client is OpenAI's."""
    if name is not None and name.lower().split("/")[0] in openai_names:
        return True
    if meta is not None and any(str(key).startswith("openai/") for key in meta):
        return True
    if user_agent is not None and user_agent.lower().startswith("openai-mcp"):
        return True
    return client_id is not None and _is_openai_url(client_id)


def _is_openai_url(client_id: str) -> bool:
    try:
        host = urlsplit(client_id).hostname or ""
    except ValueError:
        return False
    return any(host == known or host.endswith(f".{known}") for known in openai_hosts)
