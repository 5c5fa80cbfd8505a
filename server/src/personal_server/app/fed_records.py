"""Records that feeds write or delete without an import, as their source declares them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from pdpp_kernel.values import instant_text
from personal_server.collecting.ingest import ingest
from personal_server.domain.declaration_document import parse_declaration
from personal_server.storage.ports.whole_store import RecordStore

_ID_BYTES = 12


class FedRecords(msgspec.Struct, frozen=True):
    """The records of one source in the accounts that feeds fill."""

    store: RecordStore
    source: str
    clock: Callable[[], int]
    random_bytes: Callable[[int], bytes]

    def write(self, account: str, stream: str, lines: Sequence[Mapping[str, object]]) -> None:
        """Write lines of ingest of one stream.  Raises: LookupError before any import."""
        if not lines:
            return
        found = self.store.declaration(self.source, None)
        if found is None:
            raise LookupError(self.source)
        now_ns = self.clock()
        ingest(
            self.store,
            account,
            parse_declaration(found.raw).streams[stream],
            [{**line, "emitted_at": instant_text(now_ns)} for line in lines],
            now_ns=now_ns,
            new_receipt_id=lambda: self.random_bytes(_ID_BYTES).hex(),
        )

    def delete(self, account: str, stream: str, keys: Sequence[str]) -> int:
        """Delete those that are there; how many."""
        there = [record.key for record in self.store.records_named(account, stream, keys)]
        self.write(account, stream, [{"op": "delete", "key": key} for key in there])
        return len(there)
