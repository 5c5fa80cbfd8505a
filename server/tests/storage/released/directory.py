"""Data directories as versions of the program wrote them, and what their server answered.

`NAME.zip` holds a data directory, `NAME.json` what its server answered before it was closed,
`NAME.pdpp.xz` a backup.  (The first version could not make one; its directory was backed up by the
first that could.)  What a released version wrote is never written again.
"""

from __future__ import annotations

import json
import lzma
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

from personal_server.app.backups import BackupOrder, make_backup
from personal_server.app.stores import open_stores
from personal_server.domain.stored import (
    Batch,
    CollectionRun,
    Rejection,
    RunStatus,
)
from personal_server.settings import Settings
from personal_server.storage.ports.disclosure_stores import DisclosureQuery
from server.tests.app.whole import Whole, whole
from server.tests.console.household import CHECKING, mail_request
from server.tests.storage.worlds import NOTES_STREAM, furnish, note, write

HERE = Path(__file__).parent
NOTEBOOK = "cin_notebook"
BYTES = b"the bytes of an attachment"


def released_names() -> list[str]:
    """Every version that is kept, the oldest first."""
    return sorted(path.stem for path in HERE.glob("*.zip"))


def unpack(name: str, folder: Path) -> Path:
    """A copy of the data directory of a version."""
    with zipfile.ZipFile(HERE / f"{name}.zip") as archive:
        archive.extractall(folder / "data")
    return folder / "data"


def backup_of(name: str, folder: Path) -> Path:
    """The backup that a version made, as a file in the folder."""
    path = folder / f"{name}.pdpp"
    path.write_bytes(lzma.decompress((HERE / f"{name}.pdpp.xz").read_bytes()))
    return path


def answers_of(name: str) -> dict[str, Any]:
    """What its own server answered."""
    return json.loads((HERE / f"{name}.json").read_text())


def write_released(folder: Path, name: str) -> None:
    """Make a data directory with something in every part of it, and keep it."""
    with whole(folder) as site:
        blob_id = _live(site)
        tokens = {
            "client": site.connect(mail_request())["access_token"],
            "owner": site.owner_token()["access_token"],
        }
        answers = asked(site, tokens, blob_id)
    settings, backup = Settings(data_dir=folder / "data"), folder / "made.pdpp"
    with open_stores(settings, serving=False) as stores:
        disclosed = len(stores.disclosures.disclosures(DisclosureQuery(limit=1_000)))
        make_backup(stores, settings, BackupOrder(backup))
    (HERE / f"{name}.pdpp.xz").write_bytes(lzma.compress(backup.read_bytes(), preset=9))
    facts = {"tokens": tokens, "blob_id": blob_id, "disclosures": disclosed, "answers": answers}
    with (HERE / f"{name}.json").open("w") as file:
        json.dump(facts, file, indent=1)
        file.write("\n")
    _pack(folder / "data", HERE / f"{name}.zip")


def asked(site: Whole, tokens: dict[str, str], blob_id: str) -> dict[str, Any]:
    """What a server says of the directory, without what differs each time."""
    paths = {
        "client": [
            "/v1/streams/messages/records?limit=5",
            "/v1/streams/messages/records/m007",
            "/v1/search?q=thursday&limit=5",
            "/v1/streams/messages/records?changes_since=beginning&limit=100",
        ],
        "owner": [
            f"/v1/streams/notes/records?connection_id={NOTEBOOK}",
            f"/v1/streams/notes/records?connection_id={NOTEBOOK}&changes_since=beginning",
            f"/v1/streams/notes/aggregate?connection_id={NOTEBOOK}&metric=sum&field=words",
            f"/v1/streams/transactions/records?connection_id={CHECKING}&limit=3",
            f"/v1/search?q=harbour&connection_id={NOTEBOOK}",
            f"/v1/state/notebook?connection_id={NOTEBOOK}",
            f"/v1/owner/connections/{NOTEBOOK}/rejections",
        ],
    }
    answers: dict[str, Any] = {}
    for who, listed in paths.items():
        for path in listed:
            page = site.call(path, tokens[who])
            assert page.status == 200, (path, page.text)
            answers[path] = _lasting(site.body(page))
    blob = site.call(f"/v1/blobs/{blob_id}?connection_id={NOTEBOOK}", tokens["owner"])
    assert (blob.status, blob.text) == (200, BYTES.decode())
    return answers


def _lasting(answer: dict[str, Any]) -> Any:
    """What no later version may answer otherwise."""
    kept = ("object", "id", "stream", "connection_id", "deleted", "data")
    if not isinstance(answer.get("data"), list):
        return answer.get("state", answer.get("value"))
    return [{name: each[name] for name in kept if name in each} for each in answer["data"]]


def _live(site: Whole) -> str:
    """Records that came, changed and went, with bytes, bookmarks, runs and receipts."""
    records, now = site.server.stores.records, site.clock()
    furnish(records, NOTEBOOK)
    upload, _ = records.receive_blob(NOTEBOOK, [BYTES], "text/plain", now, 1_000)
    reference = {"blob_id": upload.blob_id, "size_bytes": len(BYTES), "mime_type": "text/plain"}
    notes = [
        note(f"n{i}", title=f"Note {i}", body="rain over the harbour", words=i) for i in range(9)
    ]
    write(records, NOTEBOOK, [*notes, note("b", blob_ref=reference)], emitted=now, now=now)
    write(
        records, NOTEBOOK, [note("n3", title="Changed", body="sun", words=30)], emitted=now, now=now
    )
    records.delete_record(NOTEBOOK, NOTES_STREAM.name, "n5", now)
    records.record_run(NOTEBOOK, CollectionRun("run_1", RunStatus.SUCCEEDED, now))
    records.put_state(NOTEBOOK, {"notes": {"page": 3}}, now)
    refused = Rejection("rcp_1", "notes", "invalid_record", "/at", "run_1", now)
    records.commit(Batch(NOTEBOOK, NOTES_STREAM, (), now, lambda _: [refused]))
    site.connect(mail_request())
    return upload.blob_id


def _pack(data: Path, archive: Path) -> None:
    with closing(sqlite3.connect(data / "personal-server.sqlite3")) as driver:
        driver.executescript("PRAGMA journal_mode = delete; VACUUM")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for path in sorted(data.rglob("*")):
            if path.is_file() and not path.name.endswith((".lock", "-wal", "-shm")):
                made.write(path, path.relative_to(data))
