"""What is under way where an import replaces the records of the same files.

It is noted before the first record is stored and forgotten with the receipt, so that an import
which was killed goes on: what the account held then and the file does not say is deleted, nothing
else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from pdpp_kernel.source_item import Data
from personal_server.collecting.receipts import BEGUN, ImportMemory


class ReceivedStream(Protocol):
    """What an import did to a stream."""

    @property
    def receipt(self) -> Data:
        """It as receipts have it: `{"new": 2, "updated": 0}`, and `deleted` where any went."""
        ...

    @property
    def of_others(self) -> int:
        """Records that others wrote since it was begun, and that are not in the files."""
        ...


class BegunReplacement(msgspec.Struct, frozen=True):
    """What an account held when the files were begun again.

    Shapes: `horizon` is the last change of before, in the history of the store with that `epoch`;
        `counts` are records by stream; `version` is that of the declaration they are read by;
        `fingerprint` is that of the file as it lay there, whose place may be noted; `emitted_at`
        is that of its records.
    """

    fingerprint: str
    epoch: str
    horizon: int
    counts: Mapping[str, int]
    version: str
    emitted_at: str

    def since_begun(
        self, streams: Mapping[str, ReceivedStream], stored_before: Mapping[str, int]
    ) -> Data:
        """The streams of the receipt, with what an import that was killed had stored and deleted.

        In: `rides` held 2 at the beginning and 4 before this import, since the killed one had
        brought 1 and another program 1; this import brings 1 more. Out: `{"rides": {"new": 2, …}}`.
        Rule: what others wrote is none of it; what these figures add up to may be replaced.
        Shapes: `stored_before` are records by stream when this import began to read.
        """
        return {
            name: self._whole(name, each.receipt, stored_before.get(name, 0) - each.of_others)
            for name, each in streams.items()
        }

    def _whole(self, stream: str, receipt: Data, stored_before: int) -> Data:
        new = receipt["new"] + stored_before - self.counts.get(stream, 0)
        deleted = receipt.get("deleted", 0) - min(new, 0)
        return receipt | {"new": max(new, 0)} | ({"deleted": deleted} if deleted else {})


def begun_replacement(memory: ImportMemory, digest: str, version: str) -> BegunReplacement | None:
    """What was noted when a file of that SHA-256 was begun, if it still means what it did."""
    try:
        noted = memory.remembered().get(BEGUN, {}).get(digest)
        begun = msgspec.convert(noted, BegunReplacement)
    except msgspec.ValidationError:
        return None
    with memory.store.snapshot() as snapshot:
        is_same = begun.epoch == snapshot.epoch and begun.horizon <= snapshot.horizon
    return begun if is_same and begun.version == version else None


def begin_replacement(
    memory: ImportMemory, digest: str, fingerprint: str, version: str, emitted_at: str, now_ns: int
) -> BegunReplacement:
    """Note what the account holds; whoever begins knows that these files alone brought it."""
    with memory.store.snapshot() as snapshot:
        counts = {
            each.stream: each.record_count
            for each in snapshot.stored_streams()
            if each.connection_id == memory.connection_id
        }
        begun = BegunReplacement(
            fingerprint, snapshot.epoch, snapshot.horizon, counts, version, emitted_at
        )
    note = {BEGUN: {digest: msgspec.to_builtins(begun)}}
    memory.put(memory.remembered() | note, now_ns)
    return begun


def go_on(
    memory: ImportMemory, digest: str, fingerprint: str, begun: BegunReplacement, now_ns: int
) -> BegunReplacement:
    """Note that the file lies elsewhere now, or was written anew, where it is so."""
    if begun.fingerprint == fingerprint:
        return begun
    moved = msgspec.structs.replace(begun, fingerprint=fingerprint)
    remembered = memory.remembered()
    places = {n: at for n, at in remembered.get("places", {}).items() if n != begun.fingerprint}
    note = {BEGUN: {digest: msgspec.to_builtins(moved)}}
    memory.put(remembered | {"places": places} | note, now_ns)
    return moved
