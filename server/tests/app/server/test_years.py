"""Years of a server that nobody looks after: nothing of it grows that nothing sweeps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.app.notice_facts import notices_of
from personal_server.app.scheduled_backups import ScheduledBackups
from personal_server.consent.client_registration import DOCUMENT, DYNAMIC
from personal_server.delivery.callbacks import Callbacks
from personal_server.domain.stored import (
    Batch,
    CollectionRun,
    RecordWrite,
    Rejection,
    RunStatus,
    WriteOutcome,
)
from personal_server.granting.audit import Acting
from personal_server.granting.retention import Retention, forget, sweep
from personal_server.granting.revocations import end_access
from personal_server.settings import Settings
from personal_server.storage.authorization_rows import AssertionIdRow, ClientDocumentRow, ClientRow
from personal_server.upkeep.logs import seal_logs, signing_key, verify_log
from personal_server.upkeep.scratch import sweep_scratch
from server.tests.app.whole import CALLBACK, Whole, whole
from server.tests.console.household import HOME, bank_request, mail_request, mails

OFTEN, PROBES = 10, 31
# What was erased is remembered for as long as some backup might bring it back; what was agreed, and
# who was given access, until the owner deletes it.
REMEMBERED = frozenset(
    {"erasures", "grants", "grant_packages", "grant_package_members", "review_artifacts"}
)
# These grow by what their owner brings in or sets up, and by nothing else.
OWNED = frozenset(
    {"blob_references", "introspection_clients", "passkeys", "rebuilds", "thread_marks"}
    | {"rankings", "owner", "gone", "canaries", "reading_limits", "person_corrections"}
    | {"passages", "passage_blocks", "passage_indexes", "passage_signs"}  # with a model only
    | {"event_subscriptions", "events"}  # so many of an access, and forgotten after it
    | {"feeds", "feed_items", "feed_runs"}  # of a folder, and the newest 200 receipts of a feed
    | {"feed_mails"}  # of the mails that an account holds
    | {"notice_channels", "notice_settings"}
)
KEPT = Retention(history_days=45, disclosure_days=45, audit_days=45, detail_days=30)
NO_PROCESS = 2**22 + 1

# tables of records, and what the database keeps for itself
OTHERS = "name GLOB '[rhwf][0-9]*' OR name GLOB 'sqlite_*'"
TABLES = f"SELECT name FROM sqlite_master WHERE type = 'table' AND NOT ({OTHERS})"  # noqa: S608


# The shortest that anything is kept here is 30 days: who looks in every ten days misses none of it.
@pytest.mark.of_files("the sizes are those of files")
@pytest.mark.parametrize("step_days", [10, pytest.param(3, marks=pytest.mark.long)])
def test_a_year_leaves_the_files_as_large_as_half_a_year_did(
    step_days: int, tmp_path: Path
) -> None:
    half, year = 183 // step_days, 366 // step_days
    kept = tmp_path / "kept"
    kept.mkdir()
    with whole(tmp_path, backup_dir=kept, backup_keep=2) as site:
        settings = Settings(data_dir=tmp_path / "data", backup_dir=kept, backup_keep=2)
        tokens = site.connect(mail_request(), expiry="none")
        sizes: list[dict[str, int]] = []
        used: set[str] = set()
        for step in range(1, year + 1):
            site.clock.now_ns += step_days * DAY_NANOSECONDS
            tokens = live_through(site, settings.data_dir, tokens, step)
            if step % OFTEN == 0:
                now_and_then(site, step, tokens["access_token"])
                used |= {name for name, count in row_counts(tmp_path).items() if count}
            look_after(site, settings)
            if step in (half, year):
                sizes.append({**row_counts(tmp_path), "files": files(tmp_path)})
        stores = site.server.stores
        public = signing_key(stores.logs, stores.random_bytes).public_key()
        reports = [verify_log(stores.logs, name, public) for name in stores.logs.names]
    assert grown(sizes) == {}
    assert set(sizes[0]) - used - OWNED - {"files"} == set()
    assert [report.faults for report in reports] == [(), ()]


def grown(sizes: Sequence[dict[str, int]]) -> dict[str, tuple[int, int]]:
    """What is larger after the year than after its half."""
    half, year = sizes
    return {
        name: (half.get(name, 0), count)
        for name, count in year.items()
        if name not in REMEMBERED and count > half.get(name, 0) + 5
    }


def live_through(site: Whole, data_dir: Path, tokens: dict[str, Any], step: int) -> dict[str, Any]:
    """Some days: a client renews and reads, others only come by, mail changes and goes."""
    renewed = site.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"])
    read = site.call("/v1/streams/messages/records?limit=3", renewed["access_token"])
    assert read.status == 200, read.text
    denied = site.call("/v1/streams/transactions/records", renewed["access_token"])
    assert denied.status == 403
    assert site.call("/v1/streams/messages/records", f"nobody{step}").status == 401
    site.sign_in()
    strangers_come(site, step)
    site.ask(mail_request(), client_id=f"dyn_{step}")  # and nobody decides
    collect(site, step)
    leave_scratch(data_dir, step, site.clock())
    return renewed


def strangers_come(site: Whole, step: int) -> None:
    """Clients that register, or publish a document, and are never let in."""
    facts: dict[str, Any] = {
        "name": "Passing by",
        "redirect_uris": (CALLBACK,),
        "registered_at_ns": site.clock(),
    }
    url = f"https://app{step}.example/client"
    with site.server.stores.authorization.write() as writer:
        for kind, client_id in ((DYNAMIC, f"dyn_{step}"), (DOCUMENT, url)):
            came = {"client_id": client_id, "client_ref": f"clr_{kind}{step}"}
            writer.insert(ClientRow(**came, registration=kind, **facts))
        writer.insert(
            ClientDocumentRow(
                url=url,
                body=b"{}",
                digest="sha256:0",
                fetched_at_ns=site.clock(),
                fresh_until_ns=site.clock() + DAY_NANOSECONDS,
            )
        )
        writer.insert(AssertionIdRow(jti_hash=step.to_bytes(32, "big"), expires_at_ns=site.clock()))


def collect(site: Whole, step: int) -> None:
    """A collector's run: mail that changed, lines that were refused, bytes that nothing names."""
    stores, now_ns = site.server.stores, site.clock()
    with stores.records.snapshot() as snapshot:
        declared = stores.declarations.current(snapshot.declarations())["mail"].streams["messages"]
    changed = mails(now_ns, 3)
    for mail in changed:
        mail["subject"] = f"Again, the {step}th time"
    writes = [RecordWrite(mail["id"], mail, now_ns) for mail in changed]

    def refused(outcomes: Sequence[WriteOutcome]) -> list[Rejection]:
        return [
            Rejection(f"rr_{step}_{n}", "messages", "invalid_record", None, None, now_ns)
            for n in range(2 * len(outcomes) * OFTEN)  # the newest 1,000 are kept
        ]

    stores.records.commit(Batch(HOME, declared, writes, now_ns, refused))
    stores.records.delete_record(HOME, "messages", changed[0]["id"], now_ns)
    stores.records.record_run(HOME, CollectionRun(f"run_{step}", RunStatus.SUCCEEDED, now_ns))
    stores.records.put_state(HOME, {"messages": {"step": step}}, now_ns)
    stores.records.receive_blob(HOME, [f"nothing {step}".encode()], "text/plain", now_ns, 1_000)


