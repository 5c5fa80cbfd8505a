"""An import that replaces what the same file brought, killed at each of its writes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from personal_server.storage.ports.whole_store import RecordStore
from server.tests.cli.import_command.test_reported_tables import stored
from server.tests.cli.import_machine import Machine
from server.tests.cli.test_repeated_files import (
    CHAT,
    OTHER_KEY,
    by_recipe,
    hold_own,
    imported,
    with_one_row,
)
from server.tests.cli.test_second_look import RECIPE, reader

__all__ = ["reader"]  # a fixture
WRITES = ("commit", "put_state", "record_run", "delete_stream", "put_declaration")
MOST_WRITES = 40
THIRD_KEY = OTHER_KEY.replace('key = ["began"]', 'key = ["began", "number"]')


class Killed(BaseException):
    """The process is gone."""


@contextmanager
def killed_after(store: RecordStore, count: int) -> Generator[None]:
    """A process that ends behind so many writes."""
    left = count

    def dying(write: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return write(*args, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in filter(lambda each: hasattr(store, each), WRITES):
            patch.setattr(store, name, dying(getattr(store, name)))
        yield


def each_kill(begun: Callable[[], Machine], again: Callable[[Machine], object]) -> list[Machine]:
    """A machine for each write behind which its import was killed."""
    machines: list[Machine] = []
    for count in range(MOST_WRITES):
        machine = begun()
        machines.append(machine)
        with killed_after(machine.store, count):
            try:
                again(machine)
            except Killed:
                continue
            return machines
    raise AssertionError("more writes than are looked at")


def test_a_killed_import_of_another_key_goes_on_to_the_same_records(tmp_path: Path) -> None:
    def begun() -> Machine:
        machine = Machine()
        by_recipe(machine, tmp_path, RECIPE)
        return machine

    machines = each_kill(begun, lambda machine: by_recipe(machine, tmp_path, OTHER_KEY))
    assert len(machines) > 5
    for machine in machines:
        assert "stored_again" not in by_recipe(machine, tmp_path, OTHER_KEY)
        assert sorted(row["number"] for row in stored(machine)) == ["7", "8"]
        assert by_recipe(machine, tmp_path, THIRD_KEY)["replaced"] == {"rides": 2}


def test_what_a_killed_import_left_goes_where_the_recipe_was_edited_since(tmp_path: Path) -> None:
    machine = Machine()
    by_recipe(machine, tmp_path, RECIPE)
    with killed_after(machine.store, 5), pytest.raises(Killed):
        by_recipe(machine, tmp_path, OTHER_KEY)
    (tmp_path / "rides.toml").write_text(THIRD_KEY)
    for _ in range(2):
        imported(machine, tmp_path / "rides.csv", "--recipe", tmp_path / "rides.toml")
    assert sorted(row["number"] for row in stored(machine)) == ["7", "8"]


def test_what_another_program_wrote_meanwhile_stays(tmp_path: Path) -> None:
    machine = Machine()
    by_recipe(machine, tmp_path, RECIPE)
    with killed_after(machine.store, 5), pytest.raises(Killed):
        by_recipe(machine, tmp_path, OTHER_KEY)
    hold_own(machine)
    by_recipe(machine, tmp_path, OTHER_KEY)
    assert sorted(row["number"] for row in stored(machine)) == ["7", "8", "9"]
    assert "replaced" not in by_recipe(machine, tmp_path, RECIPE)
    assert "9" in {row["number"] for row in stored(machine)}


def test_a_killed_import_of_what_was_a_table_goes_on_to_the_same_records(tmp_path: Path) -> None:
    path = tmp_path / "message_1.json"
    path.write_text(CHAT)
    machines = each_kill(lambda: with_one_row(path), lambda machine: imported(machine, path))
    assert len(machines) > 5
    for machine in machines:
        assert not imported(machine, path).get("kept_tables")
        with machine.store.snapshot() as snapshot:
            counts = {each.stream: each.record_count for each in snapshot.stored_streams()}
        assert (counts["messages"], counts.get("message_1", 0)) == (1, 0)
