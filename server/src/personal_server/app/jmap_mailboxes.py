"""What the ledger holds of a JMAP account beside its mails: session, states, mailboxes.

Rule: pure.
Source: docs/contract/feeds.md 13; RFC 8621, 2 (mailboxes).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.jmap.jmap_messages import MISBEHAVES, IdsSeen, JmapSession, MailboxSeen
from pdpp_sources.mailbox_messages import FolderSeen
from personal_server.app.mail_ledger import UNTOLD
from personal_server.app.mailbox_folders import INBOX, choose_folders, order_of
from personal_server.storage.feed_rows import FeedItemRow

SESSION, STATES, BEGUN = "\nsession", "\nstates", "\nbegun"
LARGEST_NUMBER = 2**63 - 1
MOST_BESIDE = 10_000
"""Mails that a mailbox may list beyond those that its server counts in it."""
MOST_DEEP = 20


class Todo(StrEnum):
    """What is to be done of a mailbox beside following its changes."""

    FILL = "fill"
    COMPARE = "compare"
    NOTHING = ""


class States(msgspec.Struct, frozen=True):
    """How far the changes of an account were followed."""

    emails: str
    mailboxes: str


class KnownMailbox(msgspec.Struct, frozen=True):
    """A mailbox.

    Shapes: `path` is its name with those above it; `behind` is the mail behind which it is to be
        filled on; `mails` is how many its server counts in it, `compared_ns` when all of it was
        compared.
    """

    path: str
    is_fetched: bool
    todo: Todo = Todo.NOTHING
    behind: str | None = None
    mails: int = 0
    compared_ns: int = 0

    @property
    def text(self) -> str:
        """As a line of the ledger marks it."""
        return msgspec.json.encode(self).decode()


class KnownJmap(msgspec.Struct):
    """What the ledger holds; mailboxes are by their ids.

    Shapes: `begun` are mails that came after the states, and of which some may have been taken.
    """

    session: JmapSession | None = None
    states: States | None = None
    mailboxes: dict[str, KnownMailbox] = msgspec.field(default_factory=dict[str, KnownMailbox])
    owes: bool = False
    begun: list[str] = msgspec.field(default_factory=list[str])

    @classmethod
    def of(cls, lines: Iterable[FeedItemRow]) -> KnownJmap:
        """The lines of a ledger."""
        known = cls()
        for line in lines:
            if line.item == UNTOLD:
                known.owes = True
            elif line.item == SESSION:
                known.session = msgspec.json.decode(line.mark, type=JmapSession)
            elif line.item == STATES:
                known.states = msgspec.json.decode(line.mark, type=States)
            elif line.item == BEGUN:
                known.begun = msgspec.json.decode(line.mark, type=list[str])
            else:
                known.mailboxes[line.item] = msgspec.json.decode(line.mark, type=KnownMailbox)
        return known

    @property
    def names(self) -> Mapping[str, str]:
        """What the mailboxes are called."""
        return {mailbox: each.path for mailbox, each in self.mailboxes.items()}

    def fetched(self) -> list[str]:
        """The mailboxes to fetch, the inbox first."""
        found = [mailbox for mailbox, each in self.mailboxes.items() if each.is_fetched]
        return sorted(found, key=self.order)

    def order(self, mailbox: str) -> tuple[tuple[bool, str], str]:
        """Mailboxes in the order in which one of several speaks for a mail."""
        return order_of(self.mailboxes[mailbox].path), mailbox

    def inside(self, mailboxes: Iterable[str]) -> list[str]:
        """Of those that a mail is in, the ones that are fetched, in their order."""
        known = self.mailboxes
        inside = {each for each in mailboxes if each in known and known[each].is_fetched}
        return sorted(inside, key=self.order)


def pages_of(asked: Callable[[str | None], IdsSeen], behind: str | None) -> Iterator[list[str]]:
    """The mails of a mailbox, each page asked for behind the last mail of the one before; once from
    the beginning, where that mail is not there any more.

    Raises: AccountTrouble of a server that has no end.
    """
    begun_anew, before = False, set[str]()
    while True:
        page = asked(behind)
        if not page.is_found:
            if begun_anew or behind is None:
                raise AccountTrouble(MISBEHAVES)
            begun_anew, behind, before = True, None, set[str]()
            continue
        ids = list(dict.fromkeys(page.ids))
        if ids and before.issuperset(ids):
            raise AccountTrouble(MISBEHAVES)
        if ids:
            yield ids
            behind, before = ids[-1], set(ids)
        if page.is_last:
            return


def number_of(email: str) -> int:
    """A mail's id as the number that the rows of the ledger have for it."""
    digest = hashlib.blake2b(email.encode(), digest_size=8).digest()
    return (int.from_bytes(digest) >> 1) or 1


def paths_of(listed: Iterable[MailboxSeen]) -> dict[str, str]:
    """What mailboxes are called, with the names of those above them; the inbox as IMAP calls it."""
    by_id = {each.mailbox: each for each in listed}
    found: dict[str, str] = {}
    for mailbox, each in by_id.items():
        names: list[str] = []
        above: MailboxSeen | None = each
        while above is not None and len(names) < MOST_DEEP:
            is_inbox = above.role == "inbox" and above.parent is None
            names.append(INBOX if is_inbox else above.name)
            above = None if above.parent is None else by_id.get(above.parent)
        found[mailbox] = "/".join(reversed(names))
    return found


def fetched_of(
    listed: Sequence[MailboxSeen], paths: Mapping[str, str], chosen: Collection[str]
) -> set[str]:
    """The mailboxes that are fetched, as of IMAP: chosen ones, else all but junk, trash and views.

    Roles are the special uses of IMAP (RFC 8621, 2).
    """
    folders = [
        FolderSeen(paths[each.mailbox], [each.role] if each.role else [], None) for each in listed
    ]
    wanted = {id(each) for each in choose_folders(folders, chosen, ())}
    pairs = zip(listed, folders, strict=True)
    return {each.mailbox for each, folder in pairs if id(folder) in wanted}
