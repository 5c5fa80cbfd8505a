"""Resource indicators: canonical and ours."""

from __future__ import annotations

import pytest

from pdpp_kernel.oauth_errors import InvalidTarget
from personal_server.consent.authorization_requests import canonical_resource

ORIGIN = "https://me.example"
ORIGINS = (ORIGIN, "http://127.0.0.1:7662", "http://localhost:7662")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ([], None),
        (["https://me.example"], ORIGIN),
        (["https://ME.example:443/"], ORIGIN),
        (["https://me.example/mcp/"], f"{ORIGIN}/mcp"),
        (["https://me.example/v1", "https://me.example/v1/"], f"{ORIGIN}/v1"),
        (["http://localhost:7662/mcp"], "http://localhost:7662/mcp"),
    ],
)
def test_ours_are_made_canonical(asked: list[str], found: str | None) -> None:
    assert canonical_resource(asked, ORIGIN, ORIGINS) == found


@pytest.mark.parametrize(
    "asked",
    [
        ["https://other.example"],
        ["https://me.example.evil.example"],
        ["https://user@me.example"],
        ["https://me.example:8443"],
        ["http://me.example"],
        ["https://me.example/mcp//"],
        ["https://me.example/MCP"],
        ["https://me.example/%6dcp"],
        ["https://me.example/mcp?x=1"],
        ["https://me.example/mcp#x"],
        ["https://me.example", "https://me.example/mcp"],
        ["me.example"],
        ["https://[::1"],
        ["https://me.example:x"],
        [""],
    ],
)
def test_anything_else_is_invalid_target(asked: list[str]) -> None:
    with pytest.raises(InvalidTarget):
        canonical_resource(asked, ORIGIN, ORIGINS)
