"""A server goes on, on another database, with all it had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from personal_server.app.backups import BackupOrder, make_backup
from personal_server.app.moves import move
from personal_server.app.restores import restore_backup
from personal_server.app.stores import open_stores
from personal_server.settings import Settings
from personal_server.storage.sql.care.whole_copy import CopyRefused, Tell
from personal_server.storage.sql.fixed_tables import PassageRow
from personal_server.storage.sql.records.passages import put_signs
from personal_server.storage.sql.statements import insert
from personal_server.upkeep.logs import signing_key, verify_log
from personal_server.upkeep.ownership import DataMismatch
from server.tests.app.whole import Whole, reopened
from server.tests.console.household import mail_request
from server.tests.storage.released.directory import (
    NOTEBOOK,
    answers_of,
    asked,
    released_names,
    unpack,
)
from server.tests.storage.worlds import NOTES_STREAM, note, write
from tests.postgresql import schema, server

NAME = released_names()[0]
FEED = f"/v1/streams/notes/records?connection_id={NOTEBOOK}&changes_since="


class Killed(Exception):
    """The end of a process."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A server with something in every part of it."""
    found = Settings(data_dir=unpack(NAME, tmp_path))
    with reopened(found) as site:
        site.sign_in()
        site.connect(mail_request())
        with site.server.stores.database.write() as session:
            place = (session.value("SELECT max(tables) FROM sources"), "body", 1, 0)
            session.run(insert(PassageRow), (*place, 0, 4, b"\x01\xff" * 8))
            put_signs(session, [(*place, b"\x01\xff" * 8)])
    return found


@pytest.fixture
def target(settings: Settings) -> Iterator[Settings]:
    """An empty schema."""
    with schema() as name:
        yield replace(settings, database_url=server().url(), database_schema=name)


def dying_at(table: str, done: int) -> Tell:
    """A process that ends when so many lines of a table are copied."""

    def tell(name: str, copied: int, count: int) -> None:
        del count
        if name == table and copied >= done:
            raise Killed

    return tell


def feed(site: Whole, since: str, token: str) -> tuple[list[str], str]:
    """What a follower is told, and its next bookmark."""
    page = site.call(FEED + since, token)
    assert page.status == 200, page.text
    answer = site.body(page)
    return [each["id"] for each in answer["data"]], answer["next_changes_since"]


def not_declared(connection_id: str, stream: str) -> None:
    """Keys are not looked at."""


def unseen(records: int) -> None:
    """Nobody watches."""


def assert_sound(site: Whole) -> None:
    """Logs, word indexes and feed are what they should be."""
    stores = site.server.stores
    public = signing_key(stores.logs, stores.random_bytes).public_key()
    for name in stores.logs.names:
        assert not verify_log(stores.logs, name, public, []).faults
    for connection_id, stream in stores.integrity.places():
        check = stores.integrity.stream(connection_id, stream, not_declared, unseen)
        wrong = (check.damaged.count, check.unexplained.count)
        assert (*wrong, check.words_differ, check.values_differ) == (0, 0, False, False)


def signs_in(site: Whole) -> int:
    """How many passages are as far from a vector as the one that was put."""
    with site.server.stores.database.read() as session:
        apart = session.dialect.sign_distance("signs")
        found = session.rows(f"SELECT {apart} FROM passage_signs", (b"\xaa" * 2,))  # noqa: S608
    return len(found)


def test_tokens_followers_and_logs_go_on_there_and_back(
    settings: Settings, target: Settings, tmp_path: Path
) -> None:
    then = answers_of(NAME)
    with reopened(settings) as site:
        _, bookmark = feed(site, "beginning", then["tokens"]["owner"])
        write(site.server.stores.records, NOTEBOOK, [note("n1", body="moved")], now=site.clock())
        expected, _ = feed(site, bookmark, then["tokens"]["owner"])
    there = move(settings, target)
    back = replace(settings, data_dir=tmp_path / "back")
    assert move(target, back).digests == there.digests
    assert there.blobs == 0
    for moved in (target, back):
        with reopened(moved) as site:
            assert feed(site, bookmark, then["tokens"]["owner"])[0] == expected == ["n1"]
            answers = asked(site, then["tokens"], then["blob_id"])
            assert_sound(site)
            assert signs_in(site) == 1
            # numbers go on behind those that were given
            assert site.server.stores.records.add_sealing_key(b"k" * 32, 1).key_id > 1
        assert answers.keys() == then["answers"].keys()


@pytest.mark.parametrize("table", ["audit_events", f"{NOTEBOOK}/notes"])
def test_a_move_that_was_killed_goes_on(table: str, settings: Settings, target: Settings) -> None:
    with pytest.raises(Killed):
        move(settings, target, dying_at(table, 1))
    with pytest.raises(DataMismatch), open_stores(target, serving=True):
        pass
    with open_stores(settings, serving=True) as stores:  # who goes on here meanwhile
        write(stores.records, NOTEBOOK, [note("n2", body="changed"), note("new")])
        stores.records.delete_record(NOTEBOOK, NOTES_STREAM.name, "n7", 1)
        stores.records.erase_connection("cin_home", 1)
    move(settings, target)
    with reopened(target) as site:
        records = site.server.stores.records
        assert_sound(site)
        with records.snapshot() as snapshot:
            kept = {row.key: row.data for row in snapshot.export(NOTEBOOK, "notes")}
        assert kept["n2"]["body"] == "changed"
        assert "new" in kept
        assert "n7" not in kept


def test_nothing_is_moved_onto_other_data(settings: Settings, target: Settings) -> None:
    with open_stores(replace(target, data_dir=settings.data_dir / "other"), serving=True):
        pass
    with pytest.raises(CopyRefused):
        move(settings, target)
    with pytest.raises(CopyRefused):
        move(settings, settings)


def test_a_backup_of_either_is_restored_to_either(
    settings: Settings, target: Settings, tmp_path: Path
) -> None:
    move(settings, target)
    files: list[Path] = []
    counts: list[object] = []
    for place, each in enumerate((settings, target)):
        files.append(tmp_path / f"{place}.pdpp")
        with open_stores(each, serving=True) as stores:
            make_backup(stores, each, BackupOrder(files[-1], prove=True))
            counts.append(stores.upkeep.counted().streams)
    assert counts[0] == counts[1]
    with schema() as name:
        into_schema = replace(target, data_dir=tmp_path / "of_schema", database_schema=name)
        into_file = replace(settings, data_dir=tmp_path / "of_file")
        for file, chosen in ((files[0], into_schema), (files[1], into_file)):
            restore_backup(chosen, file, None, None)
            with reopened(chosen) as site:
                assert_sound(site)
                assert site.server.stores.upkeep.counted().streams == counts[0]
                # every app has to connect again
                token = answers_of(NAME)["tokens"]["owner"]
                assert site.call(FEED + "beginning", token).status == 401
