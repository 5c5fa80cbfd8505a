"""What a process that reads a DAV account and the one that holds its connection say to each other.

The process is given a task, and says what it sees; between that it names requests to the server
(`account_requests.py`).
"""

from __future__ import annotations

from typing import IO, Annotated

import msgspec

from pdpp_sources.account_requests import AskServer, NextWords, NoAnswer, ServerStatus, ServerWords
from pdpp_sources.message_frames import receive_message

LARGEST_ITEM_BYTES = 8 * 1024 * 1024
_LARGEST_BYTES = 64 * 1024 * 1024
LONGEST_MARK, LONGEST_WORD = 200, 4_000
"""In characters, of an item, and of what is said of a collection: whoever asked keeps them."""
MOST_COLLECTIONS = 2_000
"""Of an account, over all its homes."""
MISBEHAVES = "dav_misbehaves"


Mark = Annotated[str, msgspec.Meta(max_length=LONGEST_MARK)]
Word = Annotated[str, msgspec.Meta(max_length=LONGEST_WORD)]


class DavMessage(msgspec.Struct, array_like=True, tag=True):
    """One of the messages below."""


class DavHome(DavMessage):
    """Where the collections of an account are listed, or the one collection itself."""

    url: Word
    is_collection: bool


class KnownCollection(DavMessage):
    """A collection as it was at the last run.

    Shapes: `is_honest` until its tokens passed over a change; `lists` has all its items listed,
        `reads` all of them fetched, whatever its marks say.
    """

    name: str
    ctag: str | None
    token: str | None
    is_honest: bool = True
    lists: bool = False
    reads: bool = False


class DavTask(DavMessage):
    """Say what is new in an account.

    Shapes: `kind` is `caldav` or `carddav`; `collections` and `marks` (of items) are by path.
    """

    kind: str
    url: str
    homes: list[DavHome]
    collections: dict[str, KnownCollection]
    marks: dict[str, str]


class HomesSeen(DavMessage):
    """Where the collections of the account are listed."""

    homes: Annotated[list[DavHome], msgspec.Meta(max_length=200)]


class CollectionSeen(DavMessage):
    """A collection, before its items."""

    path: Word
    name: Word


class ItemSeen(DavMessage):
    """An item that is new or changed."""

    path: Word
    mark: Mark
    content: bytes


class ItemGone(DavMessage):
    """An item that was there."""

    path: Word


class ItemRefused(DavMessage):
    """An item that was not taken, and why."""

    path: Word
    mark: Mark
    code: Mark


class CollectionEnd(DavMessage):
    """All of a collection was said; what to say of it the next time.

    Shapes: `listed` where all its items were compared, `was_read` where all were fetched.
    """

    path: Word
    name: Word
    ctag: Word | None
    token: Word | None
    is_honest: bool
    listed: bool
    was_read: bool


class CollectionGone(DavMessage):
    """A collection that was there, after all its items as gone."""

    path: Word


class DavEnd(DavMessage):
    """There is no more; `code` says why, where not all was said."""

    code: str | None


SeenInAccount = (
    HomesSeen
    | CollectionSeen
    | ItemSeen
    | ItemGone
    | ItemRefused
    | CollectionEnd
    | CollectionGone
    | DavEnd
)
FromReader = AskServer | NextWords | SeenInAccount
ToReader = DavTask | ServerStatus | ServerWords | NoAnswer
_from_reader = msgspec.msgpack.Decoder(FromReader)
_to_reader = msgspec.msgpack.Decoder(ToReader)


def receive_from_reader(stream: IO[bytes]) -> FromReader | None:
    """The next message, or None at the end.  Raises: msgspec.DecodeError."""
    return receive_message(stream, _from_reader, _LARGEST_BYTES)


def receive_to_reader(stream: IO[bytes]) -> ToReader | None:
    """The next message, or None at the end.  Raises: msgspec.DecodeError."""
    return receive_message(stream, _to_reader, _LARGEST_BYTES)
