"""What somebody else changed in a backup is neither run nor believed."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import orjson
import pytest

from personal_server.app.backups import BackupOrder, make_backup, verify_backup
from personal_server.app.configured_clients import client_tables
from personal_server.app.restores import Restored, restore_backup
from personal_server.app.stores import open_stores
from personal_server.configuration_file import configuration_path, read_configuration
from personal_server.settings import Settings
from personal_server.storage.authorization_rows import EventRow, OwnerRow, SubscriptionRow
from personal_server.upkeep.backup_signatures import BackupSigner
from personal_server.upkeep.backups import (
    CONFIGURATION,
    DATABASE,
    MANIFEST,
    NOBODY,
    SIGNATURE,
    BackupFile,
    BackupRefused,
)

PLANT = "UPDATE owner SET password_hash = '$argon2id$planted'"
Members = dict[str, bytes]


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    settings, target = Settings(data_dir=tmp_path / "data"), tmp_path / "a.pdpp"
    with open_stores(settings, serving=False) as stores:
        with stores.authorization.write() as writer:
            writer.insert(OwnerRow(password_hash="$argon2id$true", created_at_ns=1))
        make_backup(stores, settings, BackupOrder(target))
    return target


def signer_of(backup: Path) -> str:
    return verify_backup(backup, None).signer


def restore(backup: Path, signer: str | None = None) -> Restored:
    settings = Settings(data_dir=backup.parent / "back")
    return restore_backup(settings, backup, None, None, signer)


def password_in(folder: Path) -> str | None:
    with (
        open_stores(Settings(data_dir=folder), serving=False) as stores,
        stores.authorization.read() as reader,
    ):
        [row] = reader.rows(OwnerRow)
    return row.password_hash


def changed(backup: Path, change: Callable[[Members], None]) -> Path:
    """The same archive with other members."""
    with tarfile.open(backup) as tar:
        members = {each.name: _content(tar, each) for each in tar}
    change(members)
    target = backup.with_name("changed.pdpp")
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return target


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    assert file is not None
    return file.read()


def with_database(backup: Path, *statements: str) -> Path:
    """A backup of somebody who changed the database, and signed that with a key of their own."""

    def run(content: bytes) -> bytes:
        path = backup.with_name("changed.sqlite3")
        path.write_bytes(content)
        connection = apsw.Connection(str(path))
        for statement in statements:
            connection.execute(statement)  # pyright: ignore[reportUnknownMemberType]
        connection.close()
        return path.read_bytes()

    return with_file(backup, DATABASE, run)


def with_file(backup: Path, name: str, change_file: Callable[[bytes], bytes]) -> Path:
    """A backup of somebody who changed a file, and signed that with a key of their own."""

    def change(members: Members) -> None:
        content = members[name] = change_file(members[name])
        manifest: dict[str, Any] = orjson.loads(members[MANIFEST])
        new = BackupFile(name, len(content), sha256(content).hexdigest())
        files = [each for each in manifest["files"] if each["name"] != name]
        manifest["files"] = [{"name": new.name, "size_bytes": new.size_bytes, "sha256": new.sha256}]
        manifest["files"] += files
        members[MANIFEST] = orjson.dumps(manifest)
        other = BackupSigner(backup.parent, lambda size: b"x" * size)
        members[SIGNATURE] = other.sign(members[MANIFEST])

    return changed(backup, change)


def test_a_planted_password_signs_in_nobody(backup: Path) -> None:
    key = signer_of(backup)
    planted = with_database(backup, PLANT)
    found = restore(planted)
    assert (found.credentials["passwords"], found.is_proven) == (1, False)
    assert found.manifest.signer != key
    assert password_in(backup.parent / "back") is None


def test_who_names_the_signer_gets_the_password_of_that_server_alone(backup: Path) -> None:
    key = signer_of(backup)
    planted = with_database(backup, PLANT)
    with pytest.raises(BackupRefused) as refused:
        restore(planted, key)
    assert "Another server" in str(refused.value)
    assert list((backup.parent / "back").iterdir()) == []
    assert restore(backup, key).is_proven
    assert password_in(backup.parent / "back") == "$argon2id$true"


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON audit_events BEGIN DELETE FROM owner; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE more (x)",
        "CREATE TABLE r99 (x)",
        "CREATE VIRTUAL TABLE w1 USING fts5vocab ('w2', 'row')",
    ],
)
def test_what_no_server_of_ours_writes_is_refused_and_never_run(
    backup: Path, statement: str
) -> None:
    with pytest.raises(BackupRefused) as refused:
        restore(with_database(backup, statement))
    assert "no server of ours writes" in str(refused.value)
    assert list((backup.parent / "back").iterdir()) == []


CLIENTS = {
    "table": 'time_zone = "Europe/Rome"\n{}[[clients]]\nclient_id = "c"\nclient_name = "C"\n'
    'redirect_uris = ["https://evil.example/cb"]\n',
    "inline": 'clients = [{{client_id = "c", client_name = "", redirect_uris = ["https://e.x"]}}]\n{}',
    "in a value": '{}language = """en"\n[[clients]]\nclient_id = "c\\""""\n',
}


@pytest.mark.parametrize("form", CLIENTS)
def test_a_client_that_somebody_planted_is_not_set_up_here(backup: Path, form: str) -> None:
    """The consent page would say of it that its owner set it up on this server."""
    planted = with_file(
        backup, CONFIGURATION, lambda content: CLIENTS[form].format(content.decode()).encode()
    )
    found = restore(planted)
    assert found.credentials["clients"] == (0 if form == "in a value" else 1)
    kept = read_configuration(backup.parent / "back")
    assert kept is not None
    assert (client_tables(kept), kept.language) == ([], None)
    assert kept.time_zone == ("Europe/Rome" if form == "table" else None)


def test_who_names_the_signer_keeps_the_clients_of_the_file(tmp_path: Path, backup: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    with configuration_path(settings.data_dir).open("a") as file:
        file.write('[[clients]]\nclient_id = "c"\nclient_name = "C"\nredirect_uris = []\n')
    with open_stores(settings, serving=False) as stores:
        make_backup(stores, settings, BackupOrder(tmp_path / "b.pdpp"))
    restored = restore(tmp_path / "b.pdpp", signer_of(backup))
    kept = read_configuration(backup.parent / "back")
    assert kept is not None
    assert (restored.credentials["clients"], len(client_tables(kept))) == (1, 1)


def test_a_file_with_holes_is_not_filled(backup: Path) -> None:
    """A few bytes would say that they are four exabytes."""
    sparse = {"major": "0", "minor": "1", "size": str(1 << 62), "map": "0,1", "name": CONFIGURATION}
    member = tarfile.TarInfo(CONFIGURATION)
    member.size = 1
    member.pax_headers = {f"GNU.sparse.{name}": value for name, value in sparse.items()}
    target = backup.with_name("holes.pdpp")
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(member, io.BytesIO(b"a"))
    with pytest.raises(BackupRefused):
        verify_backup(target, None)


@pytest.mark.parametrize("is_named", [False, True])
def test_a_stranger_s_backup_has_the_server_call_nobody(
    tmp_path: Path, backup: Path, *, is_named: bool
) -> None:
    told = SubscriptionRow(
        subscription_id="sub_1",
        client_id="pdpp-cli",
        callback_url="https://evil.example/",
        status="active",
        secret=b"",
        seen=0,
        created_at_ns=1,
        updated_at_ns=1,
    )
    event = EventRow(
        event_id="evt_1", subscription_id="sub_1", type="t", created_at_ns=1, due_at_ns=1
    )
    settings = Settings(data_dir=tmp_path / "data")
    with open_stores(settings, serving=False) as stores:
        with stores.authorization.write() as writer:
            writer.insert(told)
            writer.insert(event)
        make_backup(stores, settings, BackupOrder(tmp_path / "b.pdpp"))
    found = restore(tmp_path / "b.pdpp", signer_of(backup) if is_named else None)
    assert found.credentials["subscriptions"] == 1
    with (
        open_stores(Settings(data_dir=backup.parent / "back"), serving=False) as stores,
        stores.authorization.read() as reader,
    ):
        left = [len(reader.rows(SubscriptionRow)), len(reader.rows(EventRow))]
    assert left == ([1, 1] if is_named else [0, 0])


HASH = "$argon2id$planted"
PRETENDED = (
    "PRAGMA writable_schema = ON",
    "UPDATE sqlite_master SET {change} WHERE name = 'owner'",
    "PRAGMA writable_schema = RESET",
)


@pytest.mark.parametrize(
    "change",
    [
        f"sql = replace(sql, 'h TEXT', 'h TEXT NOT NULL ON CONFLICT REPLACE DEFAULT ''{HASH}''')",
        f"sql = replace(sql, 'h TEXT', 'h TEXT CHECK (password_hash = ''{HASH}'')')",
        "rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'owner_links')",
    ],
)
def test_a_table_that_is_made_otherwise_than_by_us_is_refused(backup: Path, change: str) -> None:
    """Each would keep what a restore takes out, or change one thing with another."""
    planted = with_database(backup, PLANT, *(each.format(change=change) for each in PRETENDED))
    with pytest.raises(BackupRefused) as refused:
        restore(planted)
    assert "no server of ours writes" in str(refused.value)
    assert list((backup.parent / "back").iterdir()) == []


def test_a_link_that_no_restore_can_spend_is_refused(backup: Path) -> None:
    columns = "subject_id TEXT NOT NULL, link_hash BLOB NOT NULL, expires_at_ns INTEGER NOT NULL"
    unspent = "used_at_ns INTEGER UNIQUE ON CONFLICT IGNORE, PRIMARY KEY (subject_id, link_hash)"
    planted = with_database(
        backup,
        "DROP TABLE owner_links",
        f"CREATE TABLE owner_links ({columns}, {unspent}) STRICT, WITHOUT ROWID",
        "INSERT INTO owner_links SELECT subject_id, x'01', 1 << 62, NULL FROM owner",
        "INSERT INTO owner_links SELECT subject_id, x'02', 1 << 62, NULL FROM owner",
    )
    with pytest.raises(BackupRefused):
        restore(planted)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE UNIQUE INDEX owner_links_once ON owner_links (used_at_ns)",
        "CREATE INDEX r1_x ON owner (password_hash)",
    ],
)
def test_an_index_that_is_not_ours_is_refused(backup: Path, statement: str) -> None:
    with pytest.raises(BackupRefused):
        restore(with_database(backup, statement))


def _drop_signature(members: Members) -> None:
    del members[SIGNATURE]


def _empty_signature(members: Members) -> None:
    members[SIGNATURE] = b"{}"


def _break_signature(members: Members) -> None:
    members[SIGNATURE] = b"no JSON"


def _change_manifest(members: Members) -> None:
    members[MANIFEST] += b" "


def _add_member(members: Members) -> None:
    members["more"] = b""


@pytest.mark.parametrize(
    "change",
    [_drop_signature, _empty_signature, _break_signature, _change_manifest, _add_member],
)
def test_a_missing_or_wrong_signature_is_refused(
    backup: Path, change: Callable[[Members], None]
) -> None:
    path = changed(backup, change)
    with pytest.raises(BackupRefused):
        verify_backup(path, None)
    with pytest.raises(BackupRefused):
        restore(path)
    assert list((backup.parent / "back").iterdir()) == []


def test_one_of_an_earlier_version_comes_back_without_its_password(backup: Path) -> None:
    old = changed(backup, _drop_signature)
    restored = restore(old, NOBODY)
    assert (restored.manifest.signer, restored.is_proven) == (NOBODY, False)
    assert restored.credentials["passwords"] == 1
    assert password_in(backup.parent / "back") is None


def test_a_wrong_signature_is_refused_also_where_none_is_needed(backup: Path) -> None:
    with pytest.raises(BackupRefused):
        restore(changed(backup, _break_signature), NOBODY)


def test_the_key_lies_beside_the_data_and_in_no_backup(backup: Path) -> None:
    key = backup.parent / "data" / "signer.key"
    assert key.stat().st_mode & 0o777 == 0o600
    with tarfile.open(backup) as tar:
        assert all(key.read_bytes() not in _content(tar, each) for each in tar)


def test_one_key_signs_all_backups_of_a_server(tmp_path: Path, backup: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    with open_stores(settings, serving=False) as stores:
        again = make_backup(stores, settings, BackupOrder(tmp_path / "b.pdpp"))
    assert again.signer == signer_of(backup)
