"""Clients that the owner set up by hand: the `[[clients]]` tables of `config.toml`.

A table names a client and the addresses its codes go to: client_id, client_name, redirect_uris.
"""

from __future__ import annotations

from typing import Any, cast

from pdpp_kernel.errors import StorageUnavailable
from personal_server.authorization_server.configuration import PreRegistered
from personal_server.configuration_file import ConfigurationFile

_TEXTS = ("client_id", "client_name")


def configured_clients(configuration: ConfigurationFile) -> tuple[PreRegistered, ...]:
    """The clients of the file.  Raises: StorageUnavailable for a table that is not one."""
    return tuple(_client(table) for table in client_tables(configuration))


def client_tables(configuration: ConfigurationFile) -> list[object]:
    """What stands in the file as clients, which need not be tables."""
    return [] if configuration.clients is None else _each(configuration.clients)


def _client(found: object) -> PreRegistered:
    table = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    texts = [table.get(name) for name in _TEXTS]
    redirects = table.get("redirect_uris", [])
    if set(table) - {*_TEXTS, "redirect_uris"} or not all(
        isinstance(text, str) and text for text in (*texts, *_each(redirects))
    ):
        raise StorageUnavailable(
            "Each [[clients]] table of config.toml needs client_id, client_name and redirect_uris."
        )
    return PreRegistered(str(texts[0]), str(texts[1]), tuple(map(str, _each(redirects))))


def _each(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [None]
