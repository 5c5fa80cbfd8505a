"""Files that came before, and what an earlier version made of them.

Rule: what an account holds that got nothing but these very files, and is not what they say today,
is an earlier reading of them: it is replaced, by ordinary deletions; the account stays, with what
apps may read. Where an account may hold something else nothing is deleted, and that everything came
in a second time is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pdpp_kernel.source_item import Data
from pdpp_mcp_server.commands.tables import words
from pdpp_sources.reader_process import ProcessReading
from personal_server.collecting.imports import ImportTally, StreamTally, record_counts
from personal_server.collecting.receipts import has_bookmarks, has_unfinished, receipts_of
from personal_server.storage.ports.whole_store import RecordStore


@dataclass(frozen=True, slots=True)
class EarlierImports:
    """What an account got before an import of some files.

    Shapes: `of_same_files` are receipts; with `may_be_replaced` the account holds what these files
        brought before and nothing else, and the files are such as versions read differently.
    """

    of_same_files: Sequence[Data]
    may_be_replaced: bool

    def are_replaced_by(self, tally: ImportTally) -> bool:
        """Whether what the files do not say any more goes, without a question."""
        return self.may_be_replaced and tally.is_complete and tally.holds_any

    def told(self, tally: ImportTally) -> Data:
        """Say what was replaced, or came in a second time; what the report says of it.

        Out: `{"replaced": {"books": 3}}`, `{"stored_again": ["books"]}`, or nothing.
        """
        gone = {name: each.deleted for name, each in tally.streams.items() if each.deleted}
        if gone and self.are_replaced_by(tally):
            shown = ", ".join(f"{count:,} of {name}" for name, count in gone.items())
            words().print(
                "  An earlier version read this file differently; its records were replaced: "
                f"{shown}.",
                markup=False,
            )
            return {"replaced": gone}
        names = [name for name, each in tally.streams.items() if self._came_again(name, each)]
        if not names:
            return {}
        words().print(
            f"  These files were imported before, and everything in {', '.join(names)} is new "
            "again: the account now has these records twice. To begin anew: pdpp connection erase",
            markup=False,
        )
        return {"stored_again": names}

    def _came_again(self, stream: str, tally: StreamTally) -> bool:
        is_all_new = tally.new and not (tally.updated or tally.unchanged or tally.deleted)
        earlier = (each["streams"].get(stream, {}) for each in self.of_same_files)
        return bool(is_all_new and any(each.get("new") for each in earlier))


def earlier_imports(
    store: RecordStore, connection_id: str, reading: ProcessReading
) -> EarlierImports:
    """What an account got before that reading.

    In: `rides.csv`, which a recipe reads, and an account that got it and nothing else. Out: its
    receipt, and that what it brought may be replaced.
    """
    facts = reading.facts()
    same = [each for each in receipts_of(store, connection_id) if is_of(each, facts)]
    is_table_or_recipe = reading.seen.full_name or reading.seen.by_recipe
    may_be_replaced = is_table_or_recipe and holds_nothing_else(store, connection_id, [facts])
    return EarlierImports(same, bool(may_be_replaced))


def holds_nothing_else(store: RecordStore, connection_id: str, facts: Iterable[Data]) -> bool:
    """Whether an account holds what imports of these files brought, neither more nor less.

    In: the facts of `books.csv`, of which two receipts of the account have the digest; they say 3
    and 0 new records, and 3 are stored. Out: true.
    Rule: false where it cannot be told: a folder, whose receipts have no digest, an import that has
    not come to its end, and a collector's bookmark.
    Shapes: `facts` as in receipts.
    """
    digests = {each.get("sha256") for each in facts} - {None}
    receipts = receipts_of(store, connection_id)
    if not all(receipt.get("sha256") in digests for receipt in receipts):
        return False
    if has_unfinished(store, connection_id) or has_bookmarks(store, connection_id):
        return False
    brought: dict[str, int] = {}
    for receipt in receipts:
        for stream, counts in receipt["streams"].items():
            left = counts["new"] - counts.get("deleted", 0)
            brought[stream] = brought.get(stream, 0) + left
    stored = record_counts(store, connection_id)
    each = {*stored, *brought}
    return any(stored.values()) and all(stored.get(n, 0) == brought.get(n, 0) for n in each)


def is_of(receipt: Data, facts: Data) -> bool:
    """Whether a receipt is of these very files."""
    named = ("sha256",) if "sha256" in facts else ("name", "files", "size_bytes")
    return all(receipt.get(name) == facts.get(name) for name in named)
