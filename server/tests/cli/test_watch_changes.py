from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from personal_server.app.stores import Stores, open_stores
from personal_server.cli.watch_changes import Watch, watch_command
from personal_server.settings import Settings
from tests.browser.site import fill


@pytest.fixture
def stores(tmp_path: Path) -> Generator[Stores, None, None]:
    with open_stores(Settings(data_dir=tmp_path / "data"), serving=False) as opened:
        fill(opened.records, 1_795_000_000_000_000_000)
        yield opened


def change(stores: Stores) -> tuple[str, str]:
    """A record goes; where."""
    with stores.records.snapshot() as snapshot:
        place = next(each for each in snapshot.stored_streams() if each.record_count)
        record = next(snapshot.export(place.connection_id, place.stream))
    stores.records.delete_record(place.connection_id, place.stream, record.key, 1)
    return place.connection_id, place.stream


def test_what_changed_since_it_looked_last_is_told_once(stores: Stores) -> None:
    watch = Watch(stores)
    assert watch.look() == []
    place = change(stores)
    (told,) = watch.look()
    assert (told.connection_id, told.stream) == place
    assert told.change_count_hint == 1
    assert watch.look() == []


def test_another_stream_is_not_told(stores: Stores) -> None:
    watch = Watch(stores, "no_such_stream")
    change(stores)
    assert watch.look() == []


@pytest.mark.parametrize("runs", [False, True])
def test_the_command_ends_after_the_first(
    stores: Stores, capfd: pytest.CaptureFixture[str], runs: bool
) -> None:
    @contextmanager
    def opened() -> Generator[Stores, None, None]:
        yield stores
        ended.append(time.monotonic())

    ended = list[float]()
    more: dict[str, Any] = {"run": "printenv PDPP_STREAM"} if runs else {"json": True}
    watching = threading.Thread(target=lambda: watch_command(opened)(once=True, **more))
    watching.start()
    place = None
    while watching.is_alive():
        place = change(stores)
        watching.join(2)
    assert ended
    assert place is not None
    said = capfd.readouterr().out.strip()
    assert (said if runs else json.loads(said)["stream"]) == place[1]
