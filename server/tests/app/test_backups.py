"""A backup holds everything, comes back whole, and revives nothing that was ended."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import StorageUnavailable
from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.app.backup_ledger import catch_up_with_ledger, keep_ledger
from personal_server.app.backup_schedule import kept_backups, schedule_of, set_schedule
from personal_server.app.backups import BackupOrder, make_backup, verify_backup
from personal_server.app.restores import Restored, restore_backup
from personal_server.app.scheduled_backups import ScheduledBackups, superfluous
from personal_server.app.stores import Stores, open_stores
from personal_server.domain.stored import BackupSchedule
from personal_server.settings import Settings
from personal_server.storage.authorization_rows import GrantRow, TokenRow
from personal_server.storage.sql.fixed_tables import BackupRow
from personal_server.storage.sqlite.database import SqliteDatabase
from personal_server.upkeep.backups import BackupRefused
from server.tests.resource_server.journal import DIARY, ENTRIES, furnished, write

NOW = 1_790_000_000 * 10**9
BYTES = b"a picture"
BLOB = "blob_sha256_" + hashlib.sha256(BYTES).hexdigest()


@dataclass
class Site:
    """A data directory with records, and a clock."""

    folder: Path
    now_ns: int = NOW

    @property
    def settings(self) -> Settings:
        return Settings(data_dir=self.folder / "data", backup_dir=self.folder / "kept")

    @contextmanager
    def open(self, name: str = "data", *, serving: bool = False) -> Generator[Stores]:
        settings = replace(self.settings, data_dir=self.folder / name)
        with open_stores(settings, serving=serving, clock=lambda: self.now_ns) as stores:
            yield stores

    def back_up(self, name: str = "a.pdpp", **options: Any) -> Path:
        target = self.folder / "kept" / name
        with self.open() as stores:
            make_backup(stores, self.settings, BackupOrder(target, **options))
        return target

    def restore(self, path: Path, **options: Any) -> Restored:
        chosen = {"identity": None, "ledger_path": None, **options}
        settings = replace(self.settings, data_dir=self.folder / "back")
        return restore_backup(settings, path, **chosen)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    (tmp_path / "kept").mkdir()
    with site.open() as stores:
        furnished(stores.records)
        stores.records.receive_blob(DIARY, [BYTES], "image/png", NOW, 1_000)
        picture = {"blob_id": BLOB, "mime_type": "image/png", "size_bytes": len(BYTES)}
        line = {"id": "p1", "entry_id": "e1", "filename": "p.png", "blob_ref": picture}
        write(stores.records, DIARY, "attachments", [line])
        with stores.authorization.write() as writer:
            for number in range(3):
                writer.insert(grant_row(f"grt_{number}"))
                writer.insert(token_row(f"grt_{number}"))
    return site


def grant_row(grant_id: str) -> GrantRow:
    return GrantRow(
        grant_id=grant_id,
        grant=b"{}",
        client_id="cli_1",
        connector_key="journal",
        access_mode="continuous",
        issued_at_ns=NOW,
        revision="rv1",
    )


def token_row(grant_id: str) -> TokenRow:
    return TokenRow(
        token_hash=hashlib.sha256(grant_id.encode()).digest(),
        kind="client",
        client_id="cli_1",
        grant_id=grant_id,
        origin="http://127.0.0.1",
        resource="http://127.0.0.1/mcp",
        scope="pdpp:read",
        issued_at_ns=NOW,
        expires_at_ns=NOW + DAY_NANOSECONDS,
    )


def everything(stores: Stores) -> dict[tuple[str, str], list[tuple[str, Any]]]:
    """Every record, by stream."""
    with stores.records.snapshot(None) as snapshot:
        places = [(held.connection_id, held.stream) for held in snapshot.stored_streams()]
        return {place: [(r.key, dict(r.data)) for r in snapshot.export(*place)] for place in places}


def epoch(stores: Stores) -> str:
    with stores.records.snapshot(None) as snapshot:
        return snapshot.epoch


def blob_of(stores: Stores) -> bytes | None:
    content = stores.records.open_blob(BLOB)
    if content is None:
        return None
    with content:
        return content.read()


def test_what_is_restored_is_equal_record_by_record_and_blob_by_blob(site: Site) -> None:
    path = site.back_up()
    found = site.restore(path)
    with site.open() as before, site.open("back") as after:
        assert everything(after) == everything(before)
        assert blob_of(after) == BYTES
        assert after.configuration == before.configuration
        assert epoch(after) != epoch(before)
        assert found.manifest.records == sum(map(len, everything(after).values()))
    assert (site.folder / "back").stat().st_mode & 0o777 == 0o700
    assert sorted(each.name for each in (site.folder / "back").iterdir() if each.is_file()) == [
        "config.toml",
        "personal-server.sqlite3",
    ]


def test_every_token_is_dead_and_every_grant_waits(site: Site) -> None:
    path = site.back_up()
    assert site.restore(path).waiting == 3
    with site.open("back") as stores, stores.authorization.read() as reader:
        assert {row.hold for row in reader.rows(GrantRow)} == {"restored"}
        assert {row.reason for row in reader.rows(TokenRow)} == {"restored"}


def end_and_erase(site: Site) -> None:
    with site.open() as stores:
        with stores.authorization.write() as writer:
            ended = [GrantRow.revoked_at_ns.to(NOW + 1), GrantRow.reason.to("owner")]
            writer.change(GrantRow, ended, GrantRow.grant_id.equals("grt_1"))
        assert stores.records.delete_record(DIARY, "entries", "e1", NOW + 1)
        assert stores.records.delete_stream(DIARY, "attachments", NOW + 1)
        stores.records.erase_connection("cin_bank00000000000", NOW + 1)
        keep_ledger(stores, site.settings)


def ended_and_erased(stores: Stores) -> None:
    held = everything(stores)
    assert "e1" not in dict(held[DIARY, "entries"])
    assert held[DIARY, "attachments"] == []
    assert not any(place[0] == "cin_bank00000000000" for place in held)
    assert blob_of(stores) is None
    with stores.authorization.read() as reader:
        rows = {row.grant_id: row for row in reader.rows(GrantRow)}
    assert (rows["grt_1"].reason, rows["grt_1"].revoked_at_ns) == ("owner", NOW + 1)


def test_what_was_ended_or_erased_since_stays_so(site: Site) -> None:
    path = site.back_up()
    end_and_erase(site)
    found = site.restore(path)
    assert (found.ledger, found.erased, found.ended, found.waiting) == (True, 3, 1, 2)
    with site.open("back") as stores:
        ended_and_erased(stores)


def test_a_ledger_elsewhere_is_named_and_without_one_that_is_told(site: Site) -> None:
    path = site.back_up()
    end_and_erase(site)
    (site.folder / "kept" / "erasures.jsonl").rename(site.folder / "elsewhere")
    assert not site.restore(path).ledger
    (site.folder / "back").rename(site.folder / "first")
    found = site.restore(path, ledger_path=site.folder / "elsewhere")
    assert (found.ledger, found.erased) == (True, 3)


def test_the_ledger_holds_no_key_of_what_was_erased(site: Site) -> None:
    end_and_erase(site)
    text = (site.folder / "data" / "erasures.jsonl").read_text()
    assert '"e1"' not in text
    assert len(text.splitlines()) == 4


def test_a_copy_put_back_by_hand_catches_up_with_the_ledger(site: Site) -> None:
    database = site.settings.database_path
    copy = database.read_bytes()
    end_and_erase(site)
    database.write_bytes(copy)
    with site.open(serving=True) as stores:
        catch_up_with_ledger(stores, site.settings)
        ended_and_erased(stores)


def test_an_erasure_before_the_backup_is_not_made_again(site: Site) -> None:
    end_and_erase(site)
    with site.open() as stores:
        write(stores.records, DIARY, "entries", [ENTRIES[0]])
        keep_ledger(stores, site.settings)
    assert site.restore(site.back_up()).erased == 0
    with site.open("back") as stores:
        assert "e1" in dict(everything(stores)[DIARY, "entries"])


def test_nothing_is_written_over_a_file_or_restored_over_data(site: Site) -> None:
    path = site.back_up()
    with pytest.raises(BackupRefused):
        site.back_up()
    site.restore(path)
    with pytest.raises(BackupRefused):
        site.restore(path)
    assert [each.name for each in (site.folder / "data").iterdir() if "backup" in each.name] == []


def changes(path: Path) -> Iterator[bytes]:
    """The backup with something wrong in it."""
    whole = path.read_bytes()
    for place in range(0, len(whole), max(len(whole) // 40, 1)):
        # between the files lies padding, which carries nothing
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        if members(bytes(changed)) != members(whole):
            yield bytes(changed)
    yield whole[: len(whole) // 2]
    yield whole[:-20_000]
    yield b""


def members(content: bytes) -> dict[str, bytes] | None:
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            return {m.name: f.read() if (f := tar.extractfile(m)) else b"" for m in tar}
    except (tarfile.TarError, EOFError):
        return None


def test_a_damaged_backup_is_refused_and_leaves_nothing(site: Site) -> None:
    path = site.back_up()
    broken = site.folder / "broken.pdpp"
    count = 0
    for content in changes(path):
        broken.write_bytes(content)
        with pytest.raises(BackupRefused):
            verify_backup(broken, None)
        count += 1
    assert count > 20
    with pytest.raises(BackupRefused):
        site.restore(broken)
    assert list((site.folder / "back").iterdir()) == []


def test_a_sealed_backup_is_opened_by_its_identity_only(site: Site) -> None:
    age: Any = import_module("pyrage")  # a compiled module without types
    identity, other = age.x25519.Identity.generate(), age.x25519.Identity.generate()
    path = site.back_up("a.pdpp.age", recipient=str(identity.to_public()))
    assert b"journal" not in path.read_bytes()
    key, wrong = site.folder / "key.txt", site.folder / "wrong.txt"
    key.write_text(f"# created by age\n{identity}\n")
    wrong.write_text(f"{other}\n")
    for each in (None, wrong, site.folder / "nothing"):
        with pytest.raises(BackupRefused):
            verify_backup(path, each)
    assert verify_backup(path, key).records
    cut = site.folder / "cut.age"
    cut.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BackupRefused):
        verify_backup(cut, key)
    assert site.restore(path, identity=key).manifest.blobs == 1
    with pytest.raises(BackupRefused):
        site.back_up("b.pdpp.age", recipient="nobody")


def test_the_server_keeps_as_many_backups_as_it_is_told_and_proves_them(site: Site) -> None:
    settings = replace(site.settings, backup_keep=2)
    with site.open() as stores:
        scheduled = ScheduledBackups(stores, settings)
        for _ in range(4):
            scheduled.make_if_due()
            scheduled.make_if_due()
            site.now_ns += DAY_NANOSECONDS
        names = sorted(each.name for each in (site.folder / "kept").glob("backup-*"))
        assert len(names) == 3  # the newest two, and the one that was proven
        assert sorted(kept_backups(stores)) == names
        proof = stores.upkeep.proof()
        assert proof is not None
        assert proof.proven_at_ns == NOW
        site.now_ns += 7 * DAY_NANOSECONDS
        scheduled.make_if_due()
        proof = stores.upkeep.proof()
        assert proof is not None
        assert proof.proven_at_ns == site.now_ns


YEAR_NANOSECONDS = 365 * DAY_NANOSECONDS


def test_a_backup_under_a_wrong_clock_replaces_no_true_one(site: Site) -> None:
    settings = replace(site.settings, backup_keep=3)
    with site.open() as stores:
        scheduled = ScheduledBackups(stores, settings)
        for _ in range(3):
            scheduled.make_if_due()
            site.now_ns += DAY_NANOSECONDS
        true = set(kept_backups(stores))
        site.now_ns += YEAR_NANOSECONDS
        ScheduledBackups(stores, settings, is_trusted=lambda: False).make_if_due()
        site.now_ns -= YEAR_NANOSECONDS
        assert true <= set(kept_backups(stores))
        for _ in range(5):  # a look a minute, as the server does
            scheduled.make_if_due()
            site.now_ns += 60 * 10**9
        assert len(kept_backups(stores)) == 4  # that of the wrong clock, and the newest three
        assert len(true & set(kept_backups(stores))) == 2


def test_many_backups_of_one_hour_replace_no_day() -> None:
    rows = [backup_row(day * DAY_NANOSECONDS + hour) for day in (3, 2, 1, 0) for hour in (2, 1, 0)]
    going = {row.made_at for row in superfluous(rows, 3, None)}
    staying = {row.made_at for row in rows} - going
    newest, days = 3 * DAY_NANOSECONDS, {1, 2, 3}
    assert staying == {newest + 2, newest + 1, newest} | {d * DAY_NANOSECONDS + 2 for d in days}
    proven = {row.made_at for row in superfluous(rows, 1, 1)}
    assert {row.made_at for row in rows} - proven == {newest + 2, 1}


def backup_row(made_at: int) -> BackupRow:
    return BackupRow(
        backup_id=str(made_at),
        path="x",
        made_at=made_at,
        sequence=0,
        size_bytes=0,
        sealed=False,
        scheduled=True,
    )


def test_kept_backups_are_named_while_they_are_there(site: Site) -> None:
    path = site.back_up()
    with site.open() as stores:
        assert kept_backups(stores) == ("a.pdpp",)
        assert kept_backups(stores, NOW) == ()  # it was made later than what is asked about
        assert kept_backups(stores, NOW + 1) == ("a.pdpp",)
        path.unlink()
        assert kept_backups(stores) == ()
    site.back_up()
    with site.open() as stores:
        assert kept_backups(stores) == ("a.pdpp",)


def test_a_database_is_copied_before_its_tables_change(site: Site) -> None:
    database = SqliteDatabase(site.settings.database_path)
    with database.write() as session:
        session.run("DROP TABLE eras")
        session.run("DROP TABLE erasures")
        session.run("DROP TABLE backups")
        session.run("ALTER TABLE grants DROP COLUMN hold")
        session.run("DELETE FROM schema_version WHERE module = '010_upkeep'")
    database.close()
    with site.open() as stores:
        assert everything(stores)
        assert kept_backups(stores) == ("before-migration/1.sqlite3",)
    (copy,) = (site.folder / "data" / "before-migration").iterdir()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert copy.read_bytes()[:6] == b"SQLite"


def test_a_damaged_database_is_not_backed_up_as_if_it_were_whole(site: Site) -> None:
    path = site.settings.database_path
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4_096] = b"\xff" * 4_096
    path.write_bytes(content)
    with pytest.raises(StorageUnavailable):
        site.back_up()
    assert list((site.folder / "kept").iterdir()) == []


# By schedule ----------------------------------------------------------------------------------
def unscheduled(site: Site) -> Settings:
    return replace(site.settings, backup_dir=None)


def scheduled_into(site: Site, **changes: Any) -> BackupSchedule:
    return replace(BackupSchedule(str(site.folder / "kept"), 24, 2), **changes)


def test_a_schedule_of_the_owner_is_kept_to_by_a_server_that_runs_already(site: Site) -> None:
    settings = unscheduled(site)
    with site.open(serving=True) as serving:
        by_itself = ScheduledBackups(serving, settings)
        by_itself.make_if_due()
        assert kept_backups(serving) == ()
        with site.open() as command:
            set_schedule(command, settings, scheduled_into(site, every_hours=12))
        for _ in range(8):
            by_itself.make_if_due()
            by_itself.make_if_due()
            site.now_ns += DAY_NANOSECONDS // 2
        # the newest two, which are those of the newest two days, and the one that was proven
        assert len(list((site.folder / "kept").glob("backup-*.pdpp"))) == 3
        assert (site.folder / "kept" / "erasures.jsonl").parent.is_dir()
        with site.open() as command:
            set_schedule(command, settings, None)
        by_itself.make_if_due()
        assert len(kept_backups(serving)) == 3


def test_the_weekly_proof_is_left_out_and_told_where_there_is_no_room_for_it(site: Site) -> None:
    free_bytes = 0
    settings = replace(site.settings, backup_keep=20)
    with site.open() as stores:
        scheduled = ScheduledBackups(stores, settings, lambda _: free_bytes)
        scheduled.make_if_due()
        assert len(kept_backups(stores)) == 1  # a backup that is not proven is better than none
        proof = stores.upkeep.proof()
        assert proof is not None
        assert (proof.proven_at_ns, proof.skipped) == (None, "no_space")
        (fault,) = scheduled.faults()
        assert (fault.part, fault.code, fault.serving) == ("backup", "backup_not_proven", True)
        site.now_ns += DAY_NANOSECONDS
        # the size of what it holds is known only once it was made: far too much, then just enough
        free_bytes = 10**12
        scheduled.make_if_due()
        proof = stores.upkeep.proof()
        assert proof is not None
        assert (proof.proven_at_ns, proof.skipped) == (site.now_ns, "")
        assert not list(scheduled.faults())
        # for a week nothing is tried, however little is free; then it is, and the old proof stays
        free_bytes, proven_ns = 0, site.now_ns
        for _ in range(6):
            site.now_ns += DAY_NANOSECONDS
            scheduled.make_if_due()
            assert not list(scheduled.faults())
        site.now_ns += DAY_NANOSECONDS
        scheduled.make_if_due()
        proof = stores.upkeep.proof()
        assert proof is not None
        assert (proof.proven_at_ns, proof.skipped) == (proven_ns, "no_space")


def test_twice_the_size_is_what_a_proof_needs(site: Site) -> None:
    needed = 0
    with site.open() as stores:
        manifest = make_backup(stores, site.settings, BackupOrder(site.folder / "kept" / "a.pdpp"))
        needed = 2 * sum(file.size_bytes for file in manifest.files)
        for name, free_bytes, skipped in (("b", needed // 2, "no_space"), ("c", 2 * needed, "")):
            order = BackupOrder(
                site.folder / "kept" / f"{name}.pdpp",
                prove=True,
                free_bytes=lambda _, free=free_bytes: free,
            )
            make_backup(stores, site.settings, order)
            proof = stores.upkeep.proof()
            assert proof is not None
            assert proof.skipped == skipped


@pytest.mark.parametrize(
    "changes", [{"folder": "nowhere/deeper"}, {"folder": "data"}, {"recipient": "nobody"}]
)
def test_a_schedule_that_could_not_be_kept_to_is_refused(
    site: Site, changes: dict[str, str]
) -> None:
    if "folder" in changes:
        changes = {"folder": str(site.folder / changes["folder"])}
    with site.open() as stores:
        with pytest.raises(BackupRefused):
            set_schedule(stores, unscheduled(site), scheduled_into(site, **changes))
        assert stores.upkeep.backup_schedule() is None


def test_the_environment_comes_before_the_command_and_says_so(site: Site) -> None:
    with site.open() as stores:
        set_schedule(stores, unscheduled(site), scheduled_into(site))
        found = schedule_of(stores, replace(site.settings, backup_keep=5))
        assert found is not None
        assert found.keep == 5
        with pytest.raises(BackupRefused):
            set_schedule(stores, site.settings, None)


def test_what_is_restored_backs_nothing_up_by_itself(site: Site) -> None:
    with site.open() as stores:
        set_schedule(stores, unscheduled(site), scheduled_into(site))
    site.restore(site.back_up())
    with site.open("back") as stores:
        assert schedule_of(stores, unscheduled(site)) is None
