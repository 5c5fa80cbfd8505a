"""What checks find: of tables, streams, blobs and the change feed."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

SHOWN_KEYS = 3


class DamagedTable(NamedTuple):
    """A table that cannot be relied on.

    Shapes: `kind` is `r`, `h`, `w` or `f` (`storage/sql/layout`) of a source, which is named as far
        as it is known; `is_index` where its pages are whole and only what they say as a word index
        is not.  Without a name: the list of tables, or pages that no table has.
    """

    name: str = ""
    kind: str = ""
    connection_id: str = ""
    stream: str = ""
    is_index: bool = False


class StreamCheck(msgspec.Struct):
    """What was found in one stream.

    Shapes: `damaged` are records whose bytes are not those that were written, or are no JSON
        object; `misnamed` those whose key is another's, `unexplained` those with a change that the
        feed lacks: of each some keys and how many; `words_differ`, `values_differ`: the word index
        or the comparables are not those of the texts.
    """

    connection_id: str
    stream: str
    records: int = 0
    damaged: Faulty = msgspec.field(default_factory=lambda: Faulty())
    misnamed: Faulty = msgspec.field(default_factory=lambda: Faulty())
    unexplained: Faulty = msgspec.field(default_factory=lambda: Faulty())
    words_differ: bool = False
    values_differ: bool = False

    @property
    def can_be_made_anew(self) -> bool:
        """Where every record can be read, what is made from them can be made again."""
        return (self.words_differ or self.values_differ) and not self.damaged.count


class Faulty(msgspec.Struct):
    """Records with a fault: how many, and the keys of the first."""

    count: int = 0
    keys: list[str] = msgspec.field(default_factory=list[str])

    def add(self, key: str) -> None:
        """Count one more fault; the first ones are kept in full."""
        self.count += 1
        if len(self.keys) < SHOWN_KEYS:
            self.keys.append(key)


class FeedCheck(msgspec.Struct, frozen=True):
    """How the change feed stands: `disordered` changes have a number that is not above the last."""

    changes: int
    disordered: int
    newest_fits: bool


class BlobFault(msgspec.Struct, frozen=True):
    """Bytes that are missing or not what their name says, and a stream that refers to them."""

    blob_id: str
    is_missing: bool
    place: tuple[str, str] | None
