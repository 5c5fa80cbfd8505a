"""Marks of folders as the ledger keeps them, and which mails of a folder it does not know.

Rule: pure.
Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pdpp_kernel.uid_ranges import LARGEST_UID, UidSet
from pdpp_sources.mailbox_messages import FolderMark


def mark_of(text: str) -> FolderMark:
    """The mark that the ledger keeps; none for one of another form."""
    members = text.split(".")
    if len(members) != len(FolderMark.__struct_fields__):
        return FolderMark(uid_next=1)
    return FolderMark(*map(int, members))


def text_of(mark: FolderMark) -> str:
    """A mark as the ledger keeps it."""
    members = (mark.uidvalidity, mark.uid_next, mark.mails, mark.modseq, mark.unseen)
    return ".".join(map(str, members))


def merged_mark(opened: FolderMark, before: FolderMark) -> FolderMark:
    """A folder as it was opened; what that did not say, as it was told before."""
    return FolderMark(
        opened.uidvalidity or before.uidvalidity,
        opened.uid_next or before.uid_next,
        opened.mails,
        opened.modseq or before.modseq,
        before.unseen,
    )


def unknown_ranges(there: UidSet, known: Sequence[int], below: int) -> Iterator[tuple[int, int]]:
    """Ranges of what is there and not known, below a UID; `known` is ascending.

    In: 1 to 9 are there, 2 and 5 known, below 8.  Out: 1 to 1, 3 to 4, 6 to 7.
    """
    at = 0
    for first, last in there.ranges():
        last = min(last, (below or LARGEST_UID) - 1)
        while at < len(known) and known[at] < first:
            at += 1
        while at < len(known) and known[at] <= last:
            if known[at] > first:
                yield first, known[at] - 1
            first = known[at] + 1
            at += 1
        if first <= last:
            yield first, last
