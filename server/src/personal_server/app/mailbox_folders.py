"""Which folders of a mailbox are fetched, and which of them a look looks at.

Rule: pure.  A look costs a bounded number of commands however many folders there are.
Source: docs/contract/feeds.md 10; RFC 6154 (special uses).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import NamedTuple

from pdpp_sources.mailbox_messages import FolderSeen

INBOX = "INBOX"
MOST_ASKED = 11
"""Folders beside the inbox whose marks are asked for one by one in a look."""
GMAIL = "X-GM-EXT-1"
_LEFT_OUT = frozenset({"junk", "trash"})
# Such a folder shows mails that lie in others.
_VIEWS = frozenset({"all", "flagged", "important"})
_NAMES_LEFT_OUT = frozenset(
    {"trash", "deleted items", "deleted messages", "bin", "junk", "junk email", "junk e-mail"}
    | {"spam", "bulk mail"}
)


def choose_folders(
    listed: Sequence[FolderSeen], chosen: Collection[str], can: Collection[str]
) -> list[FolderSeen]:
    """The folders to fetch, the inbox first: those that the owner chose; else of Gmail's the one
    that holds all, and of others all but junk, trash and those that show what lies elsewhere.
    """
    whole = [each.name for each in listed if "all" in each.uses] if GMAIL in can else []
    tells_uses = any(set(each.uses) & (_LEFT_OUT | _VIEWS | {"sent"}) for each in listed)
    fetched: list[FolderSeen] = []
    for each in listed:
        if chosen:
            is_fetched = each.name in chosen
        elif whole:
            is_fetched = each.name in whole
        elif tells_uses:
            is_fetched = not set(each.uses) & (_LEFT_OUT | _VIEWS)
        else:
            last = each.name.replace(".", "/").rpartition("/")[2]
            is_fetched = last.lower() not in _NAMES_LEFT_OUT
        if is_fetched:
            fetched.append(each)
    return sorted(fetched, key=lambda each: order_of(each.name))


def order_of(folder: str) -> tuple[bool, str]:
    """Folders in the order in which one of several copies of a mail speaks for it."""
    return folder.upper() != INBOX, folder


def in_turn(folders: Sequence[FolderSeen], turn: int) -> list[FolderSeen]:
    """Those that a look asks for where each costs a command: the inbox, and some of the others."""
    inbox = [each for each in folders if each.name.upper() == INBOX]
    others = [each for each in folders if each.name.upper() != INBOX]
    if len(others) <= MOST_ASKED:
        return [*inbox, *others]
    begin = turn * MOST_ASKED % len(others)
    doubled = [*others, *others]
    return [*inbox, *doubled[begin : begin + MOST_ASKED]]


def looks_of_a_round(folders: int) -> int:
    """How many looks it takes until each folder was looked at."""
    return -(-max(folders - 1, 1) // MOST_ASKED)


class WholeLooks(NamedTuple):
    """Looks in a row, at the same folders, none of which was cut or missed one of its folders.

    Shapes: `first` and `last` are turns, `folders` a digest of their names.
    """

    first: int
    last: int
    folders: str

    @classmethod
    def with_one(cls, kept: str, turn: int, folders: Sequence[FolderSeen]) -> WholeLooks:
        """Those that the ledger keeps, and the look of a turn; that one alone, behind a gap.

        In: `4.5.ab` and turn 6, of folders whose digest is `ab`.  Out: 4 to 6; for turn 7: 7 to 7.
        """
        names = "\n".join(each.name for each in folders)
        digest = hashlib.sha256(names.encode()).hexdigest()[:16]
        first, _, rest = kept.partition(".")
        goes_on = rest in (f"{turn - 1}.{digest}", f"{turn}.{digest}")  # that one, if it was killed
        return cls(int(first) if goes_on else turn, turn, digest)

    @property
    def text(self) -> str:
        """As the ledger keeps them."""
        return ".".join(map(str, self))

    def were(self, count: int) -> bool:
        """Whether they are so many."""
        return self.last - self.first + 1 >= count
