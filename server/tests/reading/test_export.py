"""An export: lines with a proof at their end, or an archive of members that each can be checked."""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson
import pytest

from pdpp_kernel.errors import DamagedRecord
from pdpp_kernel.person_fields import Identity, IdentityKind
from pdpp_kernel.persons import Corrections
from pdpp_kernel.record import DamagedRow
from pdpp_kernel.values import NANOSECONDS
from personal_server.domain.disclosure import SERVED, DisclosureEntry
from personal_server.reading.export import (
    CHUNK_BYTES,
    ArchiveForm,
    Enclosures,
    ExportArchive,
    OwnerExport,
    blob_member,
    declaration_member,
    digest_line,
    export_lines,
    extent_of,
    records_member,
    stored_grants,
)
from personal_server.reading.shown_disclosures import render_disclosure
from personal_server.storage.authorization_rows import GrantRow
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server.journal import (
    ATTACHMENTS,
    BANK,
    DIARY,
    JOURNAL_RAW,
    LETTERS,
    furnished,
    write,
)
from tests.oracle.authorization_memory import MemoryAuthorizationStore

NOW_NS = 1_790_000_000 * NANOSECONDS
AT = "2026-09-21T14:13:20Z"
BLOB_ID = ATTACHMENTS[0]["blob_ref"]["blob_id"]


def lines_of(store: RecordStore, *named: str | None, planted: Any = frozenset()) -> list[bytes]:
    connection_id, stream = named or (None, None)
    with store.snapshot() as snapshot:
        extent = extent_of(snapshot, connection_id, stream, planted)
        return list(export_lines(snapshot, extent, NOW_NS))


def parsed(chunks: list[bytes]) -> list[Any]:
    return [orjson.loads(line) for line in b"".join(chunks).splitlines()]


def archive_of(
    store: RecordStore,
    enclosures: Enclosures | None = None,
    form: ArchiveForm = "tar",
    *,
    blob: bytes | None = b"abc",
    planted: Any = frozenset(),
) -> bytes:
    def open_blob(blob_id: str) -> BinaryIO | None:
        assert blob_id == BLOB_ID
        return None if blob is None else io.BytesIO(blob)

    archive = ExportArchive(NOW_NS, form)
    with store.snapshot() as snapshot:
        first = b"".join(archive.records(snapshot, extent_of(snapshot, None, None, planted)))
    return first + b"".join(archive.rest(enclosures or Enclosures(), open_blob))


