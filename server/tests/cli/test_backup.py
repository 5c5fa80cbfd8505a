"""`pdpp backup` during an import, and what `pdpp restore` makes of it elsewhere."""

from __future__ import annotations

import base64
import json
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from personal_server.app.stores import Stores, open_stores
from personal_server.settings import Settings
from server.tests.app.http_server.served import until
from server.tests.upkeep.machine import Machine

MESSAGES = 1_500
MESSAGE = """From x@example.org Mon Jan  5 10:00:00 2026
From: Ada <ada@example.org>
To: Bo <bo@example.org>
Subject: Number {number}
Date: Mon, 05 Jan 2026 10:00:00 +0000
Message-ID: <m{number}@example.org>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: text/plain

We met number {number}.
--b
Content-Type: application/octet-stream; name="n{number}.bin"
Content-Disposition: attachment; filename="n{number}.bin"
Content-Transfer-Encoding: base64

{content}
--b--

"""


@pytest.fixture
def machine(tmp_path: Path) -> Generator[Machine]:
    with Machine(tmp_path).running() as running:
        yield running


def mailbox(folder: Path) -> Path:
    path = folder / "mail.mbox"
    with path.open("w") as file:
        for number in range(MESSAGES):
            content = base64.b64encode(f"attachment {number % 50}".encode()).decode()
            file.write(MESSAGE.format(number=number, content=content))
    return path


def held(stores: Stores) -> dict[tuple[str, str], dict[str, Any]]:
    """Every record, by stream and key, without what files say, which is read after the records."""
    with stores.records.snapshot(None) as snapshot:
        places = [(each.connection_id, each.stream) for each in snapshot.stored_streams()]
        return {
            place: {row.key: _without_text(row.data) for row in snapshot.export(*place)}
            for place in places
        }


def _without_text(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in ("text", "text_state")}


def blob_ids(records: dict[tuple[str, str], dict[str, Any]]) -> set[str]:
    return {
        value["blob_id"]
        for rows in records.values()
        for data in rows.values()
        for value in data.values()
        if isinstance(value, dict) and "blob_id" in value
    }


def test_a_backup_made_during_an_import_is_one_state_and_comes_back_whole(
    machine: Machine,
) -> None:
    machine.start()
    importing = machine.begin("import", mailbox(machine.folder))
    until(lambda: importing.poll() is not None or _records(machine), pause_seconds=0.05)
    backup = machine.folder / "a.pdpp"
    made = json.loads(machine.pdpp("backup", backup, "--json").stdout)
    assert importing.communicate(timeout=300)[0] is not None
    assert importing.returncode == 0
    machine.stop()
    there = Machine(machine.folder / "there")
    there.folder.mkdir()
    told = json.loads(there.pdpp("restore", backup, "--json").stdout)
    assert told["records"] == made["records"] > 0
    with (
        open_stores(Settings(data_dir=machine.data), serving=False) as before,
        open_stores(Settings(data_dir=there.data), serving=False) as after,
    ):
        whole, restored = held(before), held(after)
        assert sum(map(len, restored.values())) == made["records"]
        for place, rows in restored.items():
            assert rows.items() <= whole[place].items()
        ids = blob_ids(restored)
        assert ids
        for blob_id in ids:
            found, kept = after.records.open_blob(blob_id), before.records.open_blob(blob_id)
            assert found is not None
            assert kept is not None
            with found, kept:
                assert found.read() == kept.read()


def _records(machine: Machine) -> bool:
    with open_stores(Settings(data_dir=machine.data), serving=False) as stores:
        return any(count for _, _, count in stores.upkeep.counted().streams)


def _is_proven(machine: Machine) -> bool:
    with open_stores(Settings(data_dir=machine.data), serving=False) as stores:
        return stores.upkeep.proof() is not None


def test_after_a_restore_an_access_waits_and_its_token_is_dead(machine: Machine) -> None:
    path = machine.folder / "note.mbox"
    path.write_text(MESSAGE.format(number=1, content="aGk="))
    machine.pdpp("import", path)
    machine.start()
    machine.pdpp("grant", "create", "--client", "Notes", "--source", "mail", "--yes")
    token = machine.pdpp("token", machine.origin).stdout.strip()
    grants = json.loads(machine.pdpp("grant", "list", "--json").stdout)
    read = "/v1/streams/messages/records"
    assert machine.get(read, token)[0] == 200
    backup = machine.folder / "a.pdpp"
    machine.pdpp("backup", backup)
    machine.pdpp("backup", "verify", backup)
    machine.stop()
    machine.data.rename(machine.folder / "lost")
    machine.pdpp("restore", backup, "--erasures", machine.folder / "lost" / "erasures.jsonl")
    machine.start()
    status, body = machine.get(read, token)
    assert (status, body["error"]["code"]) == (403, "grant_paused")
    machine.pdpp("grant", "resume", grants[0]["id"])
    status, body = machine.get(read, token)
    assert (status, body["error"]["code"]) == (401, "invalid_token")
    assert json.loads(machine.pdpp("grant", "list", "--json").stdout)[0]["status"] == "active"
    # a path that is wider than its column goes on in the next lines
    assert "a.pdpp" in "".join(machine.pdpp("backup", "list").stdout.split())


def test_a_schedule_is_told_kept_to_proven_and_ended(machine: Machine) -> None:
    kept = machine.folder / "kept"

    def status() -> dict[str, Any]:
        return json.loads(machine.pdpp("backup", "status", "--json").stdout)

    assert status()["schedule"] is None
    told = machine.pdpp("backup", kept, "--every", "2d", "--keep", "3", "--json").stdout
    schedule = {"folder": str(kept), "every_hours": 48, "keep": 3, "recipient": None}
    assert json.loads(told)["schedule"] == schedule
    assert kept.stat().st_mode & 0o777 == 0o700
    assert json.loads(told)["last_backup"] is None
    machine.start()
    until(lambda: _is_proven(machine), pause_seconds=0.2)
    (made,) = kept.glob("backup-*.pdpp")
    machine.pdpp("backup", "verify", made)
    after = status()
    assert after["last_proven_restore"] is not None
    assert (after["kept"], after["set_by"]) == (1, "command")
    assert after["next_backup"] > after["last_backup"]
    machine.pdpp("backup", "stop")
    assert status()["schedule"] is None
    assert made.exists()


def test_a_folder_is_made_where_there_is_one_around_it(machine: Machine) -> None:
    machine.pdpp("backup", machine.folder / "no-disk" / "kept", "--every", "1d", expected=69)
    assert not (machine.folder / "no-disk").exists()
    machine.pdpp("backup", machine.data / "kept", "--every", "1d", expected=69)
    assert not (machine.data / "kept").exists()


@pytest.mark.parametrize(
    "options",
    [("--every", "5m"), ("--every", "0d"), ("--every", "2y"), ("--keep", "3")],
)
def test_a_schedule_that_is_none_is_refused(machine: Machine, options: tuple[str, str]) -> None:
    machine.pdpp("backup", machine.folder, *options, expected=64)
    assert not machine.data.exists()