def leave_scratch(data_dir: Path, step: int, now_ns: int) -> None:
    """What processes leave that are killed."""
    names = (f".config-{NO_PROCESS}.toml", f".backup-{NO_PROCESS}-{step}", f".ledger-{step}")
    for path in (*(data_dir / name for name in names), data_dir / "blobs" / f"incoming-{step}"):
        path.write_text("left")
        os.utime(path, ns=(now_ns, now_ns))


def now_and_then(site: Whole, step: int, token: str) -> None:
    """Access that is given and not collected, collected and ended; an owner's device; probing."""
    for number in range(PROBES):
        assert site.call(f"/v1/search?q=nothing{step}x{number}", token).status == 200
    site.recorder.flush()
    details = [*mail_request(), *bank_request()]
    ended = site.connect(details)
    held_id = ended.get("grant_package_id") or ended["grant_id"]
    with site.server.stores.authorization.write() as writer:
        assert end_access(writer, held_id, "owner", Acting("owner"), site.clock())
    assert site.owner_token()["access_token"]
    path = site.ask(mail_request(), state=str(step))
    decided = site.owner.submit(site.owner.get(path), path, action="approve")
    assert decided.status == 303, decided.text


def look_after(site: Whole, settings: Settings) -> None:
    """What the server does by itself, as often as it takes, and at its next start."""
    stores, now_ns = site.server.stores, site.clock()
    sweep(stores.authorization, now_ns)
    forget(stores.records, stores.disclosures, stores.authorization, KEPT, now_ns)
    seal_logs(stores.logs, signing_key(stores.logs, stores.random_bytes), now_ns)
    stores.records.finish_erasures()
    ScheduledBackups(stores, settings).make_if_due()
    sweep_scratch(settings.data_dir, now_ns)
    notices_of(settings, stores, Callbacks()).turn()


def row_counts(folder: Path) -> dict[str, int]:
    """Every table of the file, with its rows."""
    [path] = (folder / "data").glob("*.sqlite*3")
    connection: Any = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    names = [row[0] for row in connection.execute(TABLES)]
    counts = {
        name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]  # noqa: S608
        for name in names
    }
    connection.close()
    return counts


def files(folder: Path) -> int:
    """How many there are, backups included."""
    return sum(path.is_file() for path in folder.rglob("*"))
