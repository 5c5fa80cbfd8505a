"""`pdpp import` of feeds in this process: tests of what feeds give it and make of its report.

A process of its own takes most of a second of a processor for each run; `test_feeding` proves
that one, and what its end leaves.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from personal_server.app.feed_imports import FOLDER, ImportCommand
from personal_server.app.stores import Stores
from personal_server.cli.fed_import import run_import
from personal_server.cli.import_command import import_command
from personal_server.collecting.imports import ImportPorts
from personal_server.feeds.wanted_imports import WantedImport
from personal_server.settings import Settings
from server.tests.cli.import_machine import FixedZone, shared_reader


@dataclass(slots=True)
class ImportHere(ImportCommand):
    """The same command with the same words, over stores that are open."""

    stores: Stores

    @classmethod
    def over(cls, stores: Stores, settings: Settings) -> ImportHere:
        return cls(settings.data_dir / FOLDER, {}, stores)

    def __call__(self, feed_id: str, wanted: WantedImport) -> Mapping[str, Any]:
        command = import_command(self._opened, shared_reader, FixedZone("UTC"))
        with (
            self._claimed(feed_id),
            redirect_stdout(io.StringIO()) as printed,
            redirect_stderr(io.StringIO()),
        ):
            run_import(command, wanted)
        return json.loads(printed.getvalue())

    def _opened(self) -> AbstractContextManager[ImportPorts]:
        stores = self.stores
        return nullcontext(ImportPorts(stores.records, stores.clock, stores.random_bytes))
