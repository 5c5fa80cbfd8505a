"""Clients that the owner set up by hand: the `[[clients]]` tables of `config.toml`.

```toml
[[clients]]
client_id = "notes"
client_name = "Notes app"
redirect_uris = ["http://127.0.0.1/callback"]
```
"""

from __future__ import annotations

from typing import Any, cast

from personal_server.app.configuration import Configuration
from personal_server.authorization_server.configuration import PreRegistered
from personal_server.errors import StorageUnavailable

_TEXTS = ("client_id", "client_name")


def configured_clients(configuration: Configuration) -> tuple[PreRegistered, ...]:
    """The clients of the file.  Raises: StorageUnavailable for a table that is not one."""
    return tuple(_client(table) for table in configuration.clients)


def _client(table: dict[str, Any]) -> PreRegistered:
    texts = [table.get(name) for name in _TEXTS]
    redirects = table.get("redirect_uris", [])
    if set(table) - {*_TEXTS, "redirect_uris"} or not all(
        isinstance(text, str) and text for text in (*texts, *_each(redirects))
    ):
        raise StorageUnavailable(
            "A [[clients]] table of config.toml has client_id, client_name and redirect_uris."
        )
    return PreRegistered(str(texts[0]), str(texts[1]), tuple(map(str, _each(redirects))))


def _each(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [None]
