"""A store with `pdpp import` and `pdpp sources` in front of it."""

from __future__ import annotations

import atexit
import io
import itertools
import json
from collections.abc import Callable, Generator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
)
from functools import cache
from pathlib import Path
from typing import Any

import cyclopts
import pytest

from pdpp_kernel.source_item import Data
from pdpp_mcp_server.commands.exits import run_app
from pdpp_sources.reader_process import CostlyPlaces, ReaderProcess
from personal_server.cli.import_command import import_command
from personal_server.cli.receipts import receipts_command
from personal_server.cli.sources import sources
from personal_server.collecting.imports import ImportPorts
from personal_server.domain.stored import Batch
from personal_server.storage.ports.whole_store import RecordStore
from tests.oracle.memory import MemoryStore

# One process reads for all tests of a worker, since a process takes half a second to start. It may
# open every file; that one which reads an export opens no other is proved beside the readers.
_opened = ExitStack()
atexit.register(_opened.close)


@cache
def _running() -> ReaderProcess:
    return _opened.enter_context(ReaderProcess(CostlyPlaces(), beneath=Path("/")))


def shared_reader() -> AbstractContextManager[ReaderProcess]:
    """The one of this worker."""
    return nullcontext(_running())


class FixedZone:
    """An owner who lives in one time zone, or is asked for it."""

    def __init__(
        self, known: str | None, *, machine: str = "UTC", answer: str | None = None
    ) -> None:
        self._known = known
        self._machine = machine
        self._answer = answer
        self.asked = 0

    def known(self) -> str | None:
        """See the port."""
        return self._known

    def machine(self) -> str:
        """See the port."""
        return self._machine

    def ask(self, default: str) -> str | None:
        """See the port."""
        self.asked += 1
        return self._answer

    def keep(self, name: str) -> None:
        """See the port."""
        self._known = name


class Machine:
    """A store with the commands of imports in front of it."""

    def __init__(self, store: RecordStore | None = None, zone: FixedZone | None = None) -> None:
        counter = itertools.count(1)
        self.zone = zone or FixedZone("UTC")
        self.store = store or MemoryStore()
        self.ports = ImportPorts(
            self.store,
            lambda: next(counter) * 1_000_000_000,
            lambda size: next(counter).to_bytes(size, "big"),
        )
        self.app = cyclopts.App()
        self.app.command(import_command(self._opened, shared_reader, self.zone), name="import")
        self.app.command(receipts_command(self._opened), name="receipts")
        self.app.command(sources)

    def _opened(self) -> AbstractContextManager[ImportPorts]:
        return nullcontext(self.ports)

    def run(self, *arguments: str | Path) -> tuple[int, Any]:
        """The exit code and the JSON printed."""
        with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()):
            code = run_app(self.app, [*map(str, arguments), "--json"])
        return code, json.loads(printed.getvalue() or "{}")

    def streams(self, *arguments: str | Path) -> Data:
        """The tallies of the one import made."""
        _, printed = self.run("import", *arguments)
        (report,) = printed["imports"]
        return report["streams"]

    def count(self) -> int:
        """Records stored."""
        with self.store.snapshot() as snapshot:
            return sum(held.record_count for held in snapshot.stored_streams())

    @contextmanager
    def interrupted_after(self, records: int) -> Generator[None]:
        """An owner who presses Ctrl-C when so many records are stored."""
        commit: Callable[..., Any] = self.store.commit

        def impatient(batch: Batch) -> Any:
            if self.count() >= records:
                raise KeyboardInterrupt
            return commit(batch)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.store, "commit", impatient)
            yield
