"""Accounts joined and parted: nothing is lost, nothing is taken before the other holds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdpp_kernel.errors import InvalidState
from pdpp_kernel.record import blob_references
from personal_server.collecting.account_moves import merge_accounts, part_accounts
from personal_server.collecting.connection_status import move_connection
from personal_server.collecting.receipts import receipts_of
from personal_server.domain.connection import Connection
from server.tests.cli.import_machine import Machine
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import as_folder
from sources.tests.specimens.mail import MAIL

OTHER = MAIL.replace(b"a1@", b"b1@").replace(b"a2@", b"b2@")


@pytest.fixture
def machine() -> Machine:
    return Machine()


def account(machine: Machine, name: str) -> Connection:
    with machine.store.snapshot() as snapshot:
        (found,) = [c for c in snapshot.connections() if c.display_name == name]
    return found


def held(machine: Machine, one: Connection) -> dict[str, dict[str, object]]:
    with machine.store.snapshot() as snapshot:
        return {
            f"{each.stream} {record.key}": dict(record.data)
            for each in snapshot.stored_streams()
            if each.connection_id == one.connection_id
            for record in snapshot.export(one.connection_id, each.stream)
        }


def bring(machine: Machine, folder: Path, name: str, content: bytes) -> Connection:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.mbox"
    path.write_bytes(content)
    machine.streams(path, "--connection", name)
    return account(machine, name)


def test_a_merged_account_holds_all_and_the_other_is_gone(machine: Machine, tmp_path: Path) -> None:
    one = bring(machine, tmp_path, "One", MAIL)
    two = bring(machine, tmp_path, "Two", MAIL + OTHER)
    expected = held(machine, one) | held(machine, two)
    both = len(held(machine, one).keys() & held(machine, two).keys())
    assert both
    came, erased = merge_accounts(machine.ports, one, two)
    assert held(machine, two) == expected
    assert (came, erased) == (0, both)
    with machine.store.snapshot() as snapshot:
        assert [c.connection_id for c in snapshot.connections()] == [two.connection_id]


def test_files_and_receipts_come_along(machine: Machine, tmp_path: Path) -> None:
    one = bring(machine, tmp_path, "One", MAIL)
    two = bring(machine, tmp_path, "Two", OTHER.replace(b"JVBERi0xLjQK", b"JVBERi0xLjUK"))
    expected = held(machine, one) | held(machine, two)
    came, erased = merge_accounts(machine.ports, one, two)
    assert came == erased > 0
    assert held(machine, two) == expected
    blobs = {blob for data in expected.values() for blob in blob_references(data)}
    assert len(blobs) == 2
    for blob_id in blobs:
        assert machine.store.blob_upload(two.connection_id, blob_id) is not None
        assert machine.store.open_blob(blob_id) is not None
    names = {receipt["name"] for receipt in receipts_of(machine.store, two.connection_id)}
    assert names == {"One.mbox", "Two.mbox"}


def test_what_another_account_holds_is_taken_out(machine: Machine, tmp_path: Path) -> None:
    mixed = bring(machine, tmp_path, "Mixed", MAIL + OTHER)
    whole = held(machine, mixed)
    own = bring(machine, tmp_path, "Own", OTHER)
    taken = part_accounts(machine.ports, mixed, own)
    assert taken == len(held(machine, own)) > 0
    assert held(machine, mixed).keys().isdisjoint(held(machine, own))
    assert held(machine, mixed).keys() | held(machine, own).keys() == whole.keys()
    assert part_accounts(machine.ports, mixed, own) == 0


def test_accounts_of_two_sources_or_that_take_nothing_stay(
    machine: Machine, tmp_path: Path
) -> None:
    one = bring(machine, tmp_path, "One", MAIL)
    two = bring(machine, tmp_path, "Two", OTHER)
    machine.run("import", as_folder(SPECIMENS["bank"], tmp_path / "bank"), "--connection", "Bank")
    bank = account(machine, "Bank")
    for first, second in ((one, one), (one, bank), (bank, two)):
        with pytest.raises(InvalidState):
            merge_accounts(machine.ports, first, second)
        with pytest.raises(InvalidState):
            part_accounts(machine.ports, first, second)
    move_connection(machine.store, two.connection_id, "revoke", 1)
    with pytest.raises(InvalidState):
        merge_accounts(machine.ports, one, account(machine, "Two"))
    assert held(machine, one)
