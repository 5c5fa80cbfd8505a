"""`pdpp doctor --data`: whether what lies in the data directory fits together, and its repair.

Rule: records are never changed; what is made from them is made anew where `repair` asks for it, and
everything else is told with what to do.
Source: docs/backup.md.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial

from pdpp_kernel.texts import counted
from pdpp_mcp_server.commands.tables import words
from personal_server.app.data_repairs import damage_of
from personal_server.app.stores import Stores, open_stores
from personal_server.cli.findings import HINT, Finding, good, wrong
from personal_server.cli.kept_data import require_kept
from personal_server.granting.retention import UNREFERENCED_BLOB_NS
from personal_server.settings import Settings
from personal_server.storage.sql.care.faults import DamagedTable, Faulty, StreamCheck
from personal_server.upkeep.rebuilds import percent_done

RESTORE = (
    "Keep the data directory as it is, and restore a backup into an empty "
    "directory (docs/backup.md)."
)
REIMPORT = (
    "Import the source again to replace the damaged records; or restore a backup (docs/backup.md)."
)
REPAIR = "pdpp doctor --data --repair rebuilds this from the records."
SWEEP = (
    "pdpp doctor --data --repair removes these files; a running server also removes "
    "them automatically."
)
PARTS = {
    "": "the database's list of tables",
    "r": "the table of records",
    "h": "the table of texts",
    "w": "the word index",
    "f": "an older word index",
    "d": "the counts per day",
    "g": "the counts per group",
}
FAULTY_BLOBS = {
    "missing": "missing from the blob directory",
    "changed": "with other content than was stored",
}
FAULTY = {
    "damaged_records": "damaged, and never shown",
    "misnamed_records": "stored under the key of another record",
    "unexplained_records": "with a change that is missing from the change feed",
}


def data_findings(settings: Settings, *, repair: bool) -> Iterator[Finding]:
    """Check everything, one finding after another; nothing further where pages are damaged."""
    require_kept(settings)
    words().print("Checking every page of the database …")
    damaged = [table for table in damage_of(settings) if not table.is_index]
    for table in damaged:
        yield wrong(
            "database", "Database", f"damaged pages in {_part(table)}", RESTORE, "damaged_pages"
        )
    if damaged:
        return
    yield good("database", "Database", "every page and index of the database is sound")
    with open_stores(settings, serving=False) as stores:
        yield from _streams(stores, repair=repair)
        yield from _rebuilds(stores)
        yield _feed(stores)
        yield from _blobs(stores, repair=repair)


def _part(table: DamagedTable) -> str:
    """In plain words."""
    if table.name and not table.kind:
        return f"the table {table.name}"
    of_stream = f" of {table.stream} ({table.connection_id})" if table.stream else ""
    named = f" (table {table.name})" if table.name else ""
    return f"{PARTS[table.kind]}{of_stream}{named}"


def _streams(stores: Stores, *, repair: bool) -> Iterator[Finding]:
    primary_key = _primary_keys(stores)
    for stream in stores.integrity.places():
        name = "{1} ({0})".format(*stream)
        check = partial(stores.integrity.stream, *stream, primary_key, _tell(f"records of {name}"))
        found = check()
        if repair and found.can_be_made_anew:
            words().print(f"Rebuilding the indexes of {name} from the records …")
            stores.integrity.make_anew(*stream)
            while stores.records.rebuild_slice():
                pass
            found = check()
            if not (found.words_differ or found.values_differ):
                yield good(
                    "stream", name, "the word index and the columns of these records were rebuilt"
                )
        yield from _stream(name, found)


def _rebuilds(stores: Stores) -> Iterator[Finding]:
    """What is stored anew in the background; a server goes on with it."""
    for each in stores.records.rebuilds():
        done = (
            f"the server is rebuilding these records, {percent_done([each])} % of "
            f"{each.records:,} done"
        )
        yield good("rebuild", f"{each.stream} ({each.connection_id})", done)


def _stream(name: str, found: StreamCheck) -> Iterator[Finding]:
    faults = [
        *_records(name, found.damaged, "damaged_records", REIMPORT),
        *_records(name, found.misnamed, "misnamed_records", RESTORE),
        *_records(name, found.unexplained, "unexplained_records", RESTORE),
    ]
    mend = REIMPORT if found.damaged.count else REPAIR
    if found.words_differ:
        sentence = "the word index does not match the records"
        faults.append(wrong("stream", name, sentence, mend, "words_differ"))
    if found.values_differ:
        sentence = "some columns do not match the records"
        faults.append(wrong("stream", name, sentence, mend, "columns_differ"))
    yield from faults or [good("stream", name, str(counted(found.records, "record")))]


def _records(name: str, faulty: Faulty, fault: str, mend: str) -> Iterator[Finding]:
    if faulty.count:
        yield wrong("stream", name, _listed(faulty, FAULTY[fault], "record"), mend, fault)


def _feed(stores: Stores) -> Finding:
    found = stores.integrity.feed()
    if found.disordered:
        sentence = f"{counted(found.disordered, 'change')} in the wrong order"
        return wrong("change_feed", "Change feed", sentence, RESTORE, "disordered")
    if not found.newest_fits:
        sentence = "the newest change number differs from the database's counter"
        return wrong("change_feed", "Change feed", sentence, RESTORE, "counter_differs")
    return good("change_feed", "Change feed", str(counted(found.changes, "change")))


def _blobs(stores: Stores, *, repair: bool) -> Generator[Finding, None, None]:
    count = yield from _damaged_blobs(stores)
    if count is not None:
        yield good("blobs", "Files of records", str(counted(count, "file")))
    before_ns = stores.clock() - UNREFERENCED_BLOB_NS
    strays = stores.integrity.strays(before_ns)
    if strays and repair:
        stores.records.sweep_blobs(before_ns)
        sentence = f"removed: {counted(strays, 'file')} that no record uses"
        yield good("unused_blobs", "Stored files", sentence)
    elif strays:
        sentence = f"{counted(strays, 'file')} that no record uses"
        yield Finding("unused_blobs", "Stored files", HINT, sentence, SWEEP)


def _damaged_blobs(stores: Stores) -> Generator[Finding, None, int | None]:
    """How many there are, if all are whole; else a line for each stream and kind of fault."""
    checking, faulty = stores.integrity.blobs(_tell("blobs")), dict[tuple[str, str], Faulty]()
    while True:
        try:
            fault = next(checking)
        except StopIteration as end:
            if not faulty:
                return end.value
            break
        kind = "missing" if fault.is_missing else "changed"
        of_stream = "" if fault.place is None else ", of {1} ({0})".format(*fault.place)
        faulty.setdefault((kind, of_stream), Faulty()).add(fault.blob_id)
    for (kind, of_stream), found in faulty.items():
        sentence = _listed(found, f"{FAULTY_BLOBS[kind]}{of_stream}", "file")
        yield wrong("blobs", "Files of records", sentence, REIMPORT, kind)
    return None


def _listed(faulty: Faulty, fault: str, noun: str) -> str:
    """How many there are, what is wrong with them, and the first of them."""
    more = " …" if faulty.count > len(faulty.keys) else ""
    return f"{counted(faulty.count, noun)} {fault}: {', '.join(faulty.keys)}{more}"


def _primary_keys(stores: Stores) -> Callable[[str, str], tuple[str, ...] | None]:
    catalog = stores.catalogs()
    sources = {each.connection_id: each.source_id for each in catalog.connections}

    def primary_key(connection_id: str, stream: str) -> tuple[str, ...] | None:
        declared = catalog.declarations.get(sources.get(connection_id, ""))
        found = None if declared is None else declared.streams.get(stream)
        return None if found is None else found.primary_key

    return primary_key


def _tell(what: str) -> Callable[[int], None]:
    """Say how far long work came."""
    return lambda count: words().print(f"… {count:,} {what}")
