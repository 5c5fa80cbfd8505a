"""One look at a JMAP account: what of it came, changed, moved or went since the look before.

Rule: a mail is fetched once, in whatever mailboxes it lies; what a server says changed is followed
by states, and where it cannot say, mailboxes are compared whole; nothing that was not looked at
counts as gone.
Source: docs/contract/feeds.md 13; RFC 8620, 5.2; RFC 8621, 4.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from pdpp_kernel.values import NANOSECONDS
from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.jmap.jmap_messages import (
    MISBEHAVES,
    MOST_AT_ONCE,
    AskEmails,
    AskIds,
    AskMailboxes,
    AskStates,
    BeginJmap,
    ChangesSeen,
    EmailSeen,
    IdsSeen,
    JmapMessage,
    JmapRequest,
    JmapSession,
    MailboxSeen,
    PollJmap,
    StatesSeen,
)
from pdpp_sources.jmap.jmap_process import JmapProcess
from pdpp_sources.mailbox_messages import LARGEST_MAIL_BYTES, MOST_FOLDERS
from personal_server.app.jmap_mailboxes import (
    BEGUN,
    LARGEST_NUMBER,
    MOST_BESIDE,
    SESSION,
    STATES,
    KnownJmap,
    KnownMailbox,
    States,
    Todo,
    fetched_of,
    number_of,
    pages_of,
    paths_of,
)
from personal_server.app.mail_batches import MailBatch
from personal_server.app.mail_ledger import MailLedger, SyncPorts
from personal_server.feeds.feed_runs import RunResult
from personal_server.storage.feed_rows import UNSURE, FeedMailRow, FeedRow

RUN_SECONDS = 1_800.0
MOST_PAGES = 2_000
"""Pages of changes that a look follows."""
COMPARED_EVERY_NS = 24 * 3600 * NANOSECONDS
_Reply = TypeVar("_Reply", bound=JmapMessage)
TOO_LARGE = "too_large"


class _LookAgain(Exception):
    """The look has lasted long enough, or what it knew is of no use; the next one goes on."""


@dataclass(slots=True)
class JmapSync:
    """A look at the account of a feed, over a process that reads what its server says.

    Shapes: `is_asked` says that the owner asked for it: then all is compared.
    """

    feed: FeedRow
    process: JmapProcess
    ports: SyncPorts
    result: RunResult
    is_asked: bool
    turn: int
    _known: KnownJmap = field(default_factory=KnownJmap, init=False)
    _ledger: MailLedger = field(init=False)
    _began: float = field(default_factory=time.monotonic, init=False)

    def __post_init__(self) -> None:
        self._ledger = MailLedger(self.feed, self.ports, self.result, self.turn, LARGEST_NUMBER)

    def run(self, url: str) -> None:
        """Look, fetch, import, follow.

        Raises: AccountTrouble, FetchTrouble, PutOff; what is stored is kept.
        """
        self._known = KnownJmap.of(self.ports.store.feed_items(self.feed.feed_id))
        self._ledger.is_noted = owes = self._known.owes
        self._ledger.names = self._known.names
        try:
            self._ask(BeginJmap(url, self._known.session), JmapSession)
            states = self._known.states
            counted = self._first() if states is None else self._follow(states)
            for mailbox in self._known.fetched():
                self._look(mailbox)
            self._recount(counted)
            if owes:  # the run before was ended before records told what the ledger knew
                self._ledger.touch_all()
                owes = False
            self._ledger.settle(self.turn, is_asked=self.is_asked)
        except _LookAgain:
            self.result.settling += 1
        finally:
            self.result.seen = sum(e.mails for e in self._known.mailboxes.values() if e.is_fetched)
            self._ledger.tell()
            if not owes:
                self._ledger.forget_note()

    def _ask(self, request: JmapRequest, form: type[_Reply]) -> list[_Reply]:
        """What is answered; a session that is new is kept."""
        answers: list[_Reply] = []
        for each in self.process.ask(request):
            if isinstance(each, JmapSession):
                self._known.session = each
                self._ledger.keep_line(SESSION, msgspec.json.encode(each).decode())
            elif isinstance(each, form):
                answers.append(each)
        return answers

    # States ----------------------------------------------------------------------------------
    def _first(self) -> list[str]:
        """Begin: what changes from here on is told by states, and all before by filling."""
        states = self._states_now()
        self._take_mailboxes()
        self._keep_states(states)
        return []

    def _states_now(self) -> States:
        found = self._ask(AskStates(), StatesSeen)[-1]
        return States(found.emails, found.mailboxes)

    def _keep_states(self, states: States) -> None:
        if states != self._known.states:
            self._known.states = states
            self._ledger.keep_line(STATES, msgspec.json.encode(states).decode())

    def _follow(self, since: States) -> list[str]:
        """Follow the changes since the look before; mailboxes whose mails are counted otherwise."""
        mails, mailboxes = self._changes(since, with_mailboxes=True)
        counted: list[str] = []
        if mailboxes is None or not mailboxes.is_known or mailboxes.has_more:
            since = States(since.emails, self._states_now().mailboxes)
            self._take_mailboxes()
        else:
            since, counted = States(since.emails, mailboxes.state), mailboxes.changed
            if (counted or mailboxes.gone) and not mailboxes.counts_only:
                self._take_mailboxes()
        if mails.is_known:
            self._pages(mails, since)
        else:
            self._begin_anew(since)
        if self.is_asked:
            for mailbox in self._known.fetched():
                if self._known.mailboxes[mailbox].todo is Todo.NOTHING:
                    self._have_compared(mailbox)
        return counted

    def _begin_anew(self, since: States) -> None:
        """Have all compared, of a server that cannot tell what changed."""
        now = States(self._states_now().emails, since.mailboxes)
        for mailbox in self._known.fetched():
            self._have_compared(mailbox)
        self._keep_states(now)

    def _changes(
        self, since: States, *, with_mailboxes: bool
    ) -> tuple[ChangesSeen, ChangesSeen | None]:
        """What changed since; where a server cannot tell, but its state is the same, nothing."""
        request = PollJmap(since.emails, since.mailboxes if with_mailboxes else None)
        found = self._ask(request, ChangesSeen)
        mails = [each for each in found if each.of_mails]
        others = [each for each in found if not each.of_mails]
        if not mails:
            raise AccountTrouble(MISBEHAVES)
        page = mails[0]
        if not page.is_known and self._states_now().emails == since.emails:
            page = ChangesSeen(of_mails=True, is_known=True, state=since.emails)
        return page, others[0] if others else None

    def _pages(self, page: ChangesSeen, states: States) -> None:
        """Follow changes page by page; a state that comes again would be followed without end."""
        met, before = {states.emails}, self._known.begun
        for _ in range(MOST_PAGES):
            if page.changed:
                self._keep_begun([*before, *page.changed])
            self._take_changed(page)
            states = States(page.state, states.mailboxes)
            self._keep_states(states)
            if not page.has_more:
                self._take_begun(before)
                return
            self._require_time()
            if page.state in met:
                break
            met.add(page.state)
            page, _ = self._changes(states, with_mailboxes=False)
            if not page.is_known:
                self._begin_anew(states)
                raise _LookAgain
        raise AccountTrouble(MISBEHAVES)

    def _take_begun(self, ids: Sequence[str]) -> None:
        """Look for what a run that was ended within a page of changes may have taken of it.

        A server need not tell of a mail that came after a state and went since.
        """
        for part in _parts(ids):
            there = {each.email for each in self._ask(AskEmails(list(part)), EmailSeen)}
            lost = [each for each in part if each not in there]
            rows = self.ports.mails.rows_of_copies(self.feed.feed_id, lost)
            self._ledger.mark_gone([each for each in rows if each.gone_at is None])
        self._keep_begun(())

    def _keep_begun(self, ids: Sequence[str]) -> None:
        now = list(dict.fromkeys(ids))
        if now == self._known.begun:
            return
        self._known.begun = now
        if now:
            self._ledger.keep_line(BEGUN, msgspec.json.encode(now).decode())
        else:
            self._ledger.keep_lines({}, [BEGUN])

    def _take_changed(self, page: ChangesSeen) -> None:
        for ids in _parts(page.changed):
            self._take(ids)
        mails, feed_id = self.ports.mails, self.feed.feed_id
        for ids in _parts(page.gone):
            rows = mails.rows_of_copies(feed_id, ids)
            self._ledger.mark_gone([e for e in rows if e.gone_at is None])

    # Mailboxes -------------------------------------------------------------------------------
    def _take_mailboxes(self) -> None:
        """Take all mailboxes as they are now; what was in those that are gone is gone."""
        listed = self._ask(AskMailboxes(None), MailboxSeen)
        if not any(each.role == "inbox" for each in listed):  # an account without one is none
            raise AccountTrouble(MISBEHAVES)
        paths = paths_of(listed)
        fetched = fetched_of(listed, paths, self.feed.chosen)
        before = self._known.mailboxes
        is_cut = len(listed) >= MOST_FOLDERS  # there may be more: what is not listed stays as it is
        now = dict(before) if is_cut else dict[str, KnownMailbox]()
        for each in listed:
            known = before.get(each.mailbox, KnownMailbox("", is_fetched=False))
            is_fetched = each.mailbox in fetched
            one = msgspec.structs.replace(
                known, path=paths[each.mailbox], is_fetched=is_fetched, mails=each.mails
            )
            if is_fetched and not known.is_fetched:
                one = msgspec.structs.replace(one, todo=Todo.FILL, behind=None)
            now[each.mailbox] = one
        kept = {name for name, each in now.items() if each.is_fetched}
        lost = [name for name, each in before.items() if each.is_fetched and name not in kept]
        for mailbox in lost:
            self._ledger.set_aside(mailbox, 0)
        self._known.mailboxes = now
        self._ledger.names = self._known.names
        for mailbox, each in before.items():
            if mailbox in fetched and each.is_fetched and each.path != now[mailbox].path:
                self._ledger.touch_folder(mailbox)
        changed = {name: each.text for name, each in now.items() if before.get(name) != each}
        self._ledger.keep_lines(changed, before.keys() - now.keys())

    def _keep_mailbox(self, mailbox: str, now: KnownMailbox) -> None:
        if self._known.mailboxes.get(mailbox) != now:
            self._known.mailboxes[mailbox] = now
            self._ledger.keep_line(mailbox, now.text)

    def _have_compared(self, mailbox: str) -> None:
        now = self._known.mailboxes[mailbox]
        self._keep_mailbox(mailbox, msgspec.structs.replace(now, todo=Todo.COMPARE, behind=None))

    def _look(self, mailbox: str) -> None:
        """Fill a mailbox, or compare it whole."""
        begun = self._known.mailboxes.get(mailbox)  # none, where it went during this look
        todo = Todo.NOTHING if begun is None else begun.todo
        if todo is Todo.NOTHING:
            return
        there = array("Q")
        listed = 0
        for ids in self._listed(mailbox):
            listed += len(ids)
            there.extend(map(number_of, ids))
            self._catch_up()
            self._take(ids)
            now = self._known.mailboxes.get(mailbox)
            if now is None:
                return
            if todo is Todo.FILL:
                self._keep_mailbox(mailbox, msgspec.structs.replace(now, behind=ids[-1]))
            self._require_time()
            if listed > now.mails + MOST_BESIDE:  # it lists them again and again
                raise AccountTrouble(MISBEHAVES)
        if todo is Todo.COMPARE and self._counted(mailbox) <= len(set(there)):
            self._lose_others(mailbox, array("Q", sorted(there)))
        now = self._known.mailboxes[mailbox]
        self._keep_mailbox(
            mailbox,
            msgspec.structs.replace(
                now, todo=Todo.NOTHING, behind=None, compared_ns=self.ports.clock()
            ),
        )

    def _counted(self, mailbox: str) -> int:
        """How many mails the server counts in a mailbox now: a list of fewer is not whole."""
        return sum(each.mails for each in self._ask(AskMailboxes([mailbox]), MailboxSeen))

    def _catch_up(self) -> None:
        """Follow changes up to now, before mails that were listed are taken.

        A server need not tell of a mail that came after a state and went since: one that was taken
        has to be older than the state, or it would stay here for ever.
        """
        states = self._known.states
        if states is not None:
            page, _ = self._changes(states, with_mailboxes=False)
            if page.is_known:  # else the next look, from the same state, has all compared
                self._pages(page, states)

    def _listed(self, mailbox: str) -> Iterator[list[str]]:
        """The mails of a mailbox, newest first, page by page."""
        return pages_of(
            lambda behind: self._ask(AskIds(mailbox, behind), IdsSeen)[-1],
            self._known.mailboxes[mailbox].behind,
        )

    def _lose_others(self, mailbox: str, there: Sequence[int]) -> None:
        """Note as gone what the ledger has in a mailbox and its server does not."""
        for rows in self._ledger.pages(mailbox, 0, LARGEST_NUMBER):
            lost = [row for row in rows if row.gone_at is None and not _is_in(there, row.uid)]
            self._ledger.mark_gone(lost)

    def _recount(self, counted: Sequence[str]) -> None:
        """Compare mailboxes whose numbers of mails differ from the ledger's, once a day at most.

        A server may pass over a change; while more changes, its numbers tell nothing.
        """
        wanted = [each for each in counted if each in self._known.mailboxes]
        states = self._known.states
        if not wanted or states is None:
            return
        seen = self._ask(AskMailboxes(wanted), MailboxSeen)
        page, _ = self._changes(states, with_mailboxes=False)
        for each in seen:
            known = self._known.mailboxes.get(each.mailbox)
            if known is not None:
                self._keep_mailbox(each.mailbox, msgspec.structs.replace(known, mails=each.mails))
        if not page.is_known or page.changed or page.gone or page.has_more:
            return
        now_ns = self.ports.clock()
        for mailbox in [each.mailbox for each in seen]:
            known = self._known.mailboxes.get(mailbox)
            if known is None or not known.is_fetched:
                continue
            is_due = not 0 <= now_ns - known.compared_ns < COMPARED_EVERY_NS
            if is_due and self.ports.mails.mail_count(self.feed.feed_id, mailbox) != known.mails:
                self._have_compared(mailbox)
                self._look(mailbox)

    # Mails -----------------------------------------------------------------------------------
    def _take(self, ids: Sequence[str]) -> None:
        """Take mails as they are now: rows of those that are known, and the others whole."""
        mails, feed_id = self.ports.mails, self.feed.feed_id
        heads = self._ask(AskEmails(list(ids)), EmailSeen)
        unknown = {one for each in heads for one in each.mailboxes} - self._known.mailboxes.keys()
        if unknown:  # made since the mailboxes were listed
            self._take_mailboxes()
        rows: dict[str, list[FeedMailRow]] = {}
        for row in mails.rows_of_copies(feed_id, [each.email for each in heads]):
            rows.setdefault(row.copy_of, []).append(row)
        kept: list[FeedMailRow] = []
        gone: list[FeedMailRow] = []
        wanted: dict[str, list[EmailSeen]] = {}
        for head in heads:
            there = self._known.inside(head.mailboxes)
            own = [each for each in rows.get(head.email, []) if each.code != UNSURE]
            lost = [e for e in own if e.gone_at is None and e.folder not in there]
            gone += lost
            key = next((each.record_key for each in own if each.record_key), "")
            refused = next((each.code for each in own if each.code), None)
            if not there:
                continue
            if not key and (refused is None or self.is_asked):
                wanted.setdefault(there[0], []).append(head)
                continue
            before = {each.folder: each for each in own}
            now = self._rows(head, there, key, None if key else refused)
            self.result.new += sum(row.folder not in before for row in now)
            kept += [row for row in now if before.get(row.folder) != row]
        self._ledger.mark_gone(gone)
        self._ledger.keep(kept)
        for mailbox, heads in sorted(wanted.items(), key=lambda e: self._known.order(e[0])):
            self._fetch(mailbox, heads)

    def _rows(
        self, head: EmailSeen, mailboxes: Iterable[str], key: str, code: str | None
    ) -> list[FeedMailRow]:
        """The rows of a mail, one for each mailbox that it is in."""
        return [
            FeedMailRow(
                feed_id=self.feed.feed_id,
                folder=mailbox,
                uid=number_of(head.email),
                copy_of=head.email,
                record_key=key,
                labels=tuple(head.labels),
                code=code,
            )
            for mailbox in mailboxes
        ]

    def _fetch(self, mailbox: str, heads: Sequence[EmailSeen]) -> None:
        """Fetch mails whole, and import them; what came before a cut is imported."""
        path = self._known.mailboxes[mailbox].path
        batch = MailBatch(path, self.ports.staged, 0)
        batch.clear()
        try:
            for head in heads:
                self._fetch_one(batch, head)
                if batch.is_full or self._is_over:
                    self._import(batch)
                    self._require_time()
        except AccountTrouble:
            self._import(batch)
            raise
        self._import(batch)

    def _fetch_one(self, batch: MailBatch, head: EmailSeen) -> None:
        mailboxes = self._known.inside(head.mailboxes)
        if head.size > LARGEST_MAIL_BYTES:
            content, key, code = b"", "", TOO_LARGE
        else:
            content, taken = self.process.mail(head.blob, head.size)
            key, code = taken.key, taken.code
        if code is not None:
            self.result.rejected += 1
        else:
            batch.add(number_of(head.email), content, head.labels)
            self.result.new += 1
        batch.rows += self._rows(head, mailboxes, key, code)

    def _import(self, batch: MailBatch) -> None:
        """Import what was fetched, and have records tell that several mails are."""
        if not batch.rows:
            return
        rows = list(batch.rows)
        self._ledger.take(batch)
        batch.clear()
        keys = sorted({row.record_key for row in rows if row.record_key})
        mails: dict[str, set[str]] = {}
        for row in self.ports.mails.mails_by_key(self.feed.feed_id, keys):
            mails.setdefault(row.record_key, set()).add(row.copy_of)
        self._ledger.touch(row for row in rows if len(mails.get(row.record_key, ())) > 1)

    @property
    def _is_over(self) -> bool:
        return time.monotonic() - self._began > RUN_SECONDS

    def _require_time(self) -> None:
        """Raises: _LookAgain where another look is to go on."""
        if self._is_over:
            raise _LookAgain


def _parts(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(ids), MOST_AT_ONCE):
        yield ids[begin : begin + MOST_AT_ONCE]


def _is_in(ascending: Sequence[int], number: int) -> bool:
    at = bisect_left(ascending, number)
    return at < len(ascending) and ascending[at] == number
