"""`pdpp import`, `sources` and `receipts` on the store of this machine; loaded when called."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import cyclopts

from personal_server.app.stores import open_stores
from personal_server.cli.importing import add_import_commands
from personal_server.cli.starting import settings_or_exit
from personal_server.collecting.imports import ImportPorts


@contextmanager
def open_imports() -> Generator[ImportPorts, None, None]:
    """The store of this machine, for an import."""
    with open_stores(settings_or_exit(), serving=False) as stores:
        yield ImportPorts(stores.records, stores.clock, stores.random_bytes)


_commands = cyclopts.App()
add_import_commands(_commands, open_imports)
import_command = _commands["import"]
sources_command = _commands["sources"]
receipts_command = _commands["receipts"]
