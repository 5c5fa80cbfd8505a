from typing import Any

import pytest

from pdpp_mcp_server.tool_runs import is_openai


@pytest.mark.parametrize(
    "hints",
    [
        {"name": "openai-mcp"},
        {"name": "OpenAI-MCP/1.0.0"},
        {"name": "ChatGPT"},
        {"name": "chatgpt/2"},
        {"meta": {"openai/userAgent": "x"}},
        {"user_agent": "openai-mcp/1.0"},
        {"user_agent": "OpenAI-MCP"},
        {"client_id": "https://chatgpt.com/client.json"},
        {"client_id": "https://auth.openai.com/c"},
    ],
)
def test_any_one_hint_is_enough(hints: dict[str, Any]) -> None:
    assert told(**hints)


@pytest.mark.parametrize(
    "hints",
    [
        {},
        {"name": "chatgpt-clone"},
        {"name": "not-openai-mcp"},
        {"meta": {"x/openai/": 1}},
        {"user_agent": "Mozilla openai-mcp"},
        {"client_id": "chatgpt.com"},
        {"client_id": "https://chatgpt.com.evil.example/"},
        {"client_id": "https://evil.example/openai.com"},
        {"client_id": "https://[broken"},
    ],
)
def test_nothing_that_only_looks_like_one_counts(hints: dict[str, Any]) -> None:
    assert not told(**hints)


def told(
    name: str | None = None,
    meta: dict[str, object] | None = None,
    user_agent: str | None = None,
    client_id: str | None = None,
) -> bool:
    return is_openai(name, meta, user_agent, client_id)
