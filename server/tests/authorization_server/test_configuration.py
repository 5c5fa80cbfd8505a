"""Pre-registered clients follow the configuration."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from personal_server.authorization_server.configuration import (
    BUILT_IN,
    PreRegistered,
    keep_pre_registered,
)
from personal_server.storage.authorization_rows import ClientRow


def keep(server: Any, *clients: PreRegistered) -> dict[str, ClientRow]:
    configuration = replace(server.configuration, pre_registered=clients)
    keep_pre_registered(server.store, configuration, server.now_ns, server.bytes_of)
    return {row.client_id: row for row in server.rows(ClientRow)}


def test_clients_come_change_and_go_with_the_configuration(server: Any) -> None:
    first = keep(server, *BUILT_IN, PreRegistered("mine", "Mine", ("https://a.example/cb",)))
    assert first.keys() == {"pdpp-cli", "pdpp-owner-cli", "mine"}
    second = keep(server, *BUILT_IN, PreRegistered("mine", "Renamed", ("https://b.example/cb",)))
    assert (second["mine"].name, second["mine"].client_ref) == (
        "Renamed",
        first["mine"].client_ref,
    )
    assert keep(server, *BUILT_IN).keys() == {"pdpp-cli", "pdpp-owner-cli"}


@pytest.mark.parametrize("client_id", ["pdpp-cli", "pdpp-owner-cli"])
def test_only_the_owner_client_may_ask_for_the_owner_profile(server: Any, client_id: str) -> None:
    row = keep(server, *BUILT_IN)[client_id]
    assert ("pdpp:owner" in row.grant_types) is (client_id == "pdpp-owner-cli")
