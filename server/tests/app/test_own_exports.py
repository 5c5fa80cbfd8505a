"""The owner's export, imported again: nothing lost, nothing stored of one that is cut short."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from pdpp_kernel.person_fields import identity_of
from pdpp_kernel.persons import (
    NO_CORRECTIONS,
    merged,
    parted,
)
from pdpp_kernel.source_item import Data
from personal_server.app import own_exports
from personal_server.app.export_signer import ExportSigner
from personal_server.app.own_export_head import is_own_export
from personal_server.collecting.connection_status import move_connection
from personal_server.collecting.connections import create_connection
from personal_server.collecting.declarations import declare
from personal_server.collecting.ingest import ingest
from personal_server.collecting.persons import turn_on
from personal_server.domain.connection import Connection
from personal_server.reading.export import (
    Enclosures,
    ExportArchive,
    export_lines,
    extent_of,
)
from personal_server.reading.ports import SignExport, unsigned
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.cli.import_machine import Machine
from server.tests.storage.conftest import sqlite_store
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import as_zip

FORMS = ("ndjson", "tar", "zip")
ARCHIVES = ("tar", "zip")
every_form = pytest.mark.parametrize("form", FORMS)
every_archive = pytest.mark.parametrize("form", ARCHIVES)
GRANT = {
    "grant_id": "grt_1",
    "client_id": "agent",
    "connector_key": "mail",
    "issued_at": "2026-01-01T00:00:00Z",
    "revoked_at": None,
}
ODD_KEYS = ("..", "~b64.x", "a/b", 'q"\\', "ключ", " ", "0", "é" * 1_024)
JOURNAL = Path(__file__).parents[1] / "samples" / "journal.json"


KEYS = Path(tempfile.mkdtemp(prefix="pdpp-signers-"))
atexit.register(shutil.rmtree, KEYS)


def server_of(name: str) -> ExportSigner:
    """A server that signs its exports."""
    folder = KEYS / name
    folder.mkdir(exist_ok=True)
    return ExportSigner(folder, lambda size: hashlib.sha256(name.encode()).digest()[:size])


OURS, THEIRS = server_of("ours"), server_of("theirs")


def exported(store: RecordStore, path: Path, form: str, sign: SignExport = OURS.sign) -> Path:
    with store.snapshot() as snapshot:
        extent = extent_of(snapshot, None, None)
        if form == "ndjson":
            chunks = export_lines(snapshot, extent, 0, sign)
        else:
            archive = ExportArchive(0, "tar" if form == "tar" else "zip", sign)
            given = Enclosures(lambda: [GRANT], corrections=store.person_corrections)
            records = archive.records(snapshot, extent)
            chunks = chain(records, archive.rest(given, store.open_blob))
        path.write_bytes(b"".join(chunks))
    return path


def own(machine: Machine) -> Machine:
    """One that signs its exports as `exported` does."""
    machine.ports = replace(machine.ports, own_signer=OURS.name)
    return machine


def furnished(machine: Machine, folder: Path) -> Machine:
    """Several sources with files, an account by hand with odd keys, one paused and one revoked."""
    for key in ("mail", "chatgpt", "contacts"):
        machine.run("import", as_zip(SPECIMENS[key], folder / f"{key}-original.zip"))
    store, ports = machine.store, machine.ports
    accepted = declare(store, JOURNAL.read_bytes(), ports.clock()).declaration
    for name, action in (("Paper", "pause"), ("Ended", "revoke"), ("Paper", None)):
        connection = create_connection(
            store, store.declaration("journal", None), name, ports.clock(), ports.random_bytes
        )
        lines = [
            {
                "data": {"id": key, "created_at": "2026-03-01T00:00:00Z"},
                "emitted_at": "2026-03-01T00:00:00.123456789Z",
            }
            for key in ODD_KEYS
        ]
        result = ingest(
            store,
            connection.connection_id,
            accepted.streams["entries"],
            lines,
            now_ns=ports.clock(),
            new_receipt_id=ports.new_id,
        )
        assert result.records_rejected == 0
        if action:
            move_connection(store, connection.connection_id, action, ports.clock())
    return machine


def tallied(printed: Data, name: str) -> int:
    return sum(
        stream[name] for report in printed["imports"] for stream in report["streams"].values()
    )


@every_archive
def test_an_export_comes_back_whole_in_another_server(form: str, tmp_path: Path) -> None:
    first = furnished(Machine(), tmp_path)
    path = exported(first.store, tmp_path / f"all.{form}", form)
    second = Machine()
    code, printed = second.run("import", path)
    assert code == 0, printed
    assert tallied(printed, "new") == first.count() == second.count() > 0
    assert printed["grants_not_revived"] == [GRANT]
    again = exported(second.store, tmp_path / f"again.{form}", form)
    assert again.read_bytes() == path.read_bytes()
    code, printed = second.run("import", path)
    assert (tallied(printed, "new"), tallied(printed, "updated")) == (0, 0)
    assert exported(second.store, again, form).read_bytes() == path.read_bytes()


@every_form
def test_it_comes_back_in_a_database_too(form: str, tmp_path: Path) -> None:
    path = exported(furnished(Machine(), tmp_path).store, tmp_path / f"all.{form}", form)
    with sqlite_store(tmp_path / "other") as store:
        machine = Machine(store)
        code, printed = machine.run("import", path)
        again = exported(store, tmp_path / f"again.{form}", form)
    assert again.read_bytes() == path.read_bytes()
    skipped = {each["code"] for report in printed["imports"] for each in report["skipped"]}
    assert (code, skipped) == ((65, {"file_not_in_export"}) if form == "ndjson" else (0, set()))


@every_form
def test_into_the_server_it_came_from_it_changes_nothing(form: str, tmp_path: Path) -> None:
    machine = own(furnished(Machine(), tmp_path))
    path = exported(machine.store, tmp_path / f"all.{form}", form)
    with machine.store.snapshot() as snapshot:
        before = snapshot.horizon
    code, printed = machine.run("import", path)
    with machine.store.snapshot() as snapshot:
        assert snapshot.horizon == before
    assert (code, tallied(printed, "new"), tallied(printed, "updated")) == (0, 0, 0)
    left = [each for report in printed["imports"] for each in report["skipped"]]
    assert [(each["code"], each["count"]) for each in left] == [
        ("connection_revoked", len(ODD_KEYS))
    ]
    assert exported(machine.store, tmp_path / "again", form).read_bytes() == path.read_bytes()


def test_an_account_whose_id_another_source_has_gets_another_id_once(tmp_path: Path) -> None:
    first = Machine()
    first.run("import", as_zip(SPECIMENS["contacts"], tmp_path / "contacts.zip"))
    path = exported(first.store, tmp_path / "all.tar", "tar")
    second = Machine()
    second.run("import", as_zip(SPECIMENS["mail"], tmp_path / "mail.zip"))
    with first.store.snapshot() as mine, second.store.snapshot() as theirs:
        taken = {c.connection_id for c in mine.connections()}
        assert taken == {c.connection_id for c in theirs.connections()}
    _, printed = second.run("import", path)
    _, again = second.run("import", path)
    assert tallied(printed, "new") == first.count()
    assert tallied(again, "new") == 0
    assert again["imports"][0]["connection"]["connection_id"] not in taken


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def without_a_piece(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:1_500] + content[1_700:])


def without_its_end(path: Path) -> None:
    match path.suffix:
        case ".ndjson":
            path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
        case ".tar":
            with tarfile.open(path) as archive:
                end = archive.getmember("export_end.json")
            path.write_bytes(path.read_bytes()[: end.offset] + bytes(1024))
        case _:
            rewritten(path, lambda name, content: None if name == "export_end.json" else content)


def with_another_letter(path: Path) -> None:
    content = path.read_bytes()
    if path.suffix == ".zip":
        rewritten(path, lambda _, held: held.replace(b"2026-03-01", b"2026-03-02"))
    else:
        path.write_bytes(content.replace(b"2026-03-01", b"2026-03-02", 1))


def with_a_record_less(path: Path) -> None:
    """Whoever shortens a file of records does not change the digest."""
    if path.suffix == ".ndjson":
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:-2], lines[-1]]))
    elif path.suffix == ".zip":
        rewritten(
            path,
            lambda name, held: held[held.index(b"\n") + 1 :] if "entries" in name else held,
        )
    else:
        with tarfile.open(path) as archive:
            member = next(each for each in archive if "entries" in each.name)
        content = path.read_bytes()
        begin, end = member.offset, member.offset_data + -(-member.size // 512) * 512
        path.write_bytes(content[:begin] + content[end:])


def rewritten(path: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    with zipfile.ZipFile(path) as archive:
        held = {name: change(name, archive.read(name)) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in held.items():
            if content is not None:
                archive.writestr(name, content)


@every_form
@pytest.mark.parametrize(
    "damage",
    [cut, without_a_piece, without_its_end, with_another_letter, with_a_record_less],
)
def test_an_export_that_is_not_whole_is_refused_before_anything_is_stored(
    form: str, damage: Callable[[Path], None], tmp_path: Path
) -> None:
    path = exported(furnished(Machine(), tmp_path).store, tmp_path / f"all.{form}", form)
    damage(path)
    machine = Machine()
    code, printed = machine.run("import", path)
    assert (code, printed["error"]["code"]) == (65, "export_truncated")
    with machine.store.snapshot() as snapshot:
        assert (snapshot.connections(), snapshot.declarations()) == ((), ())


def test_one_that_unpacks_without_end_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = exported(furnished(Machine(), tmp_path).store, tmp_path / "all.zip", "zip")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("declarations/more.json", bytes(20_000_000))
    code, printed = Machine().run("import", path)
    assert (code, printed["error"]["code"]) == (65, "export_unsafe")


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_one_that_is_packed_as_none_of_ours_is_refused(tmp_path: Path, method: int) -> None:
    path = exported(furnished(Machine(), tmp_path).store, tmp_path / "all.zip", "zip")
    other, packed = tmp_path / "other.zip", bytearray()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(other, "w") as changed:
        for each in archive.infolist():
            is_lines = each.filename.endswith(".ndjson")
            changed.writestr(each.filename, archive.read(each), method if is_lines else None)
        first = next(each for each in changed.infolist() if each.compress_type == method)
    packed += other.read_bytes()
    begin = first.header_offset + 30 + len(first.filename) + 9  # behind what LZMA begins with
    packed[begin : begin + first.compress_size - 9] = b"\xff" * (first.compress_size - 9)
    other.write_bytes(packed)
    code, printed = Machine().run("import", other)
    assert (code, printed["error"]["code"]) == (65, "export_truncated")


def test_documents_that_fill_the_memory_together_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = exported(furnished(Machine(), tmp_path).store, tmp_path / "all.zip", "zip")
    with zipfile.ZipFile(path) as archive:
        sizes = [each.file_size for each in archive.infolist() if each.filename.endswith(".json")]
    monkeypatch.setattr(own_exports, "MAX_DOCUMENT_BYTES", max(sizes) + 1)
    code, printed = Machine().run("import", path)
    assert (code, printed["error"]["code"]) == (65, "export_truncated")


def with_lines(path: Path, *lines: Data) -> None:
    """The records of an export of lines are these; its end is true."""
    head = path.read_bytes().splitlines(keepends=True)[0]
    content = head + b"".join(orjson.dumps(line) + b"\n" for line in lines)
    end = {"object": "export_end", "record_count": len(lines)}
    whole = end | {"sha256": hashlib.sha256(content).hexdigest()}
    path.write_bytes(content + orjson.dumps(whole) + b"\n")


def forged(path: Path, sign: SignExport) -> Path:
    """An export of lines that says otherwise of every record, by somebody who knows all ids."""
    lines = path.read_bytes().splitlines(keepends=True)
    content = b"".join(lines[:-1]).replace(b"2026-03-01", b"2036-03-01")
    sha256 = hashlib.sha256(content).hexdigest()
    end = {"object": "export_end", "record_count": len(lines) - 2, "sha256": sha256}
    path.write_bytes(content + orjson.dumps({**end, **sign(sha256)}) + b"\n")
    return path


def by_another_signature(sha256: str) -> Mapping[str, str]:
    """Of something else that this server signed."""
    return OURS.sign(sha256[::-1])


@pytest.mark.parametrize("sign", [unsigned, THEIRS.sign, by_another_signature])
def test_no_export_of_others_changes_what_is_here(tmp_path: Path, sign: SignExport) -> None:
    machine = own(furnished(Machine(), tmp_path))
    kept = exported(machine.store, tmp_path / "kept.ndjson", "ndjson").read_bytes()
    count = machine.count()
    with machine.store.snapshot() as snapshot:
        here = {each.connection_id for each in snapshot.connections()}
    path = forged(exported(machine.store, tmp_path / "forged.ndjson", "ndjson"), sign)
    for new in (True, False):
        _, printed = machine.run("import", path)
        into = {each["connection"]["connection_id"] for each in printed["imports"]}
        assert here.isdisjoint(into)
        assert len(into) == len(here)
        assert (tallied(printed, "new") > 0) is new
    assert set(kept.splitlines()[1:-1]) < set(
        exported(machine.store, tmp_path / "now.ndjson", "ndjson").read_bytes().splitlines()
    )
    assert machine.count() > count


def test_no_export_of_others_takes_the_place_of_an_account_that_was_erased(tmp_path: Path) -> None:
    """An access that names the account would read what somebody else says."""
    machine = own(Machine())
    for key in ("mail", "contacts"):
        machine.run("import", as_zip(SPECIMENS[key], tmp_path / f"{key}.zip"))
    path = exported(machine.store, tmp_path / "forged.ndjson", "ndjson")
    with machine.store.snapshot() as snapshot:
        first = snapshot.connections()[0].connection_id
    machine.store.erase_connection(first, machine.ports.clock())
    machine.run("import", forged(path, THEIRS.sign))
    _, printed = machine.run("import", path)
    into: set[str] = {each["connection"]["connection_id"] for each in printed["imports"]}
    assert first not in into
    with machine.store.snapshot() as snapshot:
        names = {c.connection_id: c.display_name or "" for c in snapshot.connections()}
    assert len(names) == 3
    assert all("another server" in names[each] for each in into)


def test_no_export_of_others_takes_an_account_by_when_it_was_made(tmp_path: Path) -> None:
    machine = own(Machine())
    for key in ("mail", "contacts"):
        machine.run("import", as_zip(SPECIMENS[key], tmp_path / f"{key}.zip"))
    path = exported(machine.store, tmp_path / "forged.ndjson", "ndjson")
    with machine.store.snapshot() as snapshot:
        mail, contacts = (each.connection_id.encode() for each in snapshot.connections())
        here = {mail, contacts}
    exchanged = path.read_bytes().replace(mail, b"X").replace(contacts, mail)
    path.write_bytes(exchanged.replace(b"X", contacts))
    _, printed = machine.run("import", forged(path, THEIRS.sign))
    into = {each["connection"]["connection_id"].encode() for each in printed["imports"]}
    assert here.isdisjoint(into)


@every_form
def test_who_brought_an_account_may_bring_it_again(form: str, tmp_path: Path) -> None:
    path = exported(furnished(Machine(), tmp_path).store, tmp_path / f"all.{form}", form)
    machine = Machine()
    machine.ports = replace(machine.ports, own_signer=THEIRS.name)
    for new in (True, False):
        _, printed = machine.run("import", path)
        assert (tallied(printed, "new") > 0) is new


@pytest.mark.parametrize("also", [(), ("--dry-run",)])
def test_no_export_deletes_what_is_here(also: tuple[str, ...], tmp_path: Path) -> None:
    machine = furnished(Machine(), tmp_path)
    path = exported(machine.store, tmp_path / "all.ndjson", "ndjson")
    count = machine.count()
    record = next(
        line
        for line in map(orjson.loads, path.read_bytes().splitlines()[1:-1])
        if line["stream"] == "messages"
    )
    place = {name: record[name] for name in ("connection_id", "stream")}
    delete = place | {"key": record["data"]["id"], "op": "delete"}
    with_lines(
        path,
        delete | {"emitted_at": "2036-01-01T00:00:00Z"},
        place | {"blob_id": "none", "emitted_at": "2036-01-01T00:00:00Z"},
    )
    code, printed = machine.run("import", path, *also)
    assert (code, tallied(printed, "rejected")) == (65, 2)
    assert machine.count() == count


@every_form
def test_a_dry_run_checks_and_stores_nothing(form: str, tmp_path: Path) -> None:
    first = furnished(Machine(), tmp_path)
    path = exported(first.store, tmp_path / f"all.{form}", form)
    second = Machine()
    code, printed = second.run("import", path, "--dry-run")
    assert (code, tallied(printed, "read"), second.count()) == (0, first.count(), 0)


def test_options_that_would_change_an_own_export_are_refused(tmp_path: Path) -> None:
    path = exported(furnished(Machine(), tmp_path).store, tmp_path / "all.tar", "tar")
    assert Machine().run("import", path, "--connection", "Home")[0] == 64


def test_an_import_of_one_that_ended_early_goes_on(tmp_path: Path) -> None:
    first = furnished(Machine(), tmp_path)
    path = exported(first.store, tmp_path / "all.tar", "tar")
    second = Machine()
    with second.interrupted_after(3):
        assert second.run("import", path)[0] == 130
    assert 0 < second.count() < first.count()
    second.run("import", path)
    assert second.count() == first.count()


@pytest.mark.parametrize("key", sorted(SPECIMENS))
def test_no_export_of_others_is_taken_for_our_own(key: str, tmp_path: Path) -> None:
    assert not is_own_export(as_zip(SPECIMENS[key], tmp_path / "theirs.zip"))
    for number, content in enumerate(SPECIMENS[key].values()):
        path = tmp_path / str(number)
        path.write_bytes(content)
        assert not is_own_export(path)


@every_archive
def test_what_the_owner_said_of_persons_comes_back(tmp_path: Path, form: str) -> None:
    machine = furnished(Machine(), tmp_path)
    ada, home = identity_of("ada@example.org"), identity_of("+4930123456")
    assert ada is not None
    assert home is not None
    told = parted(merged(NO_CORRECTIONS, ada, home), identity_of("x:y") or ada)
    machine.store.correct_persons(lambda _: told)
    path = exported(machine.store, tmp_path / f"all.{form}", form)
    other = Machine()
    turn_on(other.store, 1, bytes)  # before anything is here
    other.run("import", path)
    assert other.store.person_corrections() == told


def test_an_import_that_was_killed_once_it_had_made_an_account_makes_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = exported(furnished(Machine(), tmp_path).store, tmp_path / "all.tar", "tar")
    machine, made = Machine(), list[str]()
    machine.ports = replace(machine.ports, own_signer=THEIRS.name)
    add = machine.store.add_connection

    def killed(connection: Connection, *also: Any) -> None:
        add(connection, *also)
        made.append(connection.connection_id)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(machine.store, "add_connection", killed)
        machine.run("import", path)
    machine.run("import", path)
    with machine.store.snapshot() as snapshot:
        names = [each.display_name or "" for each in snapshot.connections()]
    assert made
    assert not [each for each in names if "another server" in each]
    assert machine.run("import", path)[0] == 0
    assert len(names) == 6
