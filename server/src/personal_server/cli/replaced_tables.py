"""Tables that an earlier version made of a file which a source reads now.

Rule: such a table is emptied, and its account stays, with what apps may read. One that may hold
more than the source read is kept and named, with the reason and the command that deletes it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pdpp_kernel.source_item import Data
from pdpp_kernel.texts import CatalogueText, message
from pdpp_mcp_server.commands.tables import indented, words
from pdpp_sources.file_names import family_name, table_key
from pdpp_sources.reader_process import PathContents, could_be_table
from personal_server.cli.known_tables import stored_tables
from personal_server.cli.repeated_files import holds_nothing_else, is_of
from personal_server.collecting.imports import BESIDE_ENTRIES, ImportPorts, record_counts
from personal_server.collecting.receipts import receipts_of
from personal_server.domain.connection import Connection
from personal_server.storage.ports.whole_store import RecordStore

# No row of a table comes of a file that is not there.
ABSENT_FILES = frozenset({"missing_attachment", "no_file"})
PASSED = BESIDE_ENTRIES | ABSENT_FILES


class FormerTables(msgspec.Struct, frozen=True):
    """What became of the tables of a file.

    Out: `emptied` are names; `kept` are `{"name": "Starter", "connection_id": …, "code":
        "entries_left", "why": …, "command": "pdpp connection erase Starter"}`.
    """

    emptied: list[str] = msgspec.field(default_factory=list[str])
    kept: list[Data] = msgspec.field(default_factory=list[Data])

    @property
    def told(self) -> Data:
        """What the report says of them."""
        emptied: Data = {"replaced_tables": self.emptied} if self.emptied else {}
        return emptied | ({"kept_tables": self.kept} if self.kept else {})


Reason = tuple[str, CatalogueText]


def replaced_tables(
    ports: ImportPorts, contents: PathContents, reports: Sequence[Data]
) -> FormerTables:
    """Empty the tables that were made of a file before a source knew it, or say why one stays.

    In: `message_1.json`, which a table got and nothing else, and the report of its import as chats
    of Messenger. Out: `emptied` is `["message_1"]`, whose one record is deleted.
    Rule: emptied only where the sources read every entry of all files of the table, and no file of
    a kind that tables are made of was left.
    """
    accounts = [each["connection"]["connection_id"] for each in reports if each["connection"]]
    tables = FormerTables()
    if not any(each["read"] for report in reports for each in report["streams"].values()):
        return tables
    store, facts = ports.store, contents.readings[0].facts()
    left = [name for names in contents.unread.values() for name in names if could_be_table(name)]
    receipts = [receipt for account in accounts for receipt in receipts_of(store, account)]
    imported = [each for each in receipts if _is_whole(each)]
    keys = {table.connector_key for table in stored_tables(store)}
    with store.snapshot() as snapshot:
        connections = list(snapshot.connections())
    for table in connections:
        account = table.connection_id
        if table.connector_key not in keys or account in accounts:
            continue
        got, streams = receipts_of(store, account), _filled_streams(store, account)
        if not any(is_of(each, facts) for each in got) or _are_of(streams, left):
            continue
        reason = _not_whole(contents, reports, left)
        if reason is None and not holds_nothing_else(store, account, imported):
            reason = _something_else(got, facts)
        if reason is not None:
            tables.kept.append(_kept(table, reason, connections))
            continue
        for stream in record_counts(store, account):
            store.delete_stream(account, stream, ports.clock())
        tables.emptied.append(table.display_name or account)
    _print(tables)
    return tables


def _is_whole(receipt: Data) -> bool:
    """Whether an import read every entry of its files, from the first one on."""
    return not receipt.get("from_byte") and not receipt.get("skipped", {}).keys() - PASSED


def _filled_streams(store: RecordStore, account: str) -> list[str]:
    return [stream for stream, count in record_counts(store, account).items() if count]


def _are_of(streams: Sequence[str], left: Sequence[str]) -> bool:
    """Whether all streams are called as files that no source reads: nothing is there twice then."""
    stems = [Path(name).stem for name in left]
    keys = {table_key(name) for stem in stems for name in (stem, family_name(stem))}
    return all(table_key(stream) in keys for stream in streams)


def _not_whole(
    contents: PathContents, reports: Sequence[Data], left: Sequence[str]
) -> Reason | None:
    """Why the sources did not read everything that tables could be made of."""
    if len(reports) < len(contents.readings):
        return "source_failed", message("a source could not read all of these files")
    if left:
        sentence = message(
            "no source can read %(file)s, and the table may hold records of it", file=left[0]
        )
        return "file_left", sentence
    codes = {each["code"]: each["count"] for report in reports for each in report["skipped"]}
    codes = {code: count for code, count in codes.items() if code not in PASSED}
    if not codes:
        return None
    sentence = message(
        "entries that the import skipped (%(codes)s) may be in the table only",
        codes=", ".join(f"{count} × {code}" for code, count in codes.items()),
    )
    return "entries_left", sentence


def _something_else(got: Sequence[Data], facts: Data) -> Reason:
    """Why a table may hold what these files do not."""
    if all(is_of(each, facts) for each in got) and "sha256" not in facts:
        sentence = message("nothing proves that a folder is the same as before")
        return "folder", sentence
    return "other_records", message("the table may hold records of other files or programs, too")


def _kept(table: Connection, reason: Reason, connections: Sequence[Connection]) -> Data:
    name, account = table.display_name or table.connection_id, table.connection_id
    alike = [c for c in connections if (c.display_name or "").casefold() == name.casefold()]
    command = f"pdpp connection erase {shlex.quote(name if len(alike) == 1 else account)}"
    facts = {"name": name, "connection_id": account, "code": reason[0], "why": reason[1]}
    return facts | {"command": command}


def _print(tables: FormerTables) -> None:
    for name in tables.emptied:
        words().print(
            f"  The account {name} held what an earlier version read in this file: it was replaced "
            "by these records. Apps that may read it find nothing there now; give them access to "
            "the new account.",
            markup=False,
        )
    for kept in tables.kept:
        words().print(
            f"  The account {kept['name']} still holds what an earlier version read in these files "
            f"as a table: the same things are there twice. It is kept because {kept['why']}. If "
            "you need nothing else of it, erase it:",
            markup=False,
        )
        indented(kept["command"], 4, words())
