"""Files that came before, and what an earlier version made of them.

Rule: what an account holds that got nothing but these very files, and is not what they say today,
is an earlier reading of them: it is replaced, by ordinary deletions; the account stays, with what
apps may read. Where an account may hold something else nothing is deleted, and that everything came
in a second time is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from pdpp_kernel.source_item import Data
from pdpp_mcp_server.commands.tables import words
from pdpp_sources.reader_process import ProcessReading
from personal_server.cli.known_tables import has_file, stored_tables
from personal_server.collecting.begun_replacements import (
    BegunReplacement,
    begin_replacement,
    begun_replacement,
    go_on,
)
from personal_server.collecting.imports import (
    ImportPorts,
    ImportTally,
    StreamTally,
    record_counts,
)
from personal_server.collecting.receipts import (
    ImportMemory,
    has_bookmarks,
    has_unfinished,
    receipts_of,
)
from personal_server.storage.ports.whole_store import RecordStore


class EarlierImports(msgspec.Struct, frozen=True):
    """What an account got before an import of some files.

    Shapes: `of_same_files` are receipts; `replaceable` is what the account holds where these files
        alone brought it, and they are such as versions read differently; with `from_start` no place
        counts at which reading them was cut off: a table waits to be replaced by all of them.
    """

    of_same_files: Sequence[Data]
    replaceable: BegunReplacement | None = None
    from_start: bool = False

    def are_replaced_by(self, tally: ImportTally) -> bool:
        """Whether what the files do not say any more goes, without a question."""
        return self.replaceable is not None and tally.is_complete and tally.holds_any

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
    ports: ImportPorts, connection_id: str, reading: ProcessReading
) -> EarlierImports:
    """What an account got before that reading.

    In: `rides.csv`, which a recipe reads, and an account that got it and nothing else. Out: its
    receipt, and that what it brought may be replaced.
    Rule: an import that was killed while it replaced goes on, by what was noted at its beginning.
    """
    store, facts, fingerprint = ports.store, reading.facts(), reading.fingerprint
    receipts = receipts_of(store, connection_id)
    same = [each for each in receipts if is_of(each, facts)]
    is_cut = has_unfinished(store, connection_id)
    from_start = is_cut and not reading.seen.full_name
    from_start = from_start and any(has_file(store, t, facts) for t in stored_tables(store))
    if not (reading.seen.full_name or reading.seen.by_recipe):
        return EarlierImports(same, from_start=from_start)
    declared = reading.seen.declaration
    memory = ImportMemory(store, connection_id, str(declared["streams"][0]["name"]))
    version, digest = str(declared["declaration_version"]), str(facts.get("sha256"))
    begun, now_ns = begun_replacement(memory, digest, version), ports.clock()
    if begun and _got_only(store, connection_id, [digest], but=begun.fingerprint):
        begun = go_on(memory, digest, fingerprint, begun, now_ns)
    elif holds_nothing_else(store, connection_id, [facts]):
        emitted_at = reading.captured_at.isoformat()
        begun = begin_replacement(memory, digest, fingerprint, version, emitted_at, now_ns)
    else:
        begun = None
    return EarlierImports(same, begun, from_start)


def _got_only(
    store: RecordStore, connection_id: str, digests: Collection[object], but: str | None = None
) -> bool:
    """Whether an account got files of these SHA-256 alone, each of them whole.

    Shapes: `but` is the fingerprint of files that may have been cut off.
    """
    receipts = receipts_of(store, connection_id)
    is_same = all(receipt.get("sha256") in digests for receipt in receipts)
    is_cut = has_unfinished(store, connection_id, but)
    return is_same and not is_cut and not has_bookmarks(store, connection_id)


def holds_nothing_else(store: RecordStore, connection_id: str, facts: Iterable[Data]) -> bool:
    """Whether an account holds what imports of these files brought, neither more nor less.

    In: the facts of `books.csv`, of which two receipts of the account have the digest; they say 3
    and 0 new records, and 3 are stored. Out: true. So it is where a stream has been emptied.
    Rule: false where it cannot be told: a folder, whose receipts have no digest, an import that has
    not come to its end, and a collector's bookmark.
    Shapes: `facts` as in receipts.
    """
    digests = {each.get("sha256") for each in facts} - {None}
    if not _got_only(store, connection_id, digests):
        return False
    brought: dict[str, int] = {}
    for receipt in receipts_of(store, connection_id):
        for stream, counts in receipt["streams"].items():
            left = counts["new"] - counts.get("deleted", 0)
            brought[stream] = brought.get(stream, 0) + left
    stored = record_counts(store, connection_id)
    return any(stored.values()) and all(count in (0, brought.get(n)) for n, count in stored.items())


def is_of(receipt: Data, facts: Data) -> bool:
    """Whether a receipt is of these very files."""
    named = ("sha256",) if "sha256" in facts else ("name", "files", "size_bytes")
    return all(receipt.get(name) == facts.get(name) for name in named)
