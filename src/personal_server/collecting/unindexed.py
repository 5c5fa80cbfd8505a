"""Word indexes that are made anew in the background, after an upgrade that needs it."""

from __future__ import annotations

from itertools import repeat

from personal_server.storage.ports import ServerStore

INDEX_SECONDS = 5.0
# So many slices, then others have the disk for themselves for a while.
SLICES_AT_ONCE = 40


def index_some(store: ServerStore) -> None:
    """Index some of the records that wait for it."""
    for slice_of in repeat(store.index_slice, SLICES_AT_ONCE):
        if not slice_of():
            return
