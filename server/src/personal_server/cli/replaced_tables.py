"""Tables that an earlier version made of a file which a source reads now.

Rule: such a table is emptied, and its account stays, with what apps may read.
"""

from __future__ import annotations

from collections.abc import Sequence

from pdpp_kernel.source_item import Data
from pdpp_mcp_server.commands.tables import words
from pdpp_sources.reader_process import PathContents, could_be_table
from personal_server.cli.known_tables import stored_tables
from personal_server.cli.repeated_files import holds_nothing_else, is_of
from personal_server.collecting.imports import BESIDE_ENTRIES, ImportPorts, record_counts
from personal_server.collecting.receipts import receipts_of


def replaced_tables(
    ports: ImportPorts, contents: PathContents, reports: Sequence[Data]
) -> list[str]:
    """Empty the tables that were made of a file before a source knew it; their names.

    In: `message_1.json`, which a table got and nothing else, and the report of its import as chats
    of Messenger. Out: `["message_1"]`, whose one record is deleted.
    Rule: only where the sources read every entry of all files of the table, and no file of a kind
    that tables are made of was left.
    """
    accounts = [each["connection"]["connection_id"] for each in reports if each["connection"]]
    is_read = any(each["read"] for report in reports for each in report["streams"].values())
    codes = {each["code"] for report in reports for each in report["skipped"]}
    left = (name for names in contents.unread.values() for name in names)
    if not is_read or codes - BESIDE_ENTRIES or any(map(could_be_table, left)):
        return []
    store, emptied, facts = ports.store, list[str](), contents.readings[0].facts()
    receipts = [receipt for account in accounts for receipt in receipts_of(store, account)]
    imported = [each for each in receipts if not each.get("skipped", {}).keys() - BESIDE_ENTRIES]
    tables = {table.connector_key for table in stored_tables(store)}
    with store.snapshot() as snapshot:
        held = [each for each in snapshot.connections() if each.connector_key in tables]
    for table in held:
        account, got = table.connection_id, receipts_of(store, table.connection_id)
        if account in accounts or not any(is_of(receipt, facts) for receipt in got):
            continue
        if holds_nothing_else(store, account, imported):
            for stream in record_counts(store, account):
                store.delete_stream(account, stream, ports.clock())
            emptied.append(table.display_name or account)
    for name in emptied:
        words().print(
            f"  The account {name} held what an earlier version read in this file: it was replaced "
            "by these records. Apps that may read it find nothing there now; give them access to "
            "the new account.",
            markup=False,
        )
    return emptied
