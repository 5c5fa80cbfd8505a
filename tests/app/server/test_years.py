"""Years of a server that nobody looks after: nothing in its file grows that nothing sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from personal_server.domain.values import DAY_NANOSECONDS
from personal_server.granting.retention import Retention, forget, sweep
from personal_server.storage.ports import Batch, RecordWrite
from personal_server.upkeep.logs import seal_logs, signing_key, verify_log
from tests.app.whole import Whole, whole
from tests.console.household import HOME, mail_request, mails

STEP_DAYS = 3
# what was erased is remembered for as long as some backup might bring it back
REMEMBERED = frozenset({"erasures"})
KEPT = Retention(history_days=45, disclosure_days=45, audit_days=45)

TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"


def test_a_year_leaves_the_file_as_large_as_half_a_year_did(tmp_path: Path) -> None:
    with whole(tmp_path) as site:
        tokens = site.connect(mail_request(), expiry="none")
        sizes: list[dict[str, int]] = []
        for step in range(1, 2 * 183 // STEP_DAYS + 1):
            site.clock.now_ns += STEP_DAYS * DAY_NANOSECONDS
            tokens = live_through(site, tokens, step)
            look_after(site)
            if step in (183 // STEP_DAYS, 2 * 183 // STEP_DAYS):
                sizes.append(row_counts(tmp_path))
        stores = site.server.stores
        public = signing_key(stores.logs, stores.random_bytes).public_key()
        reports = [verify_log(stores.logs, name, public) for name in stores.logs.names]
    half, whole_year = sizes
    grown = {
        table: (half.get(table, 0), count)
        for table, count in whole_year.items()
        if table not in REMEMBERED and count > half.get(table, 0) + 5
    }
    assert grown == {}
    assert [report.faults for report in reports] == [(), ()]


def live_through(site: Whole, tokens: dict[str, Any], step: int) -> dict[str, Any]:
    """Some days: a client renews and reads, a stranger comes by, a mail changes, one goes."""
    renewed = site.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"])
    read = site.call("/v1/streams/messages/records?limit=3", renewed["access_token"])
    assert read.status == 200, read.text
    site.client.get(f"/oauth/authorize?client_id=passing{step}")
    site.client.send("POST", "/oauth/register", **{"content-type": "application/json"})
    if step % 10 == 0:
        site.sign_in()
    stores = site.server.stores
    with stores.records.snapshot() as snapshot:
        declared = stores.declarations.current(snapshot.declarations())["mail"].streams["messages"]
    changed = mails(site.clock(), 3)
    for mail in changed:
        mail["subject"] = f"Again, the {step}th time"
    writes = [RecordWrite(mail["id"], mail, site.clock()) for mail in changed]
    stores.records.commit(Batch(HOME, declared, writes, site.clock()))
    stores.records.delete_record(HOME, "messages", changed[0]["id"], site.clock())
    return renewed


def look_after(site: Whole) -> None:
    """What the server does by itself, as often as it takes."""
    stores = site.server.stores
    sweep(stores.authorization, site.clock())
    forget(stores.records, stores.disclosures, stores.authorization, KEPT, site.clock())
    seal_logs(stores.logs, signing_key(stores.logs, stores.random_bytes), site.clock())


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
