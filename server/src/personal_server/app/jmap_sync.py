"""One look at a JMAP account: what of it came, changed, moved or went since the look before.

Rule: a mail is fetched once, in whatever mailboxes it lies; what a server says changed is followed
by states, and where it cannot say, mailboxes are compared whole; nothing that was not looked at
counts as gone.
Source: docs/contract/feeds.md 13; RFC 8620, 5.2; RFC 8621, 4.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from pdpp_kernel.values import NANOSECONDS
from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.jmap.jmap_messages import (
    MISBEHAVES,
    MOST_AT_ONCE,
    AskEmails,
    AskIds,
    AskMailboxes,
    BeginJmap,
    ChangesSeen,
    EmailSeen,
    IdsSeen,
    JmapSession,
    MailboxSeen,
    PollJmap,
)
from personal_server.app.jmap_look import JmapLook, LookAgain
from personal_server.app.jmap_mailboxes import (
    LARGEST_NUMBER,
    MOST_BESIDE,
    States,
    Todo,
    number_of,
    pages_of,
)
from personal_server.app.jmap_mails import JmapMails

MOST_PAGES = 2_000
"""Pages of changes that a look follows."""
MOST_BEGUN = 20_000
"""Mails that runs which were ended may have taken and are looked for; of more, all are compared."""
COMPARED_EVERY_NS = 24 * 3600 * NANOSECONDS


@dataclass(slots=True)
class JmapSync:
    """Follows what became of the account of a feed, in one look."""

    look: JmapLook
    mails: JmapMails = field(init=False)

    def __post_init__(self) -> None:
        self.mails = JmapMails(self.look)

    def run(self, url: str) -> None:
        """Look, fetch, import, follow.

        Raises: AccountTrouble, FetchTrouble, PutOff; what is stored is kept.
        """
        owes = self.look.known.owes
        try:
            self.look.ask(BeginJmap(url, self.look.known.session), JmapSession)
            states = self.look.known.states
            counted = self._first() if states is None else self._follow(states)
            for mailbox in self.look.known.fetched():
                self._look_at(mailbox)
            self._recount(counted)
            if owes:  # the run before was ended before records told what the ledger knew
                self.look.ledger.touch_all()
                owes = False
            self.look.ledger.settle(self.look.turn, is_asked=self.look.is_asked)
        except LookAgain:
            self.look.result.settling += 1
        finally:
            known = self.look.known.mailboxes.values()
            self.look.result.seen = sum(each.mails for each in known if each.is_fetched)
            self.look.ledger.tell()
            if not owes:
                self.look.ledger.forget_note()

    # States ----------------------------------------------------------------------------------
    def _first(self) -> list[str]:
        """Begin: what changes from here on is told by states, and all before by filling."""
        states = self.look.states_now()
        self.look.take_mailboxes()
        self.look.keep_states(states)
        return []

    def _follow(self, since: States) -> list[str]:
        """Follow the changes since the look before; mailboxes whose mails are counted otherwise."""
        mails, mailboxes = self._changes(since, with_mailboxes=True)
        counted: list[str] = []
        if mailboxes is None or not mailboxes.is_known or mailboxes.has_more:
            since = States(since.emails, self.look.states_now().mailboxes)
            self.look.take_mailboxes()
        else:
            since, counted = States(since.emails, mailboxes.state), mailboxes.changed
            if (counted or mailboxes.gone) and not mailboxes.counts_only:
                self.look.take_mailboxes()
        if mails.is_known:
            self._pages(mails, since)
        else:
            self._begin_anew(since)
        if self.look.is_asked:
            for mailbox in self.look.known.fetched():
                if self.look.known.mailboxes[mailbox].todo is Todo.NOTHING:
                    self.look.have_compared(mailbox)
        return counted

    def _begin_anew(self, since: States) -> None:
        """Have all compared, of a server that cannot tell what changed."""
        now = States(self.look.states_now().emails, since.mailboxes)
        for mailbox in self.look.known.fetched():
            self.look.have_compared(mailbox)
        self.look.keep_states(now)

    def _changes(
        self, since: States, *, with_mailboxes: bool
    ) -> tuple[ChangesSeen, ChangesSeen | None]:
        """What changed since; where a server cannot tell, but its state is the same, nothing."""
        request = PollJmap(since.emails, since.mailboxes if with_mailboxes else None)
        found = self.look.ask(request, ChangesSeen)
        mails = [each for each in found if each.of_mails]
        others = [each for each in found if not each.of_mails]
        if not mails:
            raise AccountTrouble(MISBEHAVES)
        page = mails[0]
        if not page.is_known and self.look.states_now().emails == since.emails:
            page = ChangesSeen(of_mails=True, is_known=True, state=since.emails)
        return page, others[0] if others else None

    def _pages(self, page: ChangesSeen, states: States) -> None:
        """Follow changes page by page; a state that comes again would be followed without end."""
        met, before = {states.emails}, self.look.known.begun
        if len(before) > MOST_BEGUN:
            for mailbox in self.look.known.fetched():
                self.look.have_compared(mailbox)
            before = []
        for _ in range(MOST_PAGES):
            if page.changed:
                self.look.keep_begun([*before, *page.changed])
            self._take_changed(page)
            states = States(page.state, states.mailboxes)
            self.look.keep_states(states)
            if not page.has_more:
                self._take_begun(before)
                return
            self.look.require_time()
            if page.state in met:
                break
            met.add(page.state)
            page, _ = self._changes(states, with_mailboxes=False)
            if not page.is_known:
                self._begin_anew(states)
                raise LookAgain
        raise AccountTrouble(MISBEHAVES)

    def _take_begun(self, ids: Sequence[str]) -> None:
        """Look for what a run that was ended within a page of changes may have taken of it.

        A server need not tell of a mail that came after a state and went since.
        """
        for part in _parts(ids):
            there = {each.email for each in self.look.ask(AskEmails(list(part)), EmailSeen)}
            lost = [each for each in part if each not in there]
            rows = self.look.ports.mails.rows_of_copies(self.look.feed.feed_id, lost)
            self.look.ledger.mark_gone([each for each in rows if each.gone_at is None])
        self.look.keep_begun(())

    def _take_changed(self, page: ChangesSeen) -> None:
        for ids in _parts(page.changed):
            self.mails.take(ids)
        mails, feed_id = self.look.ports.mails, self.look.feed.feed_id
        for ids in _parts(page.gone):
            rows = mails.rows_of_copies(feed_id, ids)
            self.look.ledger.mark_gone([e for e in rows if e.gone_at is None])

    # Mailboxes -------------------------------------------------------------------------------
    def _look_at(self, mailbox: str) -> None:
        """Fill a mailbox, or compare it whole."""
        begun = self.look.known.mailboxes.get(mailbox)  # none, where it went during this look
        todo = Todo.NOTHING if begun is None else begun.todo
        if todo is Todo.NOTHING:
            return
        there = array("Q")
        listed = 0
        for ids in self._listed(mailbox):
            listed += len(ids)
            there.extend(map(number_of, ids))
            self._catch_up()
            self.mails.take(ids)
            now = self.look.known.mailboxes.get(mailbox)
            if now is None:
                return
            if todo is Todo.FILL:
                self.look.keep_mailbox(mailbox, msgspec.structs.replace(now, behind=ids[-1]))
            self.look.require_time()
            if listed > now.mails + MOST_BESIDE:  # it lists them again and again
                raise AccountTrouble(MISBEHAVES)
        if todo is Todo.COMPARE and self._counted(mailbox) <= len(set(there)):
            self._lose_others(mailbox, array("Q", sorted(there)))
        now = self.look.known.mailboxes[mailbox]
        self.look.keep_mailbox(
            mailbox,
            msgspec.structs.replace(
                now, todo=Todo.NOTHING, behind=None, compared_ns=self.look.ports.clock()
            ),
        )

    def _counted(self, mailbox: str) -> int:
        """How many mails the server counts in a mailbox now: a list of fewer is not whole."""
        return sum(each.mails for each in self.look.ask(AskMailboxes([mailbox]), MailboxSeen))

    def _catch_up(self) -> None:
        """Follow changes up to now, before mails that were listed are taken.

        A server need not tell of a mail that came after a state and went since: one that was taken
        has to be older than the state, or it would stay here for ever.
        """
        states = self.look.known.states
        if states is not None:
            page, _ = self._changes(states, with_mailboxes=False)
            if page.is_known:  # else the next look, from the same state, has all compared
                self._pages(page, states)

    def _listed(self, mailbox: str) -> Iterator[list[str]]:
        """The mails of a mailbox, newest first, page by page."""
        return pages_of(
            lambda behind: self.look.ask(AskIds(mailbox, behind), IdsSeen)[-1],
            self.look.known.mailboxes[mailbox].behind,
        )

    def _lose_others(self, mailbox: str, there: Sequence[int]) -> None:
        """Note as gone what the ledger has in a mailbox and its server does not."""
        for rows in self.look.ledger.pages(mailbox, 0, LARGEST_NUMBER):
            lost = [row for row in rows if row.gone_at is None and not _is_in(there, row.uid)]
            self.look.ledger.mark_gone(lost)

    def _recount(self, counted: Sequence[str]) -> None:
        """Compare mailboxes whose numbers of mails differ from the ledger's, once a day at most.

        A server may pass over a change; while more changes, its numbers tell nothing.
        """
        wanted = [each for each in counted if each in self.look.known.mailboxes]
        states = self.look.known.states
        if not wanted or states is None:
            return
        seen = self.look.ask(AskMailboxes(wanted), MailboxSeen)
        page, _ = self._changes(states, with_mailboxes=False)
        for each in seen:
            known = self.look.known.mailboxes.get(each.mailbox)
            if known is not None:
                counts = msgspec.structs.replace(known, mails=each.mails)
                self.look.keep_mailbox(each.mailbox, counts)
        if not page.is_known or page.changed or page.gone or page.has_more:
            return
        now_ns, mails = self.look.ports.clock(), self.look.ports.mails
        for mailbox in [each.mailbox for each in seen]:
            known = self.look.known.mailboxes.get(mailbox)
            if known is None or not known.is_fetched:
                continue
            is_due = not 0 <= now_ns - known.compared_ns < COMPARED_EVERY_NS
            if is_due and mails.mail_count(self.look.feed.feed_id, mailbox) != known.mails:
                self.look.have_compared(mailbox)
                self._look_at(mailbox)


def _parts(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(ids), MOST_AT_ONCE):
        yield ids[begin : begin + MOST_AT_ONCE]


def _is_in(ascending: Sequence[int], number: int) -> bool:
    at = bisect_left(ascending, number)
    return at < len(ascending) and ascending[at] == number
