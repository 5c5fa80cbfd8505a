"""`pdpp watch-changes`: what changes on this machine, as it happens.

It is the owner's own: it reads the store, as the owner's feed would, and asks no server.
Source: docs/contract/resource-server.md 8, 15.2.
"""

from __future__ import annotations

import json as json_text
import shlex
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated

import msgspec
from cyclopts import Parameter

from pdpp_kernel.texts import counted
from pdpp_mcp_server.commands.tables import console
from personal_server.app.stores import Stores, open_stores
from personal_server.cli.kept_data import settings_of_kept
from personal_server.reading.changes import news_after
from personal_server.reading.owner import OwnerReads
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS

SETTLE_SECONDS = 1.0
LOOKED_SECONDS = 60.0
Flag = Annotated[bool, Parameter(negative="")]
StoresOpener = Callable[[], AbstractContextManager[Stores]]


class SeenChange(msgspec.Struct, frozen=True):
    """That something changed in a stream of an account."""

    stream: str
    connection_id: str
    connector_key: str
    change_count_hint: int
    changes_since: str


@dataclass
class Watch:
    """Looks at what changed since it looked last."""

    stores: Stores
    stream: str | None = None

    def __post_init__(self) -> None:
        self._reads = OwnerReads(self.stores.reads, self.stores.declarations)
        with self.stores.reads.snapshot(READ_DEADLINE_SECONDS) as snapshot:
            self._seen = snapshot.horizon

    def look(self) -> list[SeenChange]:
        """Each place that changed."""
        changes: list[SeenChange] = []
        with self._reads.open(READ_DEADLINE_SECONDS) as (snapshot, authority):
            keys = {source.order: source.connector_key for source in authority.sources}
            for key in snapshot.changed_after(self._seen):
                if key not in keys or self.stream not in (None, key[1]):
                    continue
                news = news_after(self.stores.reads, snapshot, authority, key, self._seen)
                if news is not None:
                    change = SeenChange(key[1], key[0], keys[key], news.count, news.bookmark)
                    changes.append(change)
            self._seen = snapshot.horizon
        return changes

    def follow(self, until: Callable[[], bool]) -> Iterator[SeenChange]:
        """What changes, for as long as is wanted; changes that come together are one."""
        count = self.stores.changed.count
        while not until():
            count = self.stores.changed.wait(count, min(LOOKED_SECONDS, SETTLE_SECONDS))
            yield from self.look()


@contextmanager
def _opened() -> Generator[Stores, None, None]:
    with open_stores(settings_of_kept(), serving=False) as stores:
        yield stores


def watch_command(open_: StoresOpener) -> Callable[..., None]:
    """The command `pdpp watch-changes`."""

    def watch_changes(
        *,
        stream: str | None = None,
        run: str | None = None,
        once: Flag = False,
        seconds: Annotated[float | None, Parameter(name="--for")] = None,
        json: Flag = False,
    ) -> None:
        """Print changes of your records as they happen, or run a command for each.

        The command gets the variables PDPP_STREAM, PDPP_CONNECTION_ID, PDPP_CHANGE_COUNT and
        PDPP_CHANGES_SINCE (a bookmark of the change feed), but never a record.

        Parameters
        ----------
        stream
            Only records of this stream.
        run
            A command with its arguments, to run for each stream that changed.
        once
            Stop after the first change.
        seconds
            Stop after this many seconds.
        json
            Print a line of JSON for each change.
        """
        words = shlex.split(run) if run is not None else []
        end = None if seconds is None else time.monotonic() + seconds
        with open_() as stores:
            watch = Watch(stores, stream)
            for change in watch.follow(lambda: end is not None and time.monotonic() >= end):
                _tell(change, words, json=json)
                if once:
                    return

    return watch_changes


def _tell(change: SeenChange, words: list[str], *, json: bool) -> None:
    if words:
        _run(change, words)
    elif json:
        print(json_text.dumps(msgspec.to_builtins(change)), flush=True)  # noqa: T201 (data)
    else:
        many = change.change_count_hint
        sentence = f"{change.stream}: {counted(many, 'record')} changed in {change.connection_id}"
        console().print(sentence, soft_wrap=True, markup=False)


def _run(change: SeenChange, words: list[str]) -> None:
    summary = (
        f"PDPP_STREAM={change.stream}",
        f"PDPP_CONNECTION_ID={change.connection_id}",
        f"PDPP_CHANGE_COUNT={change.change_count_hint}",
        f"PDPP_CHANGES_SINCE={change.changes_since}",
    )
    subprocess.run(["env", *summary, *words], check=False)  # noqa: S603, S607 (the owner's own words)


watch_changes = watch_command(_opened)