def members_of(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        files = {member.name: opened.extractfile(member) for member in opened.getmembers()}
        return {name: file.read() for name, file in files.items() if file is not None}


def test_lines_begin_with_what_was_exported_and_end_with_its_digest() -> None:
    chunks = lines_of(furnished())
    head, *records, end = parsed(chunks)
    assert (head["object"], head["format_version"]) == ("export", "1")
    assert head["exported_at"].startswith(AT[:-1])
    assert [one["connection_id"] for one in head["connections"]] == [BANK, DIARY, LETTERS]
    assert head["connections"][1] == {
        "connection_id": DIARY,
        "connector_key": "journal",
        "source_id": JOURNAL_RAW["source"]["id"],
        "display_name": "Paper diary",
        "status": "active",
        "created_at": head["connections"][1]["created_at"],
    }
    assert [one["connector_key"] for one in head["declarations"]] == ["banking", "journal"]
    whole = b"".join(chunks)
    before = whole[: whole.rstrip(b"\n").rindex(b"\n") + 1]
    assert end == {
        "object": "export_end",
        "record_count": len(records),
        "sha256": hashlib.sha256(before).hexdigest(),
    }
    first = records[0]
    assert (first["connection_id"], first["stream"], first["key"]) == (BANK, "entries", "e1")
    assert first["data"]["title"] == "Rain"
    assert first["emitted_at"].startswith("2026-05-01T00:00:00")


def test_an_export_is_of_the_part_that_is_named() -> None:
    store = furnished()
    head, *records, _ = parsed(lines_of(store, BANK, None))
    assert [one["connection_id"] for one in head["connections"]] == [BANK]
    assert [one["connector_key"] for one in head["declarations"]] == ["banking"]
    assert {record["connection_id"] for record in records} == {BANK}
    _, *records, end = parsed(lines_of(store, None, "volumes"))
    assert [(record["connection_id"], record["stream"]) for record in records] == [
        (DIARY, "volumes")
    ]
    assert end["record_count"] == 1


def test_a_changed_record_has_the_time_of_its_newest_change() -> None:
    store = furnished()
    changed = {"id": "v1", "name": "Summer"}
    write(store, DIARY, "volumes", [changed], emitted_at="2026-06-01T00:00:00Z")
    _, record, _ = parsed(lines_of(store, None, "volumes"))
    assert record["data"] == changed
    assert record["emitted_at"].startswith("2026-06-01T00:00:00")


def test_lines_come_in_chunks_and_are_the_same_together() -> None:
    store = furnished()
    long = [{"id": f"v{n}", "name": "x" * 20_000} for n in range(2, 12)]
    write(store, DIARY, "volumes", long)
    chunks = lines_of(store, None, "volumes")
    assert len(chunks) == 3
    assert all(CHUNK_BYTES <= len(chunk) < CHUNK_BYTES + 21_000 for chunk in chunks[:-1])
    *_, end = parsed(chunks)
    whole = b"".join(chunks)
    before = whole[: whole.rstrip(b"\n").rindex(b"\n") + 1]
    assert (end["record_count"], end["sha256"]) == (11, hashlib.sha256(before).hexdigest())


def test_bait_records_are_in_no_export_and_in_no_count() -> None:
    store = furnished()
    planted = frozenset({(DIARY, "entries", "e1"), (DIARY, "entries", "e2")})
    _, *records, _ = parsed(lines_of(store, DIARY, "entries", planted=planted))
    assert [record["key"] for record in records] == ["e3"]
    manifest = orjson.loads(members_of(archive_of(store, planted=planted))["manifest.json"])
    counts = {
        (one["connection_id"], one["stream"]): one["record_count"] for one in manifest["streams"]
    }
    assert counts[DIARY, "entries"] == 1
    assert counts[LETTERS, "entries"] == 2


def test_an_archive_has_a_member_for_each_thing_and_a_digest_over_all() -> None:
    members = members_of(archive_of(furnished()))
    assert [*members] == [
        "manifest.json",
        declaration_member("banking"),
        declaration_member("journal"),
        "connections.json",
        records_member(BANK, "entries"),
        records_member(DIARY, "attachments"),
        records_member(DIARY, "entries"),
        records_member(DIARY, "volumes"),
        records_member(LETTERS, "entries"),
        blob_member(BLOB_ID),
        "grants.json",
        "disclosures.ndjson",
        "export_end.json",
    ]
    assert members[blob_member(BLOB_ID)] == b"abc"
    assert orjson.loads(members[declaration_member("journal")]) == JOURNAL_RAW
    (record,) = map(orjson.loads, members[records_member(BANK, "entries")].splitlines())
    assert [*record] == ["key", "data", "emitted_at"]
    manifest = orjson.loads(members["manifest.json"])
    assert (manifest["object"], manifest["exported_at"][:19]) == ("export", AT[:-1])
    assert manifest["streams"][0] == {
        "connection_id": BANK,
        "connector_key": "banking",
        "stream": "entries",
        "record_count": 1,
    }
    end = orjson.loads(members.pop("export_end.json"))
    listed = b"".join(
        digest_line(name, hashlib.sha256(content).hexdigest()) for name, content in members.items()
    )
    assert listed.startswith(hashlib.sha256(members["manifest.json"]).hexdigest().encode() + b"  ")
    assert end == {
        "object": "export_end",
        "record_count": 19,
        "sha256": hashlib.sha256(listed).hexdigest(),
    }


@pytest.mark.parametrize("size", [0, 511, 512, 513, CHUNK_BYTES + 1])
def test_an_archive_can_be_read_whatever_the_size_of_its_files(size: int) -> None:
    whole = archive_of(furnished(), blob=b"x" * size)
    assert len(whole) % tarfile.BLOCKSIZE == 0
    assert whole.endswith(bytes(2 * tarfile.BLOCKSIZE))
    assert members_of(whole)[blob_member(BLOB_ID)] == b"x" * size
    with tarfile.open(fileobj=io.BytesIO(whole)) as archive:
        (blob,) = [member for member in archive.getmembers() if member.name == blob_member(BLOB_ID)]
    assert (blob.size, blob.mode, blob.mtime) == (size, 0o600, NOW_NS // NANOSECONDS)


def test_a_zip_has_the_same_members_and_packs_lines() -> None:
    store = furnished()
    with zipfile.ZipFile(io.BytesIO(archive_of(store, form="zip"))) as archive:
        assert archive.testzip() is None
        contents = {name: archive.read(name) for name in archive.namelist()}
        packed = {info.filename: info.compress_type for info in archive.infolist()}
        (info,) = [one for one in archive.infolist() if one.filename == "manifest.json"]
        assert archive.infolist()[0].header_offset == 0  # each byte stands there once
    assert contents == members_of(archive_of(store))
    kinds = {name.endswith(".ndjson"): kind for name, kind in packed.items()}
    assert kinds == {True: zipfile.ZIP_DEFLATED, False: zipfile.ZIP_STORED}
    assert info.date_time == (2026, 9, 21, 14, 13, 20)
    assert stat.S_IMODE(info.external_attr >> 16) == 0o600


def test_a_time_before_zip_files_is_written_as_their_first_year() -> None:
    archive = ExportArchive(0, "zip")
    with furnished().snapshot() as snapshot:
        extent = extent_of(snapshot, None, "volumes")
        content = b"".join([*archive.records(snapshot, extent), *archive.rest(Enclosures(), _none)])
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        assert opened.infolist()[0].date_time == (1980, 1, 1, 0, 0, 0)


def _none(blob_id: str) -> BinaryIO | None:
    raise AssertionError(blob_id)


def test_what_lies_beside_the_records_is_enclosed() -> None:
    entry = DisclosureEntry("dis_1", "own_1", 1, "req_1", SERVED, "client", "rest", "GET /v1/x")
    one, other, third = (Identity(IdentityKind.ADDRESS, f"{name}@x") for name in "abc")
    corrections = Corrections(
        merged=frozenset({(one, other)}),
        parted=frozenset({third}),
    )
    enclosures = Enclosures(
        grants=lambda: [{"grant_id": "grt_1"}],
        disclosures=lambda: [render_disclosure(entry)],
        corrections=lambda: corrections,
    )
    members = members_of(archive_of(furnished(), enclosures))
    assert orjson.loads(members["grants.json"]) == [{"grant_id": "grt_1"}]
    (shown,) = map(orjson.loads, members["disclosures.ndjson"].splitlines())
    assert (shown["disclosure_id"], shown["route"]) == ("dis_1", "GET /v1/x")
    assert orjson.loads(members["persons.json"]) == {
        "merged": [[["address", "a@x"], ["address", "b@x"]]],
        "parted": [["address", "c@x"]],
    }


def test_a_file_that_nobody_has_or_that_is_damaged_is_left_out_and_the_damaged_named() -> None:
    members = members_of(archive_of(furnished(), blob=None))
    assert blob_member(BLOB_ID) not in members
    assert "damaged_blobs" not in orjson.loads(members["export_end.json"])

    def damaged(blob_id: str) -> BinaryIO | None:
        raise DamagedRecord(blob_id)

    archive = ExportArchive(NOW_NS)
    with furnished().snapshot() as snapshot:
        first = b"".join(archive.records(snapshot, extent_of(snapshot, None, None)))
    members = members_of(first + b"".join(archive.rest(Enclosures(), damaged)))
    assert blob_member(BLOB_ID) not in members
    assert orjson.loads(members["export_end.json"])["damaged_blobs"] == [BLOB_ID]


class Damaged:
    """A state of the store in which two rows could not be read."""

    def __init__(self, snapshot: Any) -> None:
        self._snapshot = snapshot

    damaged = (DamagedRow(DIARY, "entries", "e9"), DamagedRow(DIARY, "volumes", None))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._snapshot, name)


def test_records_that_could_not_be_read_are_named_at_the_end() -> None:
    expected = [
        {"connection_id": DIARY, "stream": "entries", "record_id": "e9"},
        {"connection_id": DIARY, "stream": "volumes"},
    ]
    with furnished().snapshot() as snapshot:
        state: Any = Damaged(snapshot)
        extent = extent_of(state, None, "volumes")
        *_, end = parsed(list(export_lines(state, extent, NOW_NS)))
        archive = ExportArchive(NOW_NS)
        content = b"".join([*archive.records(state, extent), *archive.rest(Enclosures(), _none)])
    assert end["damaged_records"] == expected
    assert orjson.loads(members_of(content)["export_end.json"])["damaged_records"] == expected


def test_grants_are_exported_as_they_were_agreed_with_their_end() -> None:
    store = MemoryAuthorizationStore("own_1")
    with store.write() as writer:
        for number, revoked_ns in ((1, None), (2, NOW_NS)):
            writer.insert(
                GrantRow(
                    grant_id=f"grt_{number}",
                    grant=b'{"a": 1}',
                    client_id="cli_1",
                    connector_key="journal",
                    access_mode="continuous",
                    issued_at_ns=0,
                    revoked_at_ns=revoked_ns,
                    reason="owner" if revoked_ns else None,
                    revision="rv1",
                )
            )
    living, ended = stored_grants(store)
    assert (living["revoked_at"], living["reason"], living["grant"]) == (None, None, '{"a": 1}')
    assert (living["client_id"], living["connector_key"]) == ("cli_1", "journal")
    assert str(living["issued_at"]).startswith("1970-01-01T00:00:00")
    assert (str(ended["revoked_at"])[:19], ended["reason"]) == (AT[:-1], "owner")


def test_an_export_under_way_gives_records_then_the_rest_and_lets_go() -> None:
    released: list[str] = []

    def rest() -> Iterator[bytes]:
        try:
            yield b"rest"
        finally:
            released.append("rest")

    export = OwnerExport(iter([b"one", b"two"]), rest(), lambda: released.append("records"))
    assert iter(export) is export
    assert b"".join(export) == b"onetworest"
    export.close()
    assert released == ["records", "rest"]


def test_an_export_that_nobody_takes_to_the_end_lets_go_too() -> None:
    released: list[str] = []
    export = OwnerExport(iter([b"one"]), iter([b"rest"]), lambda: released.append("records"))
    export.close()
    assert released == ["records"]
