from __future__ import annotations

from typing import Any

import pytest

from adapter.tests.rs_client.provider import ORIGIN, RESOURCE, SERVER, FakeProvider
from pdpp_mcp_server.rs_client.credentials import (
    ConnectNotSupported,
    MetadataFailure,
    ProviderUnavailable,
)
from pdpp_mcp_server.rs_client.discovery import discover


def test_the_endpoints_are_those_of_the_metadata() -> None:
    found = discover(FakeProvider().exchange, ORIGIN)
    assert found.token == f"{ORIGIN}/oauth/token"
    assert found.device_authorization == f"{ORIGIN}/oauth/device_authorization"
    assert found.public_clients == ("pdpp-cli",)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (RESOURCE, {"resource": "https://other.example", "authorization_servers": [ORIGIN]}),
        (RESOURCE, {"resource": f"{ORIGIN}/", "authorization_servers": [ORIGIN]}),
        (RESOURCE, {"resource": ORIGIN, "authorization_servers": []}),
        (RESOURCE, {"resource": ORIGIN, "authorization_servers": "x"}),
        (RESOURCE, {}),
        (SERVER, {**FakeProvider().metadata(), "issuer": "https://other.example"}),
        (SERVER, {**FakeProvider().metadata(), "token_endpoint": "https://evil.example/t"}),
        (SERVER, {**FakeProvider().metadata(), "revocation_endpoint": "http://me.example/r"}),
    ],
)
def test_documents_that_do_not_fit_together_are_refused(path: str, body: dict[str, Any]) -> None:
    provider = FakeProvider(changes={path: (200, body)})
    with pytest.raises(MetadataFailure):
        discover(provider.exchange, ORIGIN)


@pytest.mark.parametrize("path", [RESOURCE, SERVER])
def test_missing_documents_are_a_metadata_failure(path: str) -> None:
    provider = FakeProvider(changes={path: (404, {})})
    with pytest.raises(MetadataFailure):
        discover(provider.exchange, ORIGIN)


def test_a_server_without_token_endpoint_cannot_be_connected() -> None:
    metadata = {k: v for k, v in FakeProvider().metadata().items() if k != "token_endpoint"}
    provider = FakeProvider(changes={SERVER: (200, metadata)})
    with pytest.raises(ConnectNotSupported):
        discover(provider.exchange, ORIGIN)


def test_a_server_that_is_down_is_unavailable() -> None:
    with pytest.raises(ProviderUnavailable):
        discover(FakeProvider(down=True).exchange, ORIGIN)
